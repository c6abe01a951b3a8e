#include "tests/agent/world_check.h"

#include "tests/agent/fixture.h"
#include "tests/support.h"

#include <math.h>

struct shard_config world_shard_config(int ranks, enum shard_strategy strategy)
{
    return (struct shard_config){
        .strategy = strategy,
        .shard_group_size = ranks == 4   ? 2
                            : ranks == 3 ? 3
                                         : 1,
        .backward_prefetch = BACKWARD_PRE,
        .limit_all_gathers = true,
        .accumulate_sharded = true,
    };
}

void world_must_run(const struct world *w, struct world_result *ret_result, const char *what)
{
    struct error err;
    if (world_run(w, ret_result, &err) < 0)
        fail_msg("%s: %s", what, err.msg);
    assert_int_equal(ret_result->leaked_bytes, 0);
}

void world_assert_same(const struct world_result *got, const struct world_result *expected,
                       int steps, const char *what)
{
    for (int i = 0; i <= steps; i++) {
        double a = i < steps ? got->losses[i] : got->evaluation;
        double b = i < steps ? expected->losses[i] : expected->evaluation;
        if (!(fabs(a - b) <= 1e-5 * fabs(b)))
            fail_msg("%s: loss %d is %.9g, not %.9g", what, i, a, b);
    }
    fixture_compare(what, got->gradients, expected->gradients, got->count, 1e-6, 0);
    fixture_compare(what, got->weights, expected->weights, got->count, 1e-5, 0);
    assert_memory_equal(got->gathered, got->weights, (size_t)got->count * sizeof(float));
}

void world_assert_no_fresh_blocks(const int64_t *blocks, int steps, const char *what)
{
    assert_true(blocks[0] > 0);
    for (int step = 1; step < steps; step++)
        if (blocks[step] != blocks[0])
            fail_msg("%s: %lld blocks after step 1, %lld after step %d", what, (long long)blocks[0],
                     (long long)blocks[step], step + 1);
}

void world_assert_bits(const struct world_result *got, const struct world_result *expected,
                       const char *what)
{
    size_t bytes = (size_t)got->count * sizeof(float);
    if (memcmp(got->losses, expected->losses, sizeof got->losses) != 0 ||
        got->evaluation != expected->evaluation ||
        memcmp(got->gradients, expected->gradients, bytes) != 0 ||
        memcmp(got->weights, expected->weights, bytes) != 0)
        fail_msg("%s: other bits", what);
}
