#include "agent/models/mnist.h"
#include "agent/shard/wrap.h"
#include "base/mem.h"
#include "tests/agent/world_check.h"
#include "tests/support.h"

#include <stdio.h>

static struct world small_world(int ranks, enum shard_strategy strategy)
{
    return (struct world){
        .ranks = ranks,
        .config = world_shard_config(ranks, strategy),
        .shape = world_small_shape(),
        .optim = optim_defaults(&optim_adadelta),
        .lr = 1.0f,
        .steps = 3,
        .rows = 24,
    };
}

/* Every world size, strategy and cut into units; the other settings take turns, so that each of
 * their combinations is met. */
static void any_layout_trains_the_same(void **state)
{
    (void)state;
    static const int64_t cuts[] = {0, 50, 500};
    struct world_result alone, got;
    struct world one = small_world(1, NO_SHARD);
    world_must_run(&one, &alone, "one rank");

    int turn = 0;
    for (int ranks = 1; ranks <= 4; ranks++)
        for (int strategy = FULL_SHARD; strategy <= HYBRID_SHARD_ZERO2; strategy++)
            for (size_t cut = 0; cut < array_length(cuts); cut++)
                for (int round = 0; round < 3; round++, turn++) {
                    struct world w = small_world(ranks, (enum shard_strategy)strategy);
                    w.min_num_params = cuts[cut];
                    uint32_t choice = world_hash((uint32_t)turn, 0);
                    w.config.backward_prefetch = (enum backward_prefetch)(turn % 3);
                    w.config.forward_prefetch = choice & 1;
                    w.config.limit_all_gathers = choice & 2;
                    w.config.accumulate_sharded = choice & 4;
                    w.micro_batches = choice & 8 ? 2 : 1;
                    w.offload = choice & 16;
                    char what[128];
                    snprintf(what, sizeof what,
                             "%d ranks, strategy %d, cut %d, prefetch %d %d, limit %d, micro %d, "
                             "sharded %d, offload %d",
                             ranks, strategy, (int)cuts[cut], w.config.backward_prefetch,
                             w.config.forward_prefetch, w.config.limit_all_gathers, w.micro_batches,
                             w.config.accumulate_sharded, w.offload);
                    world_must_run(&w, &got, what);
                    world_assert_same(&got, &alone, w.steps, what);
                    world_result_free(&got);
                }
    world_result_free(&alone);
}

/* The masks belong to rows of the whole batch, so they too are the same. */
static void dropout_does_not_depend_on_the_layout(void **state)
{
    (void)state;
    struct world_result alone, got;
    struct world w = small_world(1, NO_SHARD);
    w.shape.dropout1 = 0.25f;
    w.shape.dropout2 = 0.5f;
    world_must_run(&w, &alone, "one rank");
    for (int ranks = 2; ranks <= 4; ranks++) {
        w.ranks = ranks;
        w.config.strategy = FULL_SHARD;
        w.min_num_params = 500;
        world_must_run(&w, &got, "dropout");
        world_assert_same(&got, &alone, w.steps, "dropout");
        world_result_free(&got);
    }
    world_result_free(&alone);
}

/* Of the second step. */
static int64_t calls_of(const struct world_result *result, enum comm_collective collective)
{
    return result->second.calls[collective] - result->first.calls[collective];
}

/* Per optimizer step with U units below the root, of the rules in PyTorch's FSDP: FULL_SHARD
 * gathers 2 U + 1 times, SHARD_GRAD_OP U + 1, both reduce U + 1 times. Cut 500 gives U = 1, cut 50
 * U = 3. */
static void collectives_are_as_many_as_pytorchs(void **state)
{
    (void)state;
    static const struct {
        enum shard_strategy strategy;
        int64_t cut;
        int micro_batches;
        bool sharded;
        int gathers, reduce_scatters, all_reduces;
    } rows[] = {
        {FULL_SHARD, 0, 1, false, 1, 1, 0},     {FULL_SHARD, 500, 1, false, 3, 2, 0},
        {FULL_SHARD, 50, 1, false, 7, 4, 0},    {FULL_SHARD, 50, 3, true, 21, 12, 0},
        {FULL_SHARD, 50, 3, false, 21, 4, 0},   {SHARD_GRAD_OP, 0, 1, false, 1, 1, 0},
        {SHARD_GRAD_OP, 50, 1, false, 4, 4, 0}, {SHARD_GRAD_OP, 50, 3, true, 12, 12, 0},
        {SHARD_GRAD_OP, 50, 3, false, 4, 4, 0}, {NO_SHARD, 50, 1, false, 0, 0, 4},
        {NO_SHARD, 50, 3, true, 0, 0, 4},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        for (int prefetch = NO_PREFETCH; prefetch <= BACKWARD_POST; prefetch++) {
            struct world w = small_world(2, rows[i].strategy);
            struct world_result result;
            w.min_num_params = rows[i].cut;
            w.micro_batches = rows[i].micro_batches;
            w.config.accumulate_sharded = rows[i].sharded;
            w.config.backward_prefetch = (enum backward_prefetch)prefetch;
            w.config.forward_prefetch = prefetch > 0;
            w.config.limit_all_gathers = prefetch > 1;
            w.steps = 2;
            world_must_run(&w, &result, "collectives");
            assert_int_equal(calls_of(&result, COMM_ALL_GATHER), rows[i].gathers);
            assert_int_equal(calls_of(&result, COMM_REDUCE_SCATTER), rows[i].reduce_scatters);
            assert_int_equal(calls_of(&result, COMM_ALL_REDUCE),
                             rows[i].all_reduces + 1); /* the loss */
            world_result_free(&result);
        }
}

static struct memory_use use_of(const struct world *w)
{
    struct world_result result;
    world_must_run(w, &result, "memory");
    struct memory_use use = result.use;
    world_result_free(&result);
    return use;
}

/* The tutorial's network on four ranks with 64 samples each, as the tutorial compares them; fewer
 * for ThreadSanitizer, which looks at threads and takes a minute for those. */
#ifdef __SANITIZE_THREAD__
enum { TUTORIAL_ROWS = 4 };
#else
enum { TUTORIAL_ROWS = 64 };
#endif

static void wrapping_and_sharding_save_memory(void **state)
{
    (void)state;
    struct world w = small_world(4, FULL_SHARD);
    w.shape = mnist_default_shape;
    w.rows = 4 * TUTORIAL_ROWS;
    w.steps = 2;
    w.min_num_params = 20000;
    struct memory_use wrapped = use_of(&w);
    w.min_num_params = 0;
    struct memory_use one_unit = use_of(&w);
    w.config.strategy = NO_SHARD;
    struct memory_use whole = use_of(&w);
    print_message("# peak bytes: wrapped %lld, one unit %lld, NO_SHARD %lld\n",
                  (long long)wrapped.peak_total_bytes, (long long)one_unit.peak_total_bytes,
                  (long long)whole.peak_total_bytes);
    assert_true(wrapped.peak_total_bytes < one_unit.peak_total_bytes);
    assert_true(one_unit.peak_total_bytes < whole.peak_total_bytes);
    assert_int_equal(whole.peak_bytes[MEMORY_UNIT], 0); /* the slices are the weights */
    assert_int_equal(whole.peak_bytes[MEMORY_SHARD], 1199888 * 4);
    assert_int_equal(one_unit.peak_bytes[MEMORY_SHARD], 1199904 / 4 * 4);
    assert_int_equal(one_unit.peak_bytes[MEMORY_UNIT], 1199904 * 4);
}

/* Bytes of gathered units at their peak. Flat units of the small network at two ranks: root 48
 * elements (conv1), conv2 224, fc1 1552, fc2 176; the root is always there. */
static void prefetch_costs_what_it_may(void **state)
{
    (void)state;
    static const struct {
        enum shard_strategy strategy;
        enum backward_prefetch backward;
        bool forward, limit;
        int64_t elements;
    } rows[] = {
        {FULL_SHARD, NO_PREFETCH, false, true, 48 + 1552},
        {FULL_SHARD, BACKWARD_POST, false, true, 48 + 1552},
        {FULL_SHARD, BACKWARD_PRE, false, true, 48 + 224 + 1552},
        {FULL_SHARD, NO_PREFETCH, true, true, 48 + 224 + 1552},
        {FULL_SHARD, NO_PREFETCH, true, false, 48 + 224 + 1552 + 176},
        {FULL_SHARD, BACKWARD_PRE, false, false, 48 + 224 + 1552 + 176},
        {SHARD_GRAD_OP, NO_PREFETCH, false, true, 48 + 224 + 1552 + 176},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct world w = small_world(2, rows[i].strategy);
        w.min_num_params = 50;
        w.steps = 3;
        w.config.backward_prefetch = rows[i].backward;
        w.config.forward_prefetch = rows[i].forward;
        w.config.limit_all_gathers = rows[i].limit;
        assert_int_equal(use_of(&w).peak_bytes[MEMORY_UNIT], 4 * rows[i].elements);
    }
}

static void offload_keeps_the_state_away_from_the_device(void **state)
{
    (void)state;
    struct world w = small_world(2, FULL_SHARD);
    w.offload = true;
    w.micro_batches = 2;
    struct memory_use use = use_of(&w);
    assert_int_equal(use.peak_bytes[MEMORY_SHARD], 0);
    assert_int_equal(use.peak_bytes[MEMORY_OPTIMIZER], 0);
    assert_int_equal(use.current_bytes[MEMORY_GRADIENT], 0);
    assert_true(use.peak_bytes[MEMORY_UNIT] > 0);
}

/* Evaluation leaves the root gathered, SHARD_GRAD_OP every unit, until the engine is reset. */
static void a_reset_drops_what_evaluation_gathered(void **state)
{
    (void)state;
    static const struct {
        enum shard_strategy strategy;
        int64_t elements;
    } rows[] = {{FULL_SHARD, 48}, {SHARD_GRAD_OP, 48 + 224 + 1552 + 176}, {NO_SHARD, 0}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct world w = small_world(2, rows[i].strategy);
        struct world_result result;
        w.min_num_params = 50;
        w.steps = 1;
        world_must_run(&w, &result, "evaluation");
        assert_int_equal(result.evaluated.current_bytes[MEMORY_UNIT], 4 * rows[i].elements);
        assert_int_equal(result.reset.current_bytes[MEMORY_UNIT], 0);
        world_result_free(&result);
    }
}

/* Rank 1 runs out of device memory in its second step, ever later: it says what for, the other
 * learns that a peer is gone, and nothing leaks. */
static void running_out_of_memory_ends_all_ranks(void **state)
{
    (void)state;
    struct world w = small_world(2, FULL_SHARD);
    w.min_num_params = 50;
    w.steps = 2;
    int64_t peak = use_of(&w).peak_total_bytes;
    for (int fifth = 1; fifth < 5; fifth++) {
        struct world_result result;
        struct error err;
        w.limit_bytes = peak * fifth / 5;
        assert_int_equal(world_run(&w, &result, &err), -1);
        assert_fails(-1, &result.errors[1], ERR_MEMORY, "no device memory for ");
        assert_fails(-1, &result.errors[0], ERR_PEER, "");
        assert_int_equal(result.leaked_bytes, 0);
        world_result_free(&result);
    }
}

static int lose_peer(void *args, struct error *err)
{
    (void)args;
    return error_set(err, ERR_PEER, "all_gather: rank 1 is lost");
}

static void failing_all_gather(struct comm *c, struct stream *s, enum dtype t, void *recv,
                               const void *send, int64_t count)
{
    (void)c, (void)t, (void)recv, (void)send, (void)count;
    stream_call(s, lose_peer, NULL, 0);
}

/* A collective fails on the engine's own stream, after the hook returned. */
static void a_failed_collective_comes_out_of_sync(void **state)
{
    (void)state;
    static const struct comm_functions functions = {.all_gather = failing_all_gather};
    struct comm comm = {.fn = &functions, .rank = 0, .size = 2};
    struct shard_config config = {.strategy = FULL_SHARD};
    auto_arena struct arena *arena = arena_open();
    struct module *root = module_new(arena, "", "Net", NULL);
    module_add_param(arena, root, "w", 0, 1, (int64_t[]){9},
                     (struct param_init){INIT_UNIFORM, 0, 0});
    wrap_none(root);
    struct device *device;
    struct stream *compute;
    struct shard *shard;
    struct error err;
    assert_ok(device_open("cpu", 1, &device, &err), &err);
    assert_ok(stream_open(device, "compute", &compute, &err), &err);
    assert_ok(shard_open(&config, compute, device, &comm, root, &shard, &err), &err);
    shard_init_values(shard, 1);
    assert_ok(shard_sync(shard, &err), &err);
    struct tape_hooks hooks = shard_hooks(shard);
    assert_ok(hooks.before_forward(hooks.ctx, root, &err), &err);
    assert_fails(shard_sync(shard, &err), &err, ERR_PEER, "rank 1 is lost");
    assert_fails(stream_sync(compute, &err), &err, ERR_PEER, "rank 1 is lost");
    shard_close(shard);
    stream_close(compute);
    device_close(device);
}

/* What a checkpoint's values are written over, in each dtype of slices. */
static void cleared_values_are_zero(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16};
    for (size_t i = 0; i < array_length(dtypes); i++) {
        auto_arena struct arena *arena = arena_open();
        struct module *root = module_new(arena, "", "Net", NULL);
        struct param *w = module_add_param(arena, root, "w", 0, 1, (int64_t[]){9},
                                           (struct param_init){INIT_UNIFORM, 1, 2});
        struct shard_config config = {
            .strategy = NO_SHARD, .slice_dtype = dtypes[i], .param_dtype = dtypes[i]};
        struct device *device;
        struct stream *compute;
        struct shard *shard;
        struct comm *comm;
        struct error err;
        float drawn[9], cleared[9];
        wrap_none(root);
        assert_ok(device_open("cpu", 1, &device, &err), &err);
        assert_ok(stream_open(device, "compute", &compute, &err), &err);
        assert_ok(comm_self_open(&comm, &err), &err);
        assert_ok(shard_open(&config, compute, device, comm, root, &shard, &err), &err);
        shard_init_values(shard, 1);
        assert_ok(shard_gather_param(shard, w, drawn, &err), &err);
        shard_clear_values(shard);
        assert_ok(shard_gather_param(shard, w, cleared, &err), &err);
        for (int k = 0; k < 9; k++)
            assert_true(drawn[k] >= 1 && cleared[k] == 0);
        shard_close(shard);
        comm_close(comm);
        stream_close(compute);
        device_close(device);
    }
}

static void groups_must_divide_the_world(void **state)
{
    (void)state;
    static const int sizes[] = {0, 2, 4};
    for (size_t i = 0; i < array_length(sizes); i++) {
        struct world w = small_world(3, HYBRID_SHARD);
        struct world_result result;
        struct error err;
        w.config.shard_group_size = sizes[i];
        assert_fails(world_run(&w, &result, &err), &err, ERR_CONFIG, "does not divide");
        world_result_free(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_layout_trains_the_same),
        cmocka_unit_test(dropout_does_not_depend_on_the_layout),
        cmocka_unit_test(collectives_are_as_many_as_pytorchs),
        cmocka_unit_test(wrapping_and_sharding_save_memory),
        cmocka_unit_test(prefetch_costs_what_it_may),
        cmocka_unit_test(offload_keeps_the_state_away_from_the_device),
        cmocka_unit_test(a_reset_drops_what_evaluation_gathered),
        cmocka_unit_test(running_out_of_memory_ends_all_ranks),
        cmocka_unit_test(a_failed_collective_comes_out_of_sync),
        cmocka_unit_test(cleared_values_are_zero),
        cmocka_unit_test(groups_must_divide_the_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
