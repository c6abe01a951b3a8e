/* A view is the same in whatever order its pods are seen, and looked up the same by search and by
 * walk. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/reconcile/view.h"

/* In the order of a view. Two workers 2 of which the second has the right name, and no worker 1. */
static const struct pod seen[] = {
    {.name = "j-master-0", .uid = "m", .owner_uid = "u", .type = REPLICA_MASTER, .index = 0},
    {.name = "j-worker-0", .uid = "z", .owner_uid = "u", .type = REPLICA_WORKER, .index = 0},
    {.name = "j-worker-2", .uid = "b", .owner_uid = "u", .type = REPLICA_WORKER, .index = 2},
    {.name = "odd", .uid = "a", .owner_uid = "u", .type = REPLICA_WORKER, .index = 2},
    {.name = "j-worker-10", .uid = "c", .owner_uid = "u", .type = REPLICA_WORKER, .index = 10},
};
enum { PODS = sizeof seen / sizeof seen[0] };

static struct view view_of(const struct pod pods[PODS], struct arena *arena)
{
    static const struct job job = {.name = "j", .uid = "u"};
    static const struct job_status status;
    const struct snapshot snapshot = {
        .job = &job, .status = &status, .pods = pods, .pod_count = PODS, .now_ms = 1000};
    return view_open(&snapshot, arena);
}

/* Each pod in the first place, the others behind it; forwards and backwards. */
static void pods_seen_in_any_order_are_in_the_order_of_their_replicas(void **state)
{
    (void)state;
    for (size_t first = 0; first < PODS; first++) {
        for (int backwards = 0; backwards < 2; backwards++) {
            auto_arena struct arena *arena = arena_open();
            struct pod pods[PODS];
            for (size_t i = 0; i < PODS; i++)
                pods[backwards ? PODS - 1 - i : i] = seen[(first + i) % PODS];
            const struct view view = view_of(pods, arena);
            assert_int_equal(view.pods.count, PODS);
            for (size_t i = 0; i < PODS; i++) {
                assert_string_equal(view.pods.items[i].name, seen[i].name);
                assert_int_equal(view.pods.items[i].surplus, i == 3);
            }
        }
    }
}

/* With a first index and a step: all replicas, and only some. */
static void a_walk_finds_what_a_search_finds(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    const struct view view = view_of(seen, arena);
    for (int32_t first = 0; first < 12; first++) {
        for (int32_t step = 1; step < 12; step++) {
            size_t at = 0;
            for (enum replica_type type = 0; type < REPLICA_TYPES; type++)
                for (int32_t i = first; i < 12; i += step)
                    assert_ptr_equal(view_next(&view.pods, type, i, &at),
                                     view_find(&view.pods, type, i));
        }
    }
    assert_string_equal(view_find(&view.pods, REPLICA_WORKER, 2)->name, "j-worker-2");
    assert_null(view_find(&view.pods, REPLICA_WORKER, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_seen_in_any_order_are_in_the_order_of_their_replicas),
        cmocka_unit_test(a_walk_finds_what_a_search_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
