/* The curve of a run's loss: which heights its characters have. */
#include "tests/support.h"

#include "base/mem.h"
#include "cli/curve.h"

#include <math.h>

static void add(struct series *series, double loss)
{
    series_add(series, &(struct series_point){.step = series->count, .loss = (float)loss});
}

static void expect(const struct series *series, int width, bool unicode, const char *expected)
{
    auto_str struct str out;
    str_init(&out, 4096);
    curve_draw(series, width, unicode, &out);
    assert_string_equal(str_text(&out), expected);
}

static void it_is_drawn_between_its_extremes(void **state)
{
    (void)state;
    struct series series = {0}, flat = {0};
    expect(&series, 10, true, "");
    add(&series, -3);
    expect(&series, 10, true, ""); /* one point is no curve */
    add(&series, 4);
    expect(&series, 10, true, "▁█");
    expect(&series, 10, false, "_#");
    add(&series, 0);
    expect(&series, 10, false, "_#-");
    expect(&series, 2, false, "_#"); /* -3; the mean of 4 and 0 */
    expect(&series, 1, false, "");
    expect(&series, -5, false, "");
    add(&series, (double)NAN);
    add(&series, (double)INFINITY);
    add(&series, 4);
    expect(&series, 10, false, "_#-  #");
    series_free(&series);
    add(&flat, 7);
    add(&flat, 7);
    expect(&flat, 10, false, "__");
    for (int i = 0; i < 200; i++)
        add(&flat, 7 - i);
    expect(&flat, 8, false, "#*+=-,._");
    series_free(&flat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_drawn_between_its_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
