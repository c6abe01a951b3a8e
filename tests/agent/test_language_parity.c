/* The language models against transformers. Expected figures and tolerances:
 * tests/data/parity/README.md. */
#include "agent/models/config_json.h"
#include "agent/nn/nn_loss.h"
#include "base/mem.h"
#include "tests/agent/fixture.h"
#include "tests/agent/language.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* bf16: what is allowed of gradients then, twice the largest distance of transformers' own. */
static const struct {
    const char *name;
    double bf16;
} cases[] = {
    {"llama", 0.08},
    {"llama_tied_llama3", 0.08},
    {"llama_bias_linear", 0.08},
    {"llama_dynamic", 0.08},
    {"llama_tied_padded", 0.08},
    {"mistral_padded", 0.08},
    {"gpt2", 0.08},
    {"gpt2_untied_gelu", 0.08},
    {"t5", 0.26},
    {"t5_v1_1", 0.08},
    {"bert_masked_lm", 0.08},
    {"bert_pretraining", 0.08},
    {"bert_classification", 0.08},
};

/* The model of a case: its config.json lies in the file. */
struct parity {
    struct fixture_file *file;
    struct arena *arena;
    struct architecture architecture;
    int64_t T;
};

static struct parity parity_open(const char *name)
{
    struct parity p = {.arena = arena_open()};
    struct error err;
    int64_t count;
    p.file = fixture_open(arena_printf(p.arena, "language_%s.safetensors", name));
    const char *text = fixture_note(p.file, "config");
    assert_ok(config_json_read(p.arena, name, text, strlen(text), &p.architecture, NULL, &err),
              &err);
    fixture_get(p.file, &count, "target");
    p.T = count / LANGUAGE_ROWS;
    return p;
}

static void parity_close(struct parity *p)
{
    fixture_close(p->file);
    arena_close(p->arena);
}

/* The formulas on both sides are the same. What a decoder reads is not in the file. */
static void compare_batch(const struct parity *p, const struct model *model,
                          const struct batch *batch)
{
    int64_t tokens = batch->rows * batch->T, source = batch->rows * batch->T_source;
    const struct {
        const char *name;
        const int32_t *values;
        int64_t count;
    } rows[] = {
        {"tokens", model->task == MODEL_TRANSLATION ? NULL : batch->tokens, tokens},
        {"target", batch->target, tokens},
        {"source", batch->source, source},
        {"source_counts", batch->source_counts, batch->rows},
        {"token_counts", batch->token_counts, batch->rows},
        {"token_types", batch->token_types, tokens},
        {"labels", batch->labels, batch->rows},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        if (!rows[i].values)
            continue;
        int64_t count;
        const float *expected = fixture_get(p->file, &count, "%s", rows[i].name);
        assert_int_equal(count, rows[i].count);
        for (int64_t k = 0; k < count; k++)
            assert_int_equal(rows[i].values[k], (int32_t)expected[k]);
    }
}

static void compare_logits(const struct parity *p, const char *name, struct language *l,
                           double bound)
{
    int64_t count, label_count = 0;
    bool both = l->model->task == MODEL_PRETRAINING;
    const float *logits = fixture_get(p->file, &count, "logits"), *labels = NULL;
    if (both)
        labels = fixture_get(p->file, &label_count, "label_logits");
    float *got = arena_array(p->arena, float, count);
    float *got_labels = both ? arena_array(p->arena, float, label_count) : NULL;
    language_logits(l, got, NULL);
    fixture_compare(name, got, logits, count, bound, 0);
    if (both) {
        language_logits(l, got, got_labels);
        fixture_compare(name, got_labels, labels, label_count, bound, 0);
    }
}

/* Softmax does not change with the keys' bias: a gradient of it is rounding. */
static bool is_rounding(const float *gradient, int64_t count)
{
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += (double)gradient[i] * (double)gradient[i];
    return squares < 1e-24;
}

/* Forward and backward; bounds as the largest difference allowed of logits and loss, and relative
 * distance of each gradient. */
static void compare(const char *name, enum dtype dtype, double logits_bound, double loss_bound,
                    double gradient_bound)
{
    struct parity p = parity_open(name);
    struct language *l = language_open(&p.architecture, dtype, p.T);
    int64_t count;
    compare_batch(&p, l->model, &l->batch.batch);
    compare_logits(&p, name, l, logits_bound);
    double expected = (double)*fixture_get(p.file, &count, "loss");
    double evaluated = language_run(l, false), trained = language_run(l, true);
    assert_true(evaluated == trained);
    if (!(fabs(trained - expected) <= loss_bound))
        fail_msg("%s: the loss is %.9g, not %.9g", name, trained, expected);
    for (int i = 0; i < l->param_count; i++) {
        const float *gradient = fixture_get(p.file, &count, "grad/%s", l->params[i]->name);
        assert_int_equal(count, l->params[i]->count);
        if (is_rounding(gradient, count)) {
            fixture_compare(name, l->gradients[i], gradient, count, gradient_bound, 0);
            continue;
        }
        double distance = fixture_distance(l->gradients[i], gradient, count);
        if (!(distance <= gradient_bound))
            fail_msg("%s: the gradient of %s is off by %.2g", name, l->params[i]->name, distance);
    }
    language_close(l);
    parity_close(&p);
}

static void logits_loss_and_gradients_are_transformers(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(cases); i++)
        compare(cases[i].name, DTYPE_F32, 1e-4, 1e-5, 1e-5);
}

/* The bounds are twice the largest distance that transformers itself has in bf16. */
static void bf16_is_as_close_as_transformers(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(cases); i++)
        compare(cases[i].name, DTYPE_BF16, 0.11, 7.2e-3, cases[i].bf16);
}

/* Logits alive only a few rows at a time: the same loss bit for bit but for the order of sums. */
static void the_head_works_in_chunks(void **state)
{
    (void)state;
    struct parity p = parity_open("llama_tied_llama3");
    static const int64_t chunks[] = {1, 7, 65, 66, 67};
    for (size_t c = 0; c < array_length(chunks); c++) {
        p.architecture.llama.loss_chunk_rows = chunks[c];
        struct language *l = language_open(&p.architecture, DTYPE_F32, p.T);
        int64_t count;
        double expected = (double)*fixture_get(p.file, &count, "loss");
        double loss = language_run(l, true);
        assert_true(fabs(loss - expected) <= 1e-5);
        assert_true(fabs(language_run(l, false) - expected) <= 1e-5);
        language_run(l, true);
        for (int i = 0; i < l->param_count; i++) {
            const float *gradient = fixture_get(p.file, &count, "grad/%s", l->params[i]->name);
            assert_true(fixture_distance(l->gradients[i], gradient, count) <= 1e-5);
        }
        language_close(l);
    }
    parity_close(&p);
}

/* Of a large vocabulary: no more than a chunk of the logits is ever alive, in training too, where
 * their gradients lie in their place; in either dtype what the plan says of a logit, once. On a GPU
 * their rows are aligned. */
static void no_more_than_a_chunk_of_logits_is_alive(void **state)
{
    (void)state;
    enum { V = 3000, CHUNK = 8 };
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16};
    struct parity p = parity_open("llama");
    p.architecture.llama.vocab_size = V;
    const int64_t rows = LANGUAGE_ROWS * p.T;
    for (size_t d = 0; d < 2 * array_length(dtypes); d++) {
        enum dtype dtype = dtypes[d / 2];
        int64_t peaks[2], stride = V;
        for (int whole = 0; whole <= 1; whole++) {
            p.architecture.llama.loss_chunk_rows = whole ? rows : CHUNK;
            struct language *l = language_open(&p.architecture, dtype, p.T);
            language_run(l, d % 2 > 0);
            peaks[whole] = l->peak_bytes;
            stride = nn_logit_stride(V, device_is_host(l->device));
            language_close(l);
        }
        assert_int_equal(peaks[1] - peaks[0],
                         (rows - CHUNK) * stride * (int64_t)dtype_bytes(dtype));
    }
    parity_close(&p);
}

/* Running blocks again, making norms and SwiGLU again, keeping values on the host:
 * the same bits. */
static void sparing_memory_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        enum tape_checkpointing checkpointing;
        bool offload;
    } ways[] = {{TAPE_CHECKPOINTING_SELECTIVE, false},
                {TAPE_CHECKPOINTING_FULL, false},
                {TAPE_CHECKPOINTING_NONE, true},
                {TAPE_CHECKPOINTING_SELECTIVE, true},
                {TAPE_CHECKPOINTING_FULL, true}};
    static const char *const names[] = {
        "llama_tied_llama3",  "gpt2", "gpt2_untied_gelu", "t5", "t5_v1_1", "bert_pretraining",
        "bert_classification"};
    for (size_t c = 0; c < array_length(names); c++) {
        struct parity p = parity_open(names[c]);
        p.architecture.llama.attention_dropout = 0.2; /* so that random numbers must repeat too */
        p.architecture.gpt2.embd_pdrop = p.architecture.gpt2.attn_pdrop = 0.1;
        p.architecture.gpt2.resid_pdrop = 0.3;
        p.architecture.t5.dropout_rate = p.architecture.bert.attention_probs_dropout_prob = 0.2;
        p.architecture.bert.hidden_dropout_prob = 0.1;
        struct language *all = language_open(&p.architecture, DTYPE_F32, p.T);
        double loss = language_run(all, true);
        assert_true(loss != language_run(all, false)); /* it does drop */
        assert_true(loss == language_run(all, true));
        for (size_t w = 0; w < array_length(ways); w++) {
            struct language *l = language_open(&p.architecture, DTYPE_F32, p.T);
            language_spare_memory(l, ways[w].checkpointing, ways[w].offload);
            assert_true(language_run(l, true) == loss);
            for (int i = 0; i < l->param_count; i++)
                assert_memory_equal(l->gradients[i], all->gradients[i],
                                    (size_t)l->params[i]->count * sizeof(float));
            assert_true(l->peak_bytes <= all->peak_bytes);
            if (ways[w].checkpointing !=
                TAPE_CHECKPOINTING_NONE) /* offload frees little of two layers */
                assert_true(l->peak_bytes < all->peak_bytes);
            language_close(l);
        }
        language_close(all);
        parity_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_loss_and_gradients_are_transformers),
        cmocka_unit_test(bf16_is_as_close_as_transformers),
        cmocka_unit_test(the_head_works_in_chunks),
        cmocka_unit_test(no_more_than_a_chunk_of_logits_is_alive),
        cmocka_unit_test(sparing_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
