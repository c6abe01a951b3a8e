/* Weights that are gathered in fp8: the same bits as of those that are gathered in bf16 and cast by
 * each rank, with fewer bytes between ranks and in memory. */
#include "base/mem.h"
#include "tests/agent/small_models.h"
#include "tests/agent/world_check.h"
#include "tests/support.h"

#include <string.h>

/* Elements: of blocks (17,664 and more); of products within them (2,304 and more), so that what
 * multiplies one x is in several units. */
enum { BLOCKS = 15000, PRODUCTS = 2000 };

static const struct run_row {
    const char *what, *family;
    bool tied; /* of a Llama: with biases, too */
    int64_t cut;
    int ranks;
    enum shard_strategy strategy;
    int micro_batches; /* 0: one */
    bool bf16_slices, forward_prefetch, update_beside, offload, recomputes;
    bool on_gpus;  /* emulated ones take their time */
    int fp8_units; /* that the world gathers */
} runs[] = {
    {"two ranks", "Llama", false, BLOCKS, 2, FULL_SHARD, .on_gpus = true, .fp8_units = 3},
    {"slices that cut matrices in three", "Llama", false, BLOCKS, 3, FULL_SHARD, .micro_batches = 1,
     .fp8_units = 3},
    {"biases", "Llama", true, BLOCKS, 4, FULL_SHARD, .forward_prefetch = true, .fp8_units = 3},
    {"units within blocks", "Llama", false, PRODUCTS, 2, FULL_SHARD, .on_gpus = true,
     .fp8_units = 16},
    {"Conv1D", "GPT2", true, BLOCKS, 2, FULL_SHARD, .on_gpus = true, .fp8_units = 4},
    {"a table of positions", "T5", true, BLOCKS, 3, FULL_SHARD, .recomputes = true, .fp8_units = 4},
    {"gates", "T5", false, BLOCKS, 2, SHARD_GRAD_OP, .micro_batches = 2, .fp8_units = 4},
    {"BERT", "BertForMaskedLM", true, BLOCKS, 2, FULL_SHARD, .micro_batches = 1, .fp8_units = 2},
    {"HYBRID_SHARD", "Llama", false, BLOCKS, 4, HYBRID_SHARD, .update_beside = true},
    {"HYBRID_SHARD_ZERO2", "Llama", false, BLOCKS, 4, HYBRID_SHARD_ZERO2, .micro_batches = 1},
    {"weights in bf16 alone", "Llama", false, BLOCKS, 2, FULL_SHARD, .bf16_slices = true,
     .fp8_units = 3},
    {"an update beside", "Llama", false, BLOCKS, 2, FULL_SHARD, .micro_batches = 2,
     .forward_prefetch = true, .update_beside = true, .recomputes = true, .on_gpus = true,
     .fp8_units = 3},
    {"slices on the host", "Llama", false, BLOCKS, 2, FULL_SHARD, .offload = true, .on_gpus = true,
     .fp8_units = 3},
};

static struct world world_of(const struct run_row *row, const struct architecture *a)
{
    struct world w = {
        .ranks = row->ranks,
        .config = world_shard_config(row->ranks, row->strategy),
        .min_num_params = row->cut,
        .offload = row->offload,
        .language = a,
        .T = 7,
        .fp8 = true,
        .checkpointing = row->recomputes ? TAPE_CHECKPOINTING_FULL : TAPE_CHECKPOINTING_NONE,
        .optim = optim_defaults(&optim_adamw),
        .lr = 0.01f,
        .steps = 3,
        .rows = 2 * row->ranks * (row->micro_batches ? row->micro_batches : 1),
        .micro_batches = row->micro_batches,
    };
    w.config.param_dtype = DTYPE_BF16;
    w.config.slice_dtype = row->bf16_slices ? DTYPE_BF16 : DTYPE_F32;
    w.config.forward_prefetch = row->forward_prefetch;
    w.config.update_beside = row->update_beside;
    return w;
}

static void check_run(const struct run_row *row)
{
    struct architecture a = small_model(row->family, row->tied);
    struct world_result wide, narrow;
    a.t5.d_kv = 8; /* six heads: 48 */
    a.t5.num_layers = a.t5.num_decoder_layers = a.bert.num_hidden_layers = 2;
    struct world w = world_of(row, &a);
    world_must_run(&w, &wide, row->what);
    w.config.gathers_fp8 = true;
    world_must_run(&w, &narrow, row->what);
    world_assert_bits(&narrow, &wide, row->what);
    /* HYBRID's groups have communicators of their own */
    if (row->strategy != HYBRID_SHARD && row->strategy != HYBRID_SHARD_ZERO2)
        assert_true(narrow.first.bytes_sent < wide.first.bytes_sent);
    /* the messages of each such unit, once an update */
    const int64_t *calls = narrow.first.calls, *without = wide.first.calls;
    assert_int_equal(calls[COMM_ALL_GATHER] - without[COMM_ALL_GATHER], row->fp8_units);
    int64_t unit = narrow.use.peak_bytes[MEMORY_UNIT], before = wide.use.peak_bytes[MEMORY_UNIT];
    print_message("# %s: %lld bytes sent, %lld before; %lld of units, %lld before\n", row->what,
                  (long long)narrow.first.bytes_sent, (long long)wide.first.bytes_sent,
                  (long long)unit, (long long)before);
    assert_true(unit < before);
    world_assert_no_fresh_blocks(narrow.fresh_blocks, w.steps, row->what);
    world_result_free(&narrow);
    world_result_free(&wide);
}

static void same_bits(void **state)
{
    (void)state;
    bool is_cpu = strcmp(support_device(), "cpu") == 0;
    for (size_t i = 0; i < array_length(runs); i++)
        if (is_cpu || runs[i].on_gpus)
            check_run(&runs[i]);
}

/* Wherever memory ends, nothing stays. */
static void running_out_of_memory_leaks_nothing(void **state)
{
    (void)state;
    const struct run_row *row = &runs[0];
    const struct architecture a = small_model(row->family, row->tied);
    struct world w = world_of(row, &a);
    struct world_result result;
    w.config.gathers_fp8 = true;
    w.steps = 2;
    world_must_run(&w, &result, "enough memory");
    int64_t peak = result.use.peak_total_bytes;
    world_result_free(&result);
    for (int part = 1; part < 12; part++) {
        struct error err;
        w.limit_bytes = peak * part / 12;
        assert_int_equal(world_run(&w, &result, &err), -1);
        assert_fails(-1, &result.errors[1], ERR_MEMORY, "no device memory for ");
        assert_int_equal(result.leaked_bytes, 0);
        world_result_free(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(running_out_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
