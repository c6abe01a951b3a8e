#include "cli/terminal.h"

#include <assert.h>
#include <limits.h>
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
            return; /* nobody is left to read it */
        done += (size_t)written;
    }
}

/* Columns of text[0..bytes): a character's bytes after its first take none (UTF-8). */
static int columns_of(const char *text, size_t bytes)
{
    int columns = 0;
    for (size_t i = 0; i < bytes; i++)
        columns += (text[i] & 0xC0) != 0x80;
    return columns;
}

/* Rows that the text takes on a screen which has become so narrow since: terminals
 * wrap its lines. */
static int rows_of(const char *text, int columns)
{
    int rows = 0;
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        int width = columns_of(text, (size_t)(end - text));
        rows += width > 0 ? (width - 1) / columns + 1 : 1;
    }
    return rows;
}

/* Back to where the view begins, and everything below it cleared; then to where stdout stands. */
static void add_erase(struct terminal *terminal, struct str *out)
{
    if (terminal->view.length == 0)
        return;
    int columns, rows;
    terminal_size(&columns, &rows);
    str_printf(out, "\r\033[%dA\033[J", rows_of(str_text(&terminal->view), columns));
    if (terminal->mid_line)
        str_add(out, "\033[A");
    if (terminal->mid_line && terminal->column % columns > 0)
        str_printf(out, "\033[%dC", terminal->column % columns);
    str_clear(&terminal->view);
}

/* Where these bytes leave the cursor that stood in this column. What is wide, or moves it
 * otherwise, is beyond us until the next line. */
static int column_after(int column, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool plain = bytes[i] >= ' ' && bytes[i] <= '~';
        if (bytes[i] == '\n' || bytes[i] == '\r')
            column = 0;
        else if (column >= 0)
            column = plain && column < INT_MAX ? column + 1 : -1;
    }
    return column;
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
    str_init(&terminal->view, TEXT_MAX_BYTES);
    output_open(&terminal->output, STDOUT_FILENO);
}

void terminal_close(struct terminal *terminal)
{
    erase(terminal);
    output_close(&terminal->output);
    str_free(&terminal->view);
}

bool terminal_window(int fd, int *ret_columns, int *ret_rows)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0)
        return false;
    *ret_columns = size.ws_col;
    *ret_rows = size.ws_row;
    return true;
}

bool terminal_is_unicode(char *(*environment)(const char *name))
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < array_length(names); i++) {
        const char *value = environment(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

void terminal_size(int *ret_columns, int *ret_rows)
{
    *ret_columns = 80;
    *ret_rows = 24;
    terminal_window(STDERR_FILENO, ret_columns, ret_rows);
}

void terminal_flush(struct terminal *terminal)
{
    if (!output_wait(&terminal->output, -1, 0))
        return;
    erase(terminal);
    bool was_broken = output_is_broken(&terminal->output);
    output_flush(&terminal->output);
    /* The failure stays set, so it would be reported again at each flush. */
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
    erase(terminal);
    terminal->mid_line = terminal->shares_line && bytes[count - 1] != '\n';
    terminal->column = column_after(terminal->column, bytes, count);
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
    terminal->column = 0;
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
    /* While bytes wait for stdout's reader, nobody knows in which column they will leave the
     * cursor. */
    if (!terminal->live || terminal->output.waiting.length > 0)
        return;
    int columns, rows;
    terminal_size(&columns, &rows);
    /* Behind a line's last column the cursor waits: whether it has wrapped yet differs between
     * terminals. */
    bool at_edge = terminal->column > 0 && terminal->column % columns == 0;
    if (terminal->mid_line && (terminal->column < 0 || at_edge))
        return;
    auto_str struct str out;
    str_init(&out, TEXT_MAX_BYTES);
    add_erase(terminal, &out);
    if (terminal->mid_line)
        str_add(&out, "\n");
    str_add(&out, text);
    str_add(&terminal->view, text);
    write_stderr(&out);
}
