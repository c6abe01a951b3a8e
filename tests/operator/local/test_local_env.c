/* $(NAME) references: the cases of Kubernetes' own expansion_test.go, and the order
 * of variables. */
#include "operator/local/local_env.h"
#include "tests/support.h"

#include <string.h>

static void test_expand(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expanded;
    } rows[] = {
        {"$(VAR_A)", "A"},
        {"___$(VAR_B)___", "___B___"},
        {"$(VAR_A)_$(VAR_B)", "A_B"},
        {"$(VAR_REF)", "$(VAR_A)"}, /* not expanded again */
        {"%%$(VAR_REF)--$(VAR_REF)%%", "%%$(VAR_A)--$(VAR_A)%%"},
        {"$(VAR_EMPTY)|", "|"},
        {"$(VAR_NONE)", "$(VAR_NONE)"},
        {"f000-$$VAR_A", "f000-$VAR_A"},
        {"foo\\$(VAR_C)bar", "foo\\Cbar"},
        {"$$(VAR_A)", "$(VAR_A)"},
        {"$$$(VAR_A)", "$A"},
        {"$$$$(VAR_A)", "$$(VAR_A)"},
        {"$VAR_A", "$VAR_A"},
        {"$(VAR_A", "$(VAR_A"},
        {"$VAR_A)", "$VAR_A)"},
        {"${VAR_A}", "${VAR_A}"},
        {"$(VAR_A))", "A)"},
        {"$()", "$()"},
        {"$((VAR_A))", "$((VAR_A))"},
        {"$(VAR_A$(VAR_B)", "$(VAR_A$(VAR_B)"},
        {"\n$(VAR_A)\n", "\nA\n"},
        {"$", "$"},
        {"$$", "$"},
        {"a$", "a$"},
        {"", ""},
    };
    auto_arena struct arena *arena = arena_open();
    struct local_env env = {.arena = arena};
    local_env_set(&env, "VAR_A", "A");
    local_env_set(&env, "VAR_B", "B");
    local_env_set(&env, "VAR_C", "C");
    local_env_set(&env, "VAR_REF", "$(VAR_A)");
    local_env_set(&env, "VAR_EMPTY", "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(local_env_expand(&env, rows[i].text), rows[i].expanded);
}

static void test_later_value_wins_in_the_old_place(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct local_env env = {.arena = arena};
    for (int i = 0; i < 100; i++) /* grows */
        local_env_set(&env, arena_printf(arena, "N%d", i), "old");
    local_env_set(&env, "N0", "new");
    local_env_set(&env, "COUNT", "0");
    assert_string_equal(local_env_get(&env, "N0"), "new");
    assert_null(local_env_get(&env, "N"));
    const char *const *strings = local_env_strings(&env, "COUNT=1");
    assert_string_equal(strings[0], "N0=new");
    assert_string_equal(strings[99], "N99=old");
    assert_string_equal(strings[100], "COUNT=1");
    assert_null(strings[101]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_later_value_wins_in_the_old_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
