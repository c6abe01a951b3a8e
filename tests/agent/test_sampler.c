#include "agent/dataset/sampler.h"

#include "base/mem.h"
#include "tests/agent/fixture.h"
#include "tests/support.h"

#include <stdbool.h>
#include <string.h>

/* What torch.utils.data.DistributedSampler gives without shuffling: the fixture has the first two
 * and the last two indices of each rank, or all of them if there are at most four. */
static void test_rule(void **state)
{
    (void)state;
    static const struct {
        int64_t items;
        int world;
    } rows[] = {{10, 4}, {3, 8}, {10000, 3}, {60000, 3}};
    struct fixture_file *file = fixture_open("rules.safetensors");
    for (size_t i = 0; i < array_length(rows); i++) {
        for (int rank = 0; rank < rows[i].world; rank++) {
            struct sampler s = {rows[i].items, rank, rows[i].world, 0};
            int64_t count, one;
            const float *expected = fixture_get(file, &count, "sampler/%d_%d/rank%d/indices",
                                                (int)s.items, s.world_size, rank);
            const float *all = fixture_get(file, &one, "sampler/%d_%d/rank%d/count", (int)s.items,
                                           s.world_size, rank);
            assert_int_equal(sampler_count(&s), (int64_t)all[0]);
            for (int64_t k = 0; k < count; k++) {
                int64_t place = k < count / 2 ? k : sampler_count(&s) - count + k;
                assert_int_equal(sampler_index(&s, NULL, place), (int64_t)expected[k]);
            }
        }
    }
    fixture_close(file);
}

static void test_permutation(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 10, 1000, 60000};
    for (size_t n = 0; n < array_length(sizes); n++) {
        int64_t items = sizes[n], fixed = 0;
        auto_free int64_t *order = xcalloc((size_t)items, sizeof *order);
        auto_free int64_t *again = xcalloc((size_t)items, sizeof *again);
        auto_free bool *seen = xcalloc((size_t)items, sizeof *seen);
        sampler_permute(items, 7, 3, order);
        for (int64_t i = 0; i < items; i++) {
            assert_in_range(order[i], 0, items - 1);
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
            fixed += order[i] == i;
        }
        sampler_permute(items, 7, 3, again);
        assert_memory_equal(order, again, (size_t)items * sizeof *order);
        if (items < 1000)
            continue;
        assert_true(fixed < 12); /* 1 is expected; 12 or more has probability 1e-9 */
        sampler_permute(items, 7, 4, again);
        assert_memory_not_equal(order, again, (size_t)items * sizeof *order);
        sampler_permute(items, 8, 3, again);
        assert_memory_not_equal(order, again, (size_t)items * sizeof *order);
    }
}

/* Every order of 4 things comes up about equally often. */
static void test_permutation_is_fair(void **state)
{
    (void)state;
    enum { TRIALS = 24000 };
    int seen[256] = {0}, orders = 0;
    for (uint64_t epoch = 0; epoch < TRIALS; epoch++) {
        int64_t order[4];
        sampler_permute(4, 1, epoch, order);
        seen[order[0] << 6 | order[1] << 4 | order[2] << 2 | order[3]]++;
    }
    for (int i = 0; i < 256; i++) {
        if (seen[i] == 0)
            continue;
        orders++;
        assert_in_range(seen[i], 1000 - 160, 1000 + 160); /* 5 standard deviations */
    }
    assert_int_equal(orders, 24);
}

enum { ITEMS = 23 };

/* Of what is behind `first` the ranks together see everything, in the order's own order; then its
 * beginning until all have equally many. */
static void check_cover(const int64_t *order, int world, int64_t first)
{
    int seen[ITEMS] = {0};
    int64_t total = 0;
    for (int rank = 0; rank < world; rank++) {
        struct sampler s = {ITEMS, rank, world, first};
        for (int64_t i = 0; i < sampler_count(&s); i++, total++)
            seen[sampler_index(&s, order, i)]++;
    }
    assert_int_equal(total, (ITEMS - first + world - 1) / world * world);
    for (int64_t place = 0; place < ITEMS; place++)
        assert_int_equal(seen[order[place]], (place >= first) + (place < first + total - ITEMS));
}

static void test_ranks_cover_all(void **state)
{
    (void)state;
    int64_t order[ITEMS];
    sampler_permute(ITEMS, 1, 0, order);
    for (int world = 1; world <= 5; world++)
        for (int64_t first = 0; first <= ITEMS; first++)
            check_cover(order, world, first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_permutation_is_fair),
        cmocka_unit_test(test_ranks_cover_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
