#include "base/open_files.h"

#include "base/mem.h"
#include "tests/support.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

static void the_limit_is_raised_to_what_is_allowed(void **state)
{
    (void)state;
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(open_files_limit(), 64);
    open_files_raise();
    assert_int_equal(open_files_limit(), before.rlim_max);
    setrlimit(RLIMIT_NOFILE, &before);
}

static void an_error_names_the_mend(void **state)
{
    (void)state;
    struct error err;
    assert_fails(error_errno(&err, EMFILE, "open x"), &err, ERR_IO,
                 "open x: Too many open files; raise the limit (ulimit -n)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_is_raised_to_what_is_allowed),
        cmocka_unit_test(an_error_names_the_mend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
