/* Which token comes next. */
#include "tests/support.h"

#include "agent/generate/generate.h"

#include <math.h>

static const float logits[] = {0, 2, -1, 2, -INFINITY};
enum { V = 5 };

static const struct {
    double temperature, number;
    int32_t token;
} rows[] = {
    {0, 0.99, 1}, /* the likeliest; the first of equals */
    {1, 0, 0},
    /* exponents 1, 7.389, 0.3679, 7.389: cumulated 0.0619, 0.5195, 0.5423, 1 */
    {1, 0.0618, 0},
    {1, 0.0620, 1},
    {1, 0.5194, 1},
    {1, 0.5200, 2},
    {1, 0.5425, 3},
    {1, 0.999999, 3}, /* never what cannot be */
    {0.1, 0.49, 1},   /* cold: the likely only */
    {0.1, 0.51, 3},
    {100, 0.26, 1}, /* hot: nearly a quarter each */
    {100, 0.49, 1},
    {100, 0.74, 2},
};

static void the_number_chooses_by_the_probabilities(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int32_t token = generate_choose(logits, V, rows[i].temperature, rows[i].number);
        if (token != rows[i].token)
            fail_msg("temperature %g, number %g: %d, not %d", rows[i].temperature, rows[i].number,
                     token, rows[i].token);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_number_chooses_by_the_probabilities)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
