/* Small T5s and BERTs in every layout, and with every way to spare memory: their blocks share the
 * encoder's output and their stack's position bias, their heads share embeddings. */
#include "agent/models/families.h"
#include "base/mem.h"
#include "tests/agent/world_check.h"
#include "tests/support.h"

#include <stdio.h>

enum { MODELS = 4 };

static struct architecture model_of(int which)
{
    struct architecture a = architecture_default(which < 2 ? &family_t5 : &family_bert);
    a.t5.vocab_size = a.bert.vocab_size = 37;
    a.t5.d_model = a.bert.hidden_size = 12;
    a.t5.d_kv = 5;
    a.t5.d_ff = a.bert.intermediate_size = 20;
    a.t5.num_layers = a.bert.num_hidden_layers = 3;
    a.t5.num_decoder_layers = 2;
    a.t5.num_heads = a.bert.num_attention_heads = 3;
    a.t5.relative_attention_num_buckets = 8;
    a.t5.relative_attention_max_distance = 20;
    a.t5.tie_word_embeddings = which == 0;
    a.t5.feed_forward_proj = which == 0 ? T5_RELU : T5_GATED_GELU;
    a.bert.head = which == 2 ? BERT_MASKED_LM : BERT_CLASSIFICATION;
    a.bert.max_position_embeddings = 16;
    a.bert.initializer_range = 0.2;
    a.bert.num_labels = 3;
    a.t5.dropout_rate = a.bert.hidden_dropout_prob = a.bert.attention_probs_dropout_prob = 0;
    return a;
}

static struct world world_of(const struct architecture *a, int ranks, enum shard_strategy strategy)
{
    struct world w = {
        .ranks = ranks,
        .config = world_shard_config(ranks, strategy),
        .language = a,
        .T = 11,
        .optim = optim_defaults(&optim_sgd),
        .lr = 0.05f,
        .steps = 2,
        .rows = 24,
    };
    w.optim.momentum = 0.9f;
    return w;
}

/* Elements: of the root alone, of blocks and of the products within them: units inside a segment
 * that runs again. */
static const int64_t cuts[] = {0, 1000, 140};

static void any_layout_trains_the_same(void **state)
{
    (void)state;
    for (int which = 0, turn = 0; which < MODELS; which++) {
        const struct architecture a = model_of(which);
        struct world_result alone, got;
        struct world one = world_of(&a, 1, NO_SHARD);
        world_must_run(&one, &alone, "one rank");
        for (int ranks = 1; ranks <= 4; ranks++)
            for (int strategy = FULL_SHARD; strategy <= HYBRID_SHARD_ZERO2; strategy++, turn++) {
                struct world w = world_of(&a, ranks, (enum shard_strategy)strategy);
                uint32_t choice = world_hash((uint32_t)turn, 1);
                w.min_num_params = cuts[turn % 3];
                w.checkpointing = (enum tape_checkpointing)(turn / 3 % 3);
                w.horizon = choice & 1 ? (int)(choice >> 8) % 4 : 0;
                w.config.backward_prefetch = (enum backward_prefetch)((choice >> 4) % 3);
                w.config.forward_prefetch = choice & 2;
                w.config.limit_all_gathers = choice & 4;
                w.config.accumulate_sharded = choice & 8;
                w.micro_batches = choice & 16 ? 2 : 1;
                w.offload = choice & 32;
                char what[128];
                snprintf(what, sizeof what,
                         "model %d, %d ranks, strategy %d, cut %d, keeps %d, horizon %d, choice %x",
                         which, ranks, strategy, (int)w.min_num_params, w.checkpointing, w.horizon,
                         choice);
                world_must_run(&w, &got, what);
                world_assert_same(&got, &alone, w.steps, what);
                world_result_free(&got);
            }
        world_result_free(&alone);
    }
}

/* With dropout, so that numbers drawn again are seen to be the same. */
static void sparing_memory_changes_no_bit(void **state)
{
    (void)state;
    static const int horizons[] = {0, 1, 2};
    for (int which = 0; which < MODELS; which++) {
        struct architecture a = model_of(which);
        a.t5.dropout_rate = a.bert.hidden_dropout_prob = a.bert.attention_probs_dropout_prob = 0.2;
        struct world w = world_of(&a, 2, FULL_SHARD);
        struct world_result plain, got;
        w.min_num_params = cuts[1 + which % 2];
        w.micro_batches = 2;
        world_must_run(&w, &plain, "keeps all");
        for (int keeps = TAPE_CHECKPOINTING_NONE; keeps <= TAPE_CHECKPOINTING_FULL; keeps++)
            for (size_t h = 0; h < array_length(horizons); h++) {
                char what[64];
                snprintf(what, sizeof what, "model %d, keeps %d, horizon %d", which, keeps,
                         horizons[h]);
                w.checkpointing = (enum tape_checkpointing)keeps;
                w.horizon = horizons[h];
                world_must_run(&w, &got, what);
                world_assert_bits(&got, &plain, what);
                /* running again gathers nothing twice */
                assert_int_equal(got.second.calls[COMM_ALL_GATHER],
                                 plain.second.calls[COMM_ALL_GATHER]);
                assert_int_equal(got.second.calls[COMM_REDUCE_SCATTER],
                                 plain.second.calls[COMM_REDUCE_SCATTER]);
                world_result_free(&got);
            }
        world_result_free(&plain);
    }
}

/* The first step leaves all that later ones need. */
static void no_step_after_the_first_allocates(void **state)
{
    (void)state;
    for (int turn = 0; turn < 3 * MODELS; turn++) {
        const struct architecture a = model_of(turn % MODELS);
        struct world w = world_of(&a, 2, (enum shard_strategy)(FULL_SHARD + turn / MODELS));
        struct world_result result;
        uint32_t choice = world_hash((uint32_t)turn, 2);
        char what[32];
        snprintf(what, sizeof what, "turn %d", turn);
        w.steps = 3;
        w.min_num_params = cuts[turn % 3];
        w.checkpointing = (enum tape_checkpointing)(choice % 3);
        w.horizon = (int)(choice >> 4) % 3;
        w.offload = choice & 256;
        w.micro_batches = choice & 512 ? 2 : 1;
        w.config.accumulate_sharded = choice & 1024;
        w.config.param_dtype = choice & 2048 ? DTYPE_BF16 : DTYPE_F32;
        world_must_run(&w, &result, what);
        world_assert_no_fresh_blocks(result.fresh_blocks, w.steps, what);
        world_result_free(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_layout_trains_the_same),
        cmocka_unit_test(sparing_memory_changes_no_bit),
        cmocka_unit_test(no_step_after_the_first_allocates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
