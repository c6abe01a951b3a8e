#include "tests/support.h"

#include "base/mem.h"
#include "operator/job/names.h"

#include <string.h>

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

/* Of each replica and each name: the one that it is made of, and no other. */
static void a_name_is_its_replicas_alone(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    static const int32_t indexes[] = {0, 1, 9, 10, 11, 19, 100, 909, INT32_MAX};
    static const char *const others[] = {"",
                                         "j",
                                         "j-worker",
                                         "j-worker-",
                                         "j-worker-01",
                                         "j-worker-00",
                                         "j-worker-1x",
                                         "k-worker-1",
                                         "jj-worker-1",
                                         "j-worker--1",
                                         "j-workers-1",
                                         "-worker-1"};
    const struct job job = {.name = "j"};
    const char *names[2 * array_length(indexes)];
    for (size_t i = 0; i < array_length(names); i++)
        names[i] =
            names_child(arena, &job, i % 2 ? REPLICA_WORKER : REPLICA_MASTER, indexes[i / 2]);
    for (size_t i = 0; i < array_length(names); i++) {
        enum replica_type type = i % 2 ? REPLICA_WORKER : REPLICA_MASTER;
        for (size_t k = 0; k < array_length(names); k++)
            assert_int_equal(names_is_child(names[k], &job, type, indexes[i / 2]), i == k);
        for (size_t k = 0; k < array_length(others); k++)
            assert_false(names_is_child(others[k], &job, type, indexes[i / 2]));
    }
    assert_false(names_is_child("j-worker-1", &job, REPLICA_WORKER, -1));
}

static void a_child_is_named_by_its_job_type_and_index(void **state)
{
    (void)state;
    static const struct {
        const char *job, *name;
        enum replica_type type;
        int32_t index;
    } rows[] = {
        {"mnist", "mnist-master-0", REPLICA_MASTER, 0},
        {"mnist", "mnist-worker-9", REPLICA_WORKER, 9},
        {"a-b", "a-b-worker-10", REPLICA_WORKER, 10},
        {"j", "j-worker-1000", REPLICA_WORKER, 1000},
        {"j", "j-worker-2147483647", REPLICA_WORKER, INT32_MAX},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        const struct job job = {.name = rows[i].job};
        auto_free char *room = xmalloc(strlen(rows[i].job) + NAMES_CHILD_BYTES);
        names_put_child(room, &job, rows[i].type, rows[i].index);
        assert_string_equal(room, rows[i].name);
        assert_string_equal(names_child(arena, &job, rows[i].type, rows[i].index), rows[i].name);
    }
}

#define BYTES_63 "a23456789-123456789-123456789-123456789-123456789-123456789-12b"

static void a_label_is_what_a_namespace_may_be_called(void **state)
{
    (void)state;
    static const char *const labels[] = {"a", "0", "team-a", "9-z", "a--b", BYTES_63};
    static const char *const others[] = {
        "",  "-",   "-a", "a-", "Team", "a_b",      "a.b",
        "/", "a b", ":",  "`a", "a{",   "\xc3\xa4", BYTES_63 "c",
    };
    for (size_t i = 0; i < array_length(labels); i++)
        assert_true(names_is_label(labels[i]));
    for (size_t i = 0; i < array_length(others); i++)
        assert_false(names_is_label(others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_tells_whose_child_it_would_be),
        cmocka_unit_test(a_workload_is_named_as_kueue_names_it),
        cmocka_unit_test(a_name_is_its_replicas_alone),
        cmocka_unit_test(a_child_is_named_by_its_job_type_and_index),
        cmocka_unit_test(a_label_is_what_a_namespace_may_be_called),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
