/* bf16 and back: every pattern, the roundings, and what is no number. */
#include "base/mem.h"
#include "kernels/dtype.h"
#include "kernels/random.h"
#include "tests/support.h"

#include <math.h>

static void test_round_trip(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        float x = bf16_to_float((bf16)i);
        if (isnan(x))
            assert_true(isnan(bf16_to_float(bf16_from_float(x))));
        else
            assert_int_equal(bf16_from_float(x), i);
        if (!isnan(x))
            assert_int_equal(bf16_stochastic(x, 0.999f), i); /* nothing to round */
        else
            assert_true(isnan(bf16_to_float(bf16_stochastic(x, 0))));
    }
}

static void test_nearest_even(void **state)
{
    (void)state;
    static const struct {
        float x, want;
    } rows[] = {
        {1 + 0x1p-8f, 1},           /* halfway, to even */
        {1 + 0x3p-8f, 1 + 0x1p-6f}, /* halfway, to even: up */
        {1 + 0x1.01p-8f, 1 + 0x1p-7f},
        {1 + 0x1.fep-9f, 1},
        {-1 - 0x1.01p-8f, -1 - 0x1p-7f},
        {0x1.ffp127f, INFINITY},
        {0x1.fefffep127f, 0x1.fep127f},
        {0x1p-134f, 0},
        {INFINITY, INFINITY},
        {-0.0f, -0.0f},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        float got = bf16_to_float(bf16_from_float(rows[i].x));
        assert_true(got == rows[i].want && signbit(got) == signbit(rows[i].want));
    }
    assert_true(isnan(bf16_to_float(bf16_from_float(NAN))));
    float low_bits_only; /* a NaN whose upper half alone would be infinity */
    uint32_t bits = 0x7f800001;
    memcpy(&low_bits_only, &bits, sizeof bits);
    assert_true(isnan(bf16_to_float(bf16_from_float(low_bits_only))));
    assert_true(isnan(bf16_to_float(bf16_stochastic(low_bits_only, 0.5f))));
}

/* One of the two neighbours, and on average the value itself: within five standard errors. */
static void test_stochastic(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static const float values[] = {1 + 0x1p-9f, 1 + 0x1.8p-8f, -3.14159274f, 1e-20f, 12345.678f};
    for (size_t i = 0; i < array_length(values); i++) {
        float x = values[i];
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        double down = bf16_to_float((bf16)(bits >> 16)),
               up = bf16_to_float((bf16)((bits >> 16) + 1));
        double sum = 0;
        for (uint64_t n = 0; n < COUNT; n++) {
            double got = bf16_to_float(bf16_stochastic(x, random_uniform(i, n)));
            assert_true(got == down || got == up);
            sum += got;
        }
        assert_true(fabs(sum / COUNT - x) < 5 * fabs(up - down) / 2 / sqrt(COUNT));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_nearest_even),
        cmocka_unit_test(test_stochastic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
