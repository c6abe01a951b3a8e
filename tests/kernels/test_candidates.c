/* The fastest of what was measured, without a GPU. */
#include "kernels/cuda/candidates.h"

#include "base/mem.h"
#include "tests/support.h"

#define RAN(NS)                                                                                    \
    {                                                                                              \
        true, NS                                                                                   \
    }
#define FAILED                                                                                     \
    {                                                                                              \
        false, 0                                                                                   \
    }

static const struct {
    const char *name;
    struct candidate all[4];
    int count, fastest;
} rows[] = {
    {"one", {RAN(5)}, 1, 0},
    {"one that failed", {FAILED}, 1, -1},
    {"none ran", {FAILED, FAILED, FAILED}, 3, -1},
    {"the first is the fastest", {RAN(100), RAN(200), RAN(300)}, 3, 0},
    {"another is", {RAN(300), RAN(200), RAN(100)}, 3, 2},
    {"in between", {RAN(300), RAN(100), RAN(200)}, 3, 1},
    {"equal to the first", {RAN(100), RAN(100), RAN(100)}, 3, 0},
    {"equal to each other", {RAN(200), RAN(100), RAN(100)}, 3, 1},
    {"faster by the margin", {RAN(100), RAN(98)}, 2, 0},
    {"... and by more", {RAN(100), RAN(97)}, 2, 1},
    {"a margin is for the first alone", {RAN(300), RAN(100), RAN(99)}, 3, 2},
    {"the first failed", {FAILED, RAN(100), RAN(99)}, 3, 2},
    {"the fastest failed", {RAN(200), FAILED, RAN(100), FAILED}, 4, 2},
    {"all others failed", {RAN(200), FAILED, FAILED}, 3, 0},
    {"no time at all", {RAN(0), RAN(0)}, 2, 0},
    {"long ones", {RAN(INT64_MAX), RAN(INT64_MAX / 2)}, 2, 1},
    {"beyond the count", {RAN(200), RAN(150), RAN(1)}, 2, 1},
};

static void test_fastest(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        int fastest = candidate_fastest(rows[i].all, rows[i].count);
        if (fastest != rows[i].fastest)
            fail_msg("%s: %d instead of %d", rows[i].name, fastest, rows[i].fastest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fastest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
