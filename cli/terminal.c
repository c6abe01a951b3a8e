#include "cli/terminal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

enum {
    TEXT_MAX_BYTES =
        4 * 1024 * 1024, /* a table of 512 replicas whose logs have the longest paths */
};

static void write_stderr(const struct str *text)
{
    size_t done = 0;
    while (done < text->length) {
        ssize_t written = write(STDERR_FILENO, str_text(text) + done, text->length - done);
        if (written < 0)
            return; /* nobody is left to be told */
        done += (size_t)written;
    }
}

/* Back to where the view begins, and everything below it cleared. */
static void add_erase(struct terminal *terminal, struct str *out)
{
    if (terminal->view_lines > 0)
        str_printf(out, "\r\033[%dA\033[J", terminal->view_lines);
    terminal->view_lines = 0;
}

static void erase(struct terminal *terminal)
{
    auto_str struct str out;
    str_init(&out, TEXT_MAX_BYTES);
    add_erase(terminal, &out);
    if (out.length > 0)
        write_stderr(&out);
}

void terminal_open(struct terminal *terminal, enum terminal_mode mode, int stop_fd)
{
    const char *type = getenv("TERM");
    bool able = isatty(STDERR_FILENO) && type && *type && strcmp(type, "dumb") != 0;
    *terminal = (struct terminal){
        .live = mode == TERMINAL_ALWAYS || (mode == TERMINAL_AUTO && able),
        .shares_line = isatty(STDOUT_FILENO),
        .stop_fd = stop_fd,
    };
    output_open(&terminal->output, STDOUT_FILENO);
}

void terminal_close(struct terminal *terminal)
{
    erase(terminal);
    output_close(&terminal->output);
}

void terminal_size(int *ret_columns, int *ret_rows)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *ret_columns = known ? size.ws_col : 80;
    *ret_rows = known ? size.ws_row : 24;
}

void terminal_flush(struct terminal *terminal)
{
    if (!output_wait(&terminal->output, -1, 0))
        return;
    erase(terminal);
    bool was_broken = output_is_broken(&terminal->output);
    output_flush(&terminal->output);
    if (output_is_broken(&terminal->output) && !was_broken)
        terminal_line(
            terminal,
            "shoal: warning: write stdout: %s; from here on the output is in the log only",
            strerror(terminal->output.failure));
}

void terminal_drain(struct terminal *terminal, int patience_ms)
{
    while (output_wait(&terminal->output, terminal->stop_fd, patience_ms))
        terminal_flush(terminal);
}

void terminal_output(struct terminal *terminal, const char *bytes, size_t count)
{
    if (count == 0)
        return;
    while (!output_add(&terminal->output, bytes, count) &&
           output_wait(&terminal->output, terminal->stop_fd, -1))
        terminal_flush(terminal);
    terminal->mid_line = terminal->shares_line && bytes[count - 1] != '\n';
    terminal_flush(terminal);
}

void terminal_line(struct terminal *terminal, const char *format, ...)
{
    auto_str struct str out;
    str_init(&out, TEXT_MAX_BYTES);
    add_erase(terminal, &out);
    if (terminal->mid_line)
        str_add(&out, "\n");
    terminal->mid_line = false;
    auto_free char *line = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&line, format, args);
    va_end(args);
    assert(length >= 0);
    str_printf(&out, "%s\n", line);
    write_stderr(&out);
}

void terminal_draw(struct terminal *terminal, const char *text)
{
    if (!terminal->live || terminal->mid_line)
        return;
    auto_str struct str out;
    str_init(&out, TEXT_MAX_BYTES);
    add_erase(terminal, &out);
    str_add(&out, text);
    for (const char *c = text; *c; c++)
        terminal->view_lines += *c == '\n';
    write_stderr(&out);
}
