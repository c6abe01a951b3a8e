/* A job's children in the order of their replicas, whatever comes first. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/cache/child_list.h"

/* Of what is put in, in this order: type, index, and where it is in the list. */
static const struct {
    enum replica_type type;
    int32_t index;
    size_t at;
} rows[] = {
    {REPLICA_WORKER, 2, 7}, {REPLICA_MASTER, 0, 1},  {REPLICA_WORKER, 0, 4},
    {REPLICA_WORKER, 2, 6}, {REPLICA_WORKER, -1, 3}, {REPLICA_WORKER, INT32_MAX, 8},
    {REPLICA_WORKER, 1, 5}, {REPLICA_MASTER, -1, 0}, {REPLICA_WORKER, -1, 2},
};
enum { CHILDREN = sizeof rows / sizeof rows[0] };

static void fill(struct child_list *list, struct child_entry children[CHILDREN],
                 enum cache_kind kind)
{
    *list = (struct child_list){.count = 0};
    for (size_t i = 0; i < CHILDREN; i++) {
        children[i] = (struct child_entry){.kind = kind};
        if (kind == CACHE_PODS)
            children[i].pod = (struct pod){.type = rows[i].type, .index = rows[i].index};
        if (kind == CACHE_SERVICES)
            children[i].service = (struct service){.type = rows[i].type, .index = rows[i].index};
        child_list_add(list, &children[i]);
    }
    assert_int_equal(list->count, CHILDREN);
}

static void pods_and_services_are_in_the_order_of_their_replicas(void **state)
{
    (void)state;
    for (enum cache_kind kind = CACHE_PODS; kind <= CACHE_SERVICES; kind++) {
        struct child_entry children[CHILDREN];
        struct child_list list;
        fill(&list, children, kind);
        for (size_t i = 0; i < CHILDREN; i++)
            assert_ptr_equal(list.items[rows[i].at], &children[i]);
        while (list.count)
            child_list_remove(&list, list.items[list.count / 2]);
    }
}

static void all_others_are_the_newest_first(void **state)
{
    (void)state;
    struct child_entry children[CHILDREN];
    struct child_list list;
    fill(&list, children, CACHE_WORKLOADS);
    for (size_t i = 0; i < CHILDREN; i++)
        assert_ptr_equal(list.items[CHILDREN - 1 - i], &children[i]);
    while (list.count)
        child_list_remove(&list, list.items[0]);
}

/* Each in turn, and it alone. */
static void what_is_removed_leaves_the_others_in_order(void **state)
{
    (void)state;
    for (size_t gone = 0; gone < CHILDREN; gone++) {
        struct child_entry children[CHILDREN];
        struct child_list list;
        const struct child_entry *before[CHILDREN];
        fill(&list, children, CACHE_PODS);
        for (size_t i = 0; i < CHILDREN; i++)
            before[i] = list.items[i];
        child_list_remove(&list, before[gone]);
        assert_int_equal(list.count, CHILDREN - 1);
        for (size_t i = 0; i < list.count; i++)
            assert_ptr_equal(list.items[i], before[i + (i >= gone)]);
        while (list.count)
            child_list_remove(&list, list.items[0]);
        assert_null(list.items);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_and_services_are_in_the_order_of_their_replicas),
        cmocka_unit_test(all_others_are_the_newest_first),
        cmocka_unit_test(what_is_removed_leaves_the_others_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
