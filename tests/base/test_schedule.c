/* What waits comes in the order of its times, however it was added and removed. */
#include "base/schedule.h"

#include "tests/support.h"

enum { ENTRIES = 200 };

static void of_one_time_the_first_comes_first(void **state)
{
    (void)state;
    struct schedule s = {.count = 0};
    struct schedule_entry a = {0}, b = {0}, c = {0};
    assert_null(schedule_first(&s));
    assert_true(schedule_due(&s) == INT64_MAX);
    schedule_add(&s, &b, 7);
    schedule_add(&s, &c, 7);
    schedule_add(&s, &a, 6);
    struct schedule_entry *const order[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(schedule_first(&s), order[i]);
        assert_int_equal(schedule_due(&s), order[i]->at_ms);
        schedule_remove(&s, order[i]);
        assert_false(schedule_waits(order[i]));
    }
    assert_null(schedule_first(&s));
    schedule_free(&s);
}

/* Against a list that is searched. */
static void any_may_leave(void **state)
{
    (void)state;
    static struct schedule_entry entries[ENTRIES];
    struct schedule s = {.count = 0};
    uint32_t random = 1;
    for (int turn = 0; turn < 5000; turn++) {
        random = random * 1664525 + 1013904223;
        struct schedule_entry *entry = &entries[(random >> 8) % ENTRIES], *first = NULL;
        if (schedule_waits(entry))
            schedule_remove(&s, entry);
        else
            schedule_add(&s, entry, (random >> 20) % 64);
        size_t count = 0;
        for (int i = 0; i < ENTRIES; i++) {
            struct schedule_entry *e = &entries[i];
            if (!schedule_waits(e))
                continue;
            count++;
            if (!first || e->at_ms < first->at_ms ||
                (e->at_ms == first->at_ms && e->serial < first->serial))
                first = e;
        }
        assert_int_equal(s.count, count);
        assert_ptr_equal(schedule_first(&s), first);
    }
    schedule_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_time_the_first_comes_first),
        cmocka_unit_test(any_may_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
