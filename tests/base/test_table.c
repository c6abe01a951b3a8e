#include "tests/support.h"

#include "base/mem.h"
#include "base/table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THINGS 1000

struct thing {
    struct table_entry entry;
    char key[24];
    bool in;
    int visits;
};

struct walk {
    struct table *table;
    size_t visited;
};

static struct thing *make_things(void)
{
    struct thing *things = xcalloc(THINGS, sizeof *things);
    for (int i = 0; i < THINGS; i++) {
        snprintf(things[i].key, sizeof things[i].key, "ns/thing-%d", i);
        things[i].entry.key = things[i].key;
    }
    return things;
}

static void toggle(struct table *table, struct thing *thing)
{
    if (thing->in)
        table_remove(table, &thing->entry);
    else
        table_add(table, &thing->entry);
    thing->in = !thing->in;
}

static void check_all(const struct table *table, const struct thing *things)
{
    size_t count = 0;
    for (int i = 0; i < THINGS; i++) {
        assert_ptr_equal(table_find(table, things[i].key), things[i].in ? &things[i].entry : NULL);
        count += things[i].in;
    }
    assert_int_equal(table->count, count);
}

static void what_is_in_is_found(void **state)
{
    (void)state;
    struct table table = {0};
    struct thing *things = make_things();
    assert_null(table_find(&table, "ns/thing-0"));
    for (int step = 1; step <= 7; step++) {
        for (int i = 0; i < THINGS; i += step)
            toggle(&table, &things[i]);
        check_all(&table, things);
    }
    assert_null(table_find(&table, ""));
    table_free(&table);
    free(things);
}

static void remove_visited(void *context, struct table_entry *entry)
{
    struct walk *walk = context;
    struct thing *thing = (struct thing *)entry;
    thing->visits++;
    walk->visited++;
    if (walk->visited % 2)
        toggle(walk->table, thing);
}

static void a_walk_meets_each_once_and_may_remove_it(void **state)
{
    (void)state;
    struct table table = {0};
    struct thing *things = make_things();
    for (int i = 0; i < THINGS; i++)
        toggle(&table, &things[i]);
    struct walk walk = {.table = &table};
    table_each(&table, remove_visited, &walk);
    assert_int_equal(walk.visited, THINGS);
    for (int i = 0; i < THINGS; i++)
        assert_int_equal(things[i].visits, 1);
    check_all(&table, things);
    assert_int_equal(table.count, THINGS / 2);
    table_free(&table);
    free(things);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_is_found),
        cmocka_unit_test(a_walk_meets_each_once_and_may_remove_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
