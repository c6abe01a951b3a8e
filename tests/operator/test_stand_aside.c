/* How long to do nothing beside another operator. */
#include "tests/support.h"

#include "operator/stand_aside.h"

#define S INT64_C(1000)

static void pauses_grow_while_it_comes_back(void **state)
{
    (void)state;
    static const struct {
        int64_t at_ms;
        bool begins;
        int64_t until_ms;
    } writes[] = {
        {100 * S, true, 160 * S},
        {100 * S, false, 160 * S},
        {159 * S, false, 219 * S}, /* the pause goes on behind each write */
        {219 * S, true, 339 * S},  /* it was silent, and is back: twice as long */
        {220 * S, false, 340 * S},
        {400 * S, true, 640 * S},
        {1000 * S, true, 1480 * S},
        {2000 * S, true, 2960 * S},
        {3000 * S, true, 4920 * S},
        {5000 * S, true, 8600 * S}, /* an hour at most */
        {9000 * S, true, 12600 * S},
        {12600 * S + 3599 * S, true, 19799 * S},
        {19799 * S + 3600 * S, true, 23459 * S}, /* long after: as the first time */
    };
    struct stand_aside aside = {0};
    assert_int_equal(stand_aside_left_ms(&aside, 0), 0);
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        assert_int_equal(stand_aside_begin(&aside, writes[i].at_ms), writes[i].begins);
        int64_t left_ms = writes[i].until_ms - writes[i].at_ms;
        assert_int_equal(stand_aside_left_ms(&aside, writes[i].at_ms), left_ms);
        assert_int_equal(stand_aside_left_ms(&aside, writes[i].until_ms - 1), 1);
        assert_int_equal(stand_aside_left_ms(&aside, writes[i].until_ms), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pauses_grow_while_it_comes_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
