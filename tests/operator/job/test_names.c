#include "tests/support.h"

#include "base/mem.h"
#include "operator/job/names.h"

static void a_name_tells_whose_child_it_would_be(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t bytes;
    } names[] = {
        {"mnist-worker-12", 5}, {"mnist-master-0", 5},
        {"a-b-worker-0", 3},    {"ns/j-worker-1", 4},
        {"worker-0", 0},        {"-worker-0", 0},
        {"mnist-worker-", 0},   {"mnist-worker-x", 0},
        {"mnist-worker", 0},    {"mnist-launcher-0", 0},
        {"mnistworker-0", 0},   {"", 0},
        {"j-worker-1x", 0},     {"j-worker-0-worker-1", 10},
    };
    for (size_t i = 0; i < array_length(names); i++)
        assert_int_equal(names_child_job(names[i].name), names[i].bytes);
}

/* The hashes are those of sha1sum. */
static void a_workload_is_named_as_kueue_names_it(void **state)
{
    (void)state;
    static const struct {
        const char *job, *uid, *name;
    } rows[] = {
        {"mnist", "0c3a9c4e", "pytorchjob-mnist-10acc"},
        {"a.b", "", "pytorchjob-a.b-fbd33"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        const struct job job = {.name = rows[i].job, .uid = rows[i].uid};
        assert_string_equal(names_workload(arena, &job), rows[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_tells_whose_child_it_would_be),
        cmocka_unit_test(a_workload_is_named_as_kueue_names_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
