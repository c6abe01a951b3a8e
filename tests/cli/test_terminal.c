/* What a run writes to its two streams: nothing is cut off. */
#include "base/file.h"
#include "base/mem.h"
#include "cli/terminal.h"
#include "tests/support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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
    (void)state;
    enum { BYTES = 512 * 1024 };
    auto_free char *text = xcalloc(1, BYTES + 2);
    memset(text, 'x', BYTES);
    struct terminal terminal;
    terminal_open(&terminal, TERMINAL_NEVER, -1);
    int old = redirect(STDERR_FILENO, "err");
    terminal_line(&terminal, "%s", text);
    put_back(STDERR_FILENO, old);
    terminal_close(&terminal);
    text[BYTES] = '\n';
    assert_holds("err", text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_long_text, support_enter_dir, support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
