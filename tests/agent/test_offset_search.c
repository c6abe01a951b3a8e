/* Which of the things behind one another a number falls into. */
#include "tests/support.h"

#include "agent/dataset/offset_search.h"
#include "base/mem.h"

static void a_number_falls_into_the_last_that_begins_before_it(void **state)
{
    (void)state;
    static const struct thing {
        char other;
        int64_t before;
    } things[] = {{'a', 0}, {'b', 3}, {'-', 3}, {'c', 3}, {'d', 10}};
    static const struct {
        int64_t count, at;
        char falls_into;
    } rows[] = {{1, 0, 'a'}, {1, 99, 'a'}, {2, 2, 'a'},  {2, 3, 'b'},        {5, -1, 'a'},
                {5, 0, 'a'}, {5, 2, 'a'},  {5, 3, 'c'},  {5, 9, 'c'},        {4, 10, 'c'},
                {3, 3, '-'}, {5, 10, 'd'}, {5, 11, 'd'}, {5, INT64_MAX, 'd'}};
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t place = offset_search(&things->before, sizeof *things, rows[i].count, rows[i].at);
        assert_int_equal(things[place].other, rows[i].falls_into);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_falls_into_the_last_that_begins_before_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
