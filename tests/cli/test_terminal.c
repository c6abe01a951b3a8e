/* What a run writes to its two streams: nothing is cut off, and the view goes as it came. */
#include "base/file.h"
#include "base/mem.h"
#include "cli/terminal.h"
#include "tests/support.h"

#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Makes `target` write to a new file of this name; returns what it was, for put_back. */
static int redirect(int target, const char *path)
{
    int old = dup(target);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(old >= 0 && fd >= 0 && dup2(fd, target) == target);
    return old;
}

static void put_back(int target, int old)
{
    dup2(old, target);
    close(old);
}

static void assert_holds(const char *path, const char *expected)
{
    auto_free char *text = NULL;
    size_t bytes;
    struct error err;
    assert_ok(file_read(path, 1 << 24, &text, &bytes, &err), &err);
    assert_string_equal(text, expected);
}

/* The table of 512 replicas, say. */
static void test_long_text(void **state)
{
    auto_free char *path = xasprintf("%s/err", (char *)*state);
    enum { BYTES = 512 * 1024 };
    auto_free char *text = xcalloc(1, BYTES + 2);
    memset(text, 'x', BYTES);
    struct terminal terminal;
    terminal_open(&terminal, TERMINAL_NEVER, -1);
    int old = redirect(STDERR_FILENO, path);
    terminal_line(&terminal, "%s", text);
    put_back(STDERR_FILENO, old);
    terminal_close(&terminal);
    text[BYTES] = '\n';
    assert_holds(path, text);
}

/* A screen of our own as stdout and stderr; returns the end that shows what was written. */
static int open_screen(int old[2], int columns)
{
    int screen, line;
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    assert_int_equal(openpty(&screen, &line, NULL, NULL, &size), 0);
    struct termios raw;
    assert_int_equal(tcgetattr(line, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(line, TCSANOW, &raw), 0);
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        old[i] = dup(STDOUT_FILENO + i);
        assert_int_equal(dup2(line, STDOUT_FILENO + i), STDOUT_FILENO + i);
    }
    close(line);
    return screen;
}

/* What a screen was sent while the terminal did as `play` says. */
static void assert_screen_sees(void (*play)(struct terminal *terminal), const char *expected)
{
    int old[2];
    auto_close int screen = open_screen(old, 40);
    struct terminal terminal;
    terminal_open(&terminal, TERMINAL_ALWAYS, -1);
    play(&terminal);
    put_back(STDOUT_FILENO, old[0]);
    put_back(STDERR_FILENO, old[1]);
    str_clear(&terminal.view);
    terminal_close(&terminal);
    char seen[1024];
    size_t length = 0;
    ssize_t count; /* negative once all is read, as nobody has the other end any more */
    while ((count = read(screen, seen + length, sizeof seen - 1 - length)) > 0)
        length += (size_t)count;
    seen[length] = '\0';
    assert_string_equal(seen, expected);
}

static void play_shrink(struct terminal *terminal)
{
    terminal_draw(terminal, "a line of twenty two..\nshort\n\n");
    struct winsize narrow = {.ws_row = 24, .ws_col = 10};
    ioctl(STDERR_FILENO, TIOCSWINSZ, &narrow);
    terminal_draw(terminal, "new\n");
}

/* A character of three bytes takes one column. */
static void play_unicode(struct terminal *terminal)
{
    terminal_draw(terminal, "▁▂▃▄▅▆▇█▁▂▃▄▅▆▇█▁▂▃▄▅▆▇█▁▂▃▄▅▆▇█▁▂▃▄▅▆▇\n");
    terminal_draw(terminal, "new\n");
}

static void play_unfinished_line(struct terminal *terminal)
{
    terminal_output(terminal, "one\rloading", 11);
    terminal_draw(terminal, "view\n");
    terminal_draw(terminal, "again\n");
    terminal_output(terminal, ".", 1);
    terminal_draw(terminal, "view\n");
    terminal_line(terminal, "said");
    terminal_output(terminal, "\033[1mbold", 8); /* who knows where that leads */
    terminal_draw(terminal, "none\n");
    terminal_output(terminal, "\n", 1);
    terminal_draw(terminal, "view\n");
}

static void test_view(void **state)
{
    (void)state;
    assert_screen_sees(play_shrink, "a line of twenty two..\nshort\n\n"
                                    "\r\033[5A\033[Jnew\n");
    assert_screen_sees(play_unicode, "▁▂▃▄▅▆▇█▁▂▃▄▅▆▇█▁▂▃▄▅▆▇█▁▂▃▄▅▆▇█▁▂▃▄▅▆▇\n"
                                     "\r\033[1A\033[Jnew\n");
    assert_screen_sees(play_unfinished_line, "one\rloading\nview\n"
                                             "\r\033[1A\033[J\033[A\033[7C\nagain\n"
                                             "\r\033[1A\033[J\033[A\033[7C.\nview\n"
                                             "\r\033[1A\033[J\033[A\033[8C\nsaid\n"
                                             "\033[1mbold\nview\n");
}

static const char *variable; /* the one that is set, as NAME=VALUE */

static char *environment(const char *name)
{
    size_t length = strlen(name);
    return strncmp(variable, name, length) == 0 && variable[length] == '='
               ? (char *)variable + length + 1
               : NULL;
}

static void test_unicode(void **state)
{
    (void)state;
    static const struct {
        const char *variable;
        bool expected;
    } rows[] = {{"LANG=en_US.UTF-8", true}, {"LC_ALL=C.utf8", true}, {"LC_CTYPE=de_DE", false},
                {"LANG=C", false},          {"LANG=", false},        {"HOME=utf8", false}};
    for (size_t i = 0; i < array_length(rows); i++) {
        variable = rows[i].variable;
        assert_int_equal(terminal_is_unicode(environment), rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view),
        cmocka_unit_test(test_unicode),
        cmocka_unit_test_setup_teardown(test_long_text, support_enter_dir, support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
