#include "tests/support.h"

#include <errno.h>
#include <string.h>

static void set_returns_minus_one_and_fills(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(error_set(&err, ERR_INPUT, "line %d", 7), -1);
    assert_int_equal(err.code, ERR_INPUT);
    assert_string_equal(err.msg, "line 7");
}

static void errno_chooses_the_code(void **state)
{
    (void)state;
    struct error err;
    error_errno(&err, ENOSPC, "write x");
    assert_int_equal(err.code, ERR_NO_SPACE);
    assert_string_equal(err.msg, "write x: No space left on device");
    error_errno(&err, ENOENT, "open y");
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void wrap_adds_context_and_keeps_the_code(void **state)
{
    (void)state;
    struct error err;
    error_set(&err, ERR_PEER, "rank 2 is gone");
    error_wrap(&err, "step %d", 4);
    assert_int_equal(err.code, ERR_PEER);
    assert_string_equal(err.msg, "step 4: rank 2 is gone");
}

static void long_text_is_cut_not_overrun(void **state)
{
    (void)state;
    struct error err;
    char text[2000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    error_set(&err, ERR_IO, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    error_wrap(&err, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_returns_minus_one_and_fills),
        cmocka_unit_test(errno_chooses_the_code),
        cmocka_unit_test(wrap_adds_context_and_keeps_the_code),
        cmocka_unit_test(long_text_is_cut_not_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
