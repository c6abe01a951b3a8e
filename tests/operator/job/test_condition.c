/* How the list of conditions changes: the sequences that the training operator shows. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/job/condition.h"
#include "operator/job/names.h"

struct step {
    enum condition_type type;
    bool value;
    const char *reason;
};

struct row {
    struct step steps[6];
    const char *list;
};

#define CREATED                                                                                    \
    {                                                                                              \
        CONDITION_CREATED, true, "c"                                                               \
    }
#define RUNNING                                                                                    \
    {                                                                                              \
        CONDITION_RUNNING, true, "r"                                                               \
    }
#define RESTARTING                                                                                 \
    {                                                                                              \
        CONDITION_RESTARTING, true, "x"                                                            \
    }
#define SUSPENDED                                                                                  \
    {                                                                                              \
        CONDITION_SUSPENDED, true, "s"                                                             \
    }

static const struct row rows[] = {
    {{CREATED, RUNNING}, "Created=T c@1-1 Running=T r@2-2"},
    {{CREATED, RUNNING, RUNNING}, "Created=T c@1-1 Running=T r@2-2"},
    {{CREATED, RUNNING, {CONDITION_RUNNING, true, "other"}}, "Created=T c@1-1 Running=T other@3-2"},
    {{CREATED, RUNNING, RESTARTING}, "Created=T c@1-1 Restarting=T x@3-3"},
    {{CREATED, RUNNING, RESTARTING, RUNNING}, "Created=T c@1-1 Running=T r@4-4"},
    {{CREATED, RUNNING, RESTARTING, RESTARTING, {CONDITION_FAILED, true, "f"}},
     "Created=T c@1-1 Failed=T f@5-5"},
    {{CREATED, RUNNING, {CONDITION_SUCCEEDED, true, "o"}},
     "Created=T c@1-1 Running=F r@2-2 Succeeded=T o@3-3"},
    {{CREATED, RUNNING, {CONDITION_RUNNING, false, "s"}, SUSPENDED},
     "Created=T c@1-1 Running=F s@3-3 Suspended=T s@4-4"},
    {{CREATED,
      RUNNING,
      {CONDITION_RUNNING, false, "s"},
      SUSPENDED,
      {CONDITION_SUSPENDED, false, "u"},
      RUNNING},
     "Created=T c@1-1 Suspended=F u@5-5 Running=T r@6-6"},
    {{CREATED, RESTARTING, SUSPENDED}, "Created=T c@1-1 Suspended=T s@3-3"},
    {{CREATED, {CONDITION_FAILED, true, "f"}, RUNNING, {CONDITION_SUCCEEDED, true, "o"}},
     "Created=T c@1-1 Failed=T f@2-2"},
    {{CREATED, {CONDITION_SUCCEEDED, true, "o"}, {CONDITION_FAILED, true, "f"}},
     "Created=T c@1-1 Succeeded=T o@2-2"},
};

static void the_list_changes_by_the_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct job_status status = {0};
        for (size_t k = 0; k < array_length(rows[i].steps) && rows[i].steps[k].reason; k++)
            condition_set(&status, rows[i].steps[k].type, rows[i].steps[k].value,
                          rows[i].steps[k].reason, "message", (int64_t)k + 1);
        auto_str struct str list;
        str_init(&list, 1024);
        for (size_t k = 0; k < status.condition_count; k++) {
            const struct condition *c = &status.conditions[k];
            str_printf(&list, "%s%s=%c %s@%d-%d", k ? " " : "", names_condition(c->type),
                       c->status ? 'T' : 'F', c->reason, (int)c->update_ms, (int)c->transition_ms);
        }
        assert_string_equal(str_text(&list), rows[i].list);
    }
}

static void the_last_one_is_the_state(void **state)
{
    (void)state;
    struct job_status status = {0};
    assert_null(condition_last(&status));
    assert_true(condition_set(&status, CONDITION_CREATED, true, "c", "m", 1));
    assert_false(condition_set(&status, CONDITION_CREATED, true, "c", "m", 2));
    assert_int_equal(condition_last(&status)->type, CONDITION_CREATED);
    assert_false(condition_finished(&status));
    condition_set(&status, CONDITION_FAILED, true, "f", "m", 2);
    assert_true(condition_finished(&status));
    assert_true(condition_is_true(&status, CONDITION_FAILED));
    assert_null(condition_find(&status, CONDITION_RUNNING));
}

/* Prints what condition_wait makes of the list. */
static const char *waiting(struct job_status *status, const char *reason, const char *message,
                           int64_t now_ms, bool news, struct str *out)
{
    str_clear(out);
    assert_int_equal(condition_wait(status, reason, message, now_ms), news);
    for (size_t i = 0; i < status->condition_count; i++)
        str_printf(out, "%s%s@%d-%d", i ? " " : "", names_condition(status->conditions[i].type),
                   (int)status->conditions[i].update_ms, (int)status->conditions[i].transition_ms);
    return str_text(out);
}

static void what_stands_in_the_way_is_told_once(void **state)
{
    (void)state;
    struct job_status status = {0};
    auto_str struct str list;
    str_init(&list, 4096);
    condition_set(&status, CONDITION_CREATED, true, "c", "m", 1);
    assert_string_equal(waiting(&status, "a", "x", 2, true, &list), "Created@1-1 Waiting@2-2");
    assert_string_equal(waiting(&status, "a", "x", 3, false, &list), "Created@1-1 Waiting@2-2");
    assert_string_equal(waiting(&status, "a", "y", 4, true, &list), "Created@1-1 Waiting@4-2");
    condition_set(&status, CONDITION_RUNNING, true, "r", "m", 5);
    assert_string_equal(waiting(&status, "a", "y", 6, false, &list),
                        "Created@1-1 Waiting@4-2 Running@5-5");
    condition_set(&status, CONDITION_RESTARTING, true, "x", "m", 7);
    assert_string_equal(waiting(&status, "a", "y", 8, false, &list),
                        "Created@1-1 Restarting@7-7 Waiting@4-2");
    assert_string_equal(waiting(&status, NULL, NULL, 9, false, &list),
                        "Created@1-1 Restarting@7-7");
    waiting(&status, "a", "x", 10, true, &list);
    condition_set(&status, CONDITION_FAILED, true, "f", "m", 11);
    assert_string_equal(waiting(&status, "a", "x", 12, false, &list), "Created@1-1 Failed@11-11");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_changes_by_the_rules),
        cmocka_unit_test(the_last_one_is_the_state),
        cmocka_unit_test(what_stands_in_the_way_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
