#include "agent/dataset/masking.h"

#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

enum { COUNT = 20000, VOCABULARY = 1000, MASK = 4, IGNORED = -100 };

static const struct masking how = {.probability = 0.15,
                                   .mask = MASK,
                                   .vocabulary = VOCABULARY,
                                   .kept = {2, 3, -1, 5, 6},
                                   .seed = 7};

struct hidden {
    int32_t ids[COUNT], targets[COUNT];
    int64_t chosen;
};

static int32_t id_of(int64_t i)
{
    return (int32_t)(i % (VOCABULARY - 10) + 2); /* every 990th is 2, those behind it 3, 4, ... */
}

static struct hidden *hide(const struct masking *m, uint64_t epoch, int64_t sample, int64_t count)
{
    struct hidden *h = xcalloc(1, sizeof *h);
    for (int64_t i = 0; i < count; i++)
        h->ids[i] = id_of(i);
    h->chosen = masking_apply(m, epoch, sample, h->ids, count, h->targets, IGNORED);
    return h;
}

/* Four standard deviations around what is expected. */
static void test_rates(void **state)
{
    (void)state;
    auto_free struct hidden *h = hide(&how, 0, 0, COUNT);
    int chosen = 0, masked = 0, same = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        if (h->targets[i] == IGNORED) {
            assert_int_equal(h->ids[i], id_of(i));
            continue;
        }
        assert_int_equal(h->targets[i], id_of(i));
        assert_true(id_of(i) != 2 && id_of(i) != 3 && id_of(i) != 5 && id_of(i) != 6);
        assert_in_range(h->ids[i], 0, VOCABULARY - 1);
        chosen++;
        masked += h->ids[i] == MASK;
        same += h->ids[i] == id_of(i);
    }
    assert_int_equal(h->chosen, chosen);
    assert_in_range(chosen, 3000 - 202, 3000 + 202);
    assert_in_range(masked, chosen * 80 / 100 - 88, chosen * 80 / 100 + 88);
    assert_in_range(same, chosen * 10 / 100 - 66, chosen * 10 / 100 + 66);
}

/* The same whatever else is done; another one for another seed, epoch or sample. */
static void test_pure(void **state)
{
    (void)state;
    struct masking other_seed = how;
    other_seed.seed = 8;
    auto_free struct hidden *h = hide(&how, 3, 5, COUNT), *again = hide(&how, 3, 5, COUNT);
    auto_free struct hidden *part = hide(&how, 3, 5, 100); /* a row cut off earlier */
    auto_free struct hidden *seed = hide(&other_seed, 3, 5, COUNT);
    auto_free struct hidden *epoch = hide(&how, 4, 5, COUNT), *sample = hide(&how, 3, 6, COUNT);
    assert_memory_equal(h, again, sizeof *h);
    assert_memory_equal(h->ids, part->ids, 100 * sizeof *h->ids);
    assert_memory_not_equal(h->targets, seed->targets, sizeof h->targets);
    assert_memory_not_equal(h->targets, epoch->targets, sizeof h->targets);
    assert_memory_not_equal(h->targets, sample->targets, sizeof h->targets);
}

static void test_pairs(void **state)
{
    (void)state;
    enum { SAMPLES = 4000 };
    int others = 0, first_half = 0;
    for (int64_t i = 0; i < SAMPLES; i++) {
        others += masking_next_is_random(1, 2, i);
        assert_int_equal(masking_next_is_random(1, 2, i), masking_next_is_random(1, 2, i));
        int64_t other = masking_random_next(1, 2, i, 0, 100);
        assert_in_range(other, 0, 99);
        first_half += other < 50;
    }
    assert_in_range(others, SAMPLES / 2 - 127, SAMPLES / 2 + 127);
    assert_in_range(first_half, SAMPLES / 2 - 127, SAMPLES / 2 + 127);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_pure),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
