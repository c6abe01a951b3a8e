#include "agent/config/name_format.h"

#include "base/mem.h"
#include "tests/support.h"

static void test_names(void **state)
{
    (void)state;
    const struct name_field fields[] = {
        {.name = "prefix", .text = "llama_v3"}, {.name = "step", .number = 42}, {.name = "epoch"}};
    static const struct {
        const char *format, *name;
    } rows[] = {
        {"{prefix}-{step}steps", "llama_v3-42steps"},
        {"e-{epoch:03d}-gs-{step:06d}", "e-000-gs-000042"},
        {"{step:01}", "42"},
        {"plain", "plain"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char name[64];
        name_format(rows[i].format, fields, array_length(fields), name, sizeof name);
        assert_string_equal(name, rows[i].name);
    }
    char cut[6];
    name_format("{prefix}", fields, array_length(fields), cut, sizeof cut);
    assert_string_equal(cut, "llama");
}

static void test_what_is_no_format(void **state)
{
    (void)state;
    static const char *const names[] = {"step", "epoch"};
    static const struct {
        const char *format, *why;
    } rows[] = {
        {"{stop}", "there is no field {stop}"},
        {"{step", "is no {name}"},
        {"step}", "is no {name}"},
        {"{step:3d}", "is no {name}"},
        {"{step:00}", "is no {name}"},
        {"{step:099d}", "is no {name}"},
        {"a/{step}", "cannot have a '/'"},
    };
    struct error err;
    for (size_t i = 0; i < array_length(rows); i++)
        assert_fails(name_format_check(rows[i].format, names, 2, &err), &err, ERR_CONFIG,
                     rows[i].why);
    assert_ok(name_format_check("{epoch:02}-{step}", names, 2, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_what_is_no_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
