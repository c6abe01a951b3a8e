#include "tests/support.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void what_is_no_text_is_made_printable(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printable;
    } rows[] = {
        {"", ""},
        {"plain text", "plain text"},
        {"gr\xc3\xbc\xc3\x9f Gott, \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x90\x9f",
         "gr\xc3\xbc\xc3\x9f Gott, \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x90\x9f"},
        {"two\nlines\tand\x7f\x1b[2J", "two lines and  [2J"},
        {"\xff\xfe\x80", "???"},
        {"cut \xe4\xbd", "cut ??"},
        {"a\xe4z", "a?z"},
        {"\xc0\xaf overlong", "?? overlong"},
        {"\xed\xa0\x80 surrogate", "??? surrogate"},
        {"\xc2\x9b[2J a terminal's command", "??[2J a terminal's command"},
        {"exe.\xe2\x80\xaegpj", "exe.???gpj"},
        {"\xe2\x81\xa6isolated\xe2\x81\xa9", "???isolated???"},
        {"\xd8\x9c an Arabic mark", "?? an Arabic mark"},
        {"a\xe2\x80\xa8line", "a???line"},
        {"\xe2\x80\xa6 dots", "\xe2\x80\xa6 dots"},
        {"\xc2\xa0 a blank", "\xc2\xa0 a blank"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *text = xstrdup(rows[i].text);
        utf8_make_printable(text, strlen(text));
        if (strcmp(text, rows[i].printable) != 0)
            fail_msg("row %zu: %s", i, text);
    }
}

/* The log is a text, whatever a server says. */
static void a_line_of_the_log_is_text(void **state)
{
    (void)state;
    char line[2048];
    int pipe_fds[2], old = dup(STDERR_FILENO);
    assert_int_equal(pipe(pipe_fds), 0);
    dup2(pipe_fds[1], STDERR_FILENO);
    log_warning("the answer is no JSON: %s", "\x8f\x1f\xff\nfaked line \x1b[31m");
    dup2(old, STDERR_FILENO);
    ssize_t n = read(pipe_fds[0], line, sizeof line - 1);
    close(old);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    assert_true(n > 0);
    line[n] = '\0';
    assert_ptr_equal(strchr(line, '\n'), line + n - 1);
    assert_non_null(strstr(line, "the answer is no JSON: ? ? faked line  [31m\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_text_is_made_printable),
        cmocka_unit_test(a_line_of_the_log_is_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
