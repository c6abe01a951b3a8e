/* A name that resolves sooner or later, or never. */
#include "tests/support.h"

#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/wait_for_name.h"

/* A label of 64 bytes: no resolver needs to be asked. */
#define LONG "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* Resolves at look-up `at`; 0: never. */
struct resolver {
    int64_t at, look_ups, paused_ms;
};

static bool resolves(void *context, const char *name, const char **ret_why)
{
    struct resolver *resolver = context;
    assert_string_equal(name, "j-master-0");
    *ret_why = "no such name";
    return ++resolver->look_ups == resolver->at;
}

static void pause_ms(void *context, int64_t ms)
{
    ((struct resolver *)context)->paused_ms += ms;
}

static void it_looks_as_often_as_it_was_told(void **state)
{
    (void)state;
    static const struct {
        int64_t at, tries, look_ups, paused_ms;
        int result;
    } rows[] =
        {
            {1, 1, 1, 0, 0},    {1, 100, 1, 0, 0},   {3, 100, 3, 4000, 0},
            {3, 3, 3, 4000, 0}, {3, 2, 2, 2000, -1}, {0, 100, 100, 198000, -1},
            {5, 0, 5, 8000, 0}, /* for as long as it takes */
        };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct resolver resolver = {.at = rows[i].at};
        const struct wait_for_name how = {
            .resolves = resolves, .pause = pause_ms, .context = &resolver};
        struct error err;
        int result = wait_for_name(&how, "j-master-0", rows[i].tries, &err);
        assert_int_equal(result, rows[i].result);
        if (result < 0)
            assert_fails(result, &err, ERR_TIMEOUT, "j-master-0");
        assert_int_equal(resolver.look_ups, rows[i].look_ups);
        assert_int_equal(resolver.paused_ms, rows[i].paused_ms);
    }
}

static void it_is_a_program(void **state)
{
    (void)state;
    static const struct {
        const char *argv[3];
        int argc, exit_code;
    } rows[] = {
        {{"localhost"}, 1, EXIT_DONE},
        {{"127.0.0.1", "--tries", "1"}, 3, EXIT_DONE},
        {{LONG, "--tries", "1"}, 3, EXIT_FAILED},
        {{NULL}, 0, EXIT_CONFIG},
        {{"--tries", "1"}, 2, EXIT_CONFIG},
        {{"localhost", "--tries", "0"}, 3, EXIT_CONFIG},
        {{"localhost", "--trys"}, 2, EXIT_CONFIG},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_int_equal(wait_for_name_main(rows[i].argc, (char *const *)rows[i].argv),
                         rows[i].exit_code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_looks_as_often_as_it_was_told),
        cmocka_unit_test(it_is_a_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
