/* Which failure ends a program how. */
#include "base/contract.h"
#include "base/exit_code.h"
#include "tests/support.h"

static void trying_again_is_asked_for_only_where_it_helps(void **state)
{
    (void)state;
    static const struct {
        enum error_code code;
        int exit_code;
    } rows[] = {
        {ERR_NONE, EXIT_DONE},        {ERR_CONFIG, EXIT_CONFIG},
        {ERR_INPUT, EXIT_CONFIG},     {ERR_LIMIT, EXIT_CONFIG},
        {ERR_NOT_FOUND, EXIT_CONFIG}, {ERR_PEER, EXIT_RETRYABLE},
        {ERR_MEMORY, EXIT_FAILED},    {ERR_TIMEOUT, EXIT_RETRYABLE},
        {ERR_NO_SPACE, EXIT_FAILED},  {ERR_CANCELLED, EXIT_TERMINATED},
        {ERR_DIVERGED, EXIT_FAILED},  {ERR_DEVICE, EXIT_RETRYABLE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (exit_code_of(rows[i].code) != rows[i].exit_code)
            fail_msg("%s ends with %d", support_error_name(rows[i].code),
                     exit_code_of(rows[i].code));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trying_again_is_asked_for_only_where_it_helps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
