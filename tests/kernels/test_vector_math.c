/* The functions that loops vectorise, against libm in double precision: their stated errors. */
#include "base/mem.h"
#include "kernels/cpu/vector_math.h"
#include "tests/support.h"

#include <math.h>

/* The distance between floats around x. */
static double unit(double x)
{
    return ldexp(1, ilogb(x) - 23);
}

static void test_exp(void **state)
{
    (void)state;
    for (int i = -868999; i <= 887000; i++) { /* all of its range */
        float x = (float)i * 1e-4f;
        double want = exp(x), got = vector_exp(x);
        if (!(fabs(got - want) <= 2 * unit(want))) {
            print_error("exp(%.9g) is %.9g, should be %.9g\n", (double)x, got, want);
            fail();
        }
    }
    static const float small[] = {0, 1e-30f, -1e-30f, 1e-7f, -1e-7f};
    for (size_t i = 0; i < array_length(small); i++)
        assert_true(fabs(vector_exp(small[i]) - exp(small[i])) <= 2 * unit(1));
    assert_true(vector_exp(0) == 1);
}

static void test_ends(void **state)
{
    (void)state;
    static const float none[] = {-87, -100, -1e4f, -1e30f, -INFINITY};
    static const float all[] = {89, 1e4f, 1e30f, INFINITY};
    for (size_t i = 0; i < array_length(none); i++)
        assert_true(vector_exp(none[i]) == 0 && vector_sigmoid(none[i]) < 1e-37f);
    for (size_t i = 0; i < array_length(all); i++)
        assert_true(vector_exp(all[i]) == INFINITY && vector_sigmoid(all[i]) == 1);
    assert_true(isnan(vector_exp(NAN)) && isnan(vector_sigmoid(NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
