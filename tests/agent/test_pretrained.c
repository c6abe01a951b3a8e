/* Weights of Hugging Face directories that transformers wrote
 * (tests/parity/make_language_fixture.py; the values are the formula's), read by ranks that each
 * want a part. */
#include "agent/checkpoint/pretrained.h"

#include "agent/checkpoint/pretrained_config.h"
#include "agent/checkpoint/pretrained_index.h"
#include "agent/checkpoint/safetensors.h"
#include "agent/shard/wrap.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/mem.h"
#include "tests/agent/language.h"
#include "tests/agent/ranks.h"
#include "tests/support.h"
#include "tests/support_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA "tests/data/pretrained/"

/* What the ranks load. */
struct load {
    const char *dir;
    struct architecture architecture;
    enum shard_strategy strategy;
    double relative; /* most that a value may be off: what its dtype rounds */
    double absolute; /* likewise, of F16's small ones */
    bool allow_nonfinite;
    bool loads_only; /* what was read is not compared, which all ranks do together */
};

static struct architecture read_architecture(struct arena *arena, const char *dir)
{
    struct architecture architecture;
    struct error err;
    assert_ok(pretrained_read_config(dir, arena, &architecture, NULL, &err), &err);
    return architecture;
}

static int compare_params(struct shard *shard, const struct module *m, const struct load *load,
                          struct arena *arena, struct error *err)
{
    for (int i = 0; i < m->param_count; i++) {
        const struct param *p = m->params[i];
        float *values = arena_array(arena, float, p->count);
        if (shard_gather_param(shard, p, values, err) < 0)
            return -1;
        for (int64_t k = 0; k < p->count; k++) {
            double expected = (double)language_weight(p, k);
            if (!(fabs((double)values[k] - expected) <=
                  load->absolute + load->relative * fabs(expected)))
                return error_set(err, ERR_SHAPE, "%s[%lld] is %.9g, not %.9g", p->name,
                                 (long long)k, (double)values[k], expected);
        }
    }
    for (int i = 0; i < m->child_count; i++)
        if (compare_params(shard, m->children[i], load, arena, err) < 0)
            return -1;
    return 0;
}

static int load_rank(struct rank *rank, struct comm *comm, struct stream *stream, struct error *err)
{
    const struct load *load = rank->arg;
    auto_arena struct arena *arena = arena_open();
    const struct shard_config config = {.strategy = load->strategy, .limit_all_gathers = true};
    struct model *model = architecture_build(arena, &load->architecture);
    struct shard *shard = NULL;
    struct pretrained *pretrained = NULL;
    int result = wrap_by_class(model->root, NULL, 0, err);
    if (result == 0)
        result = shard_open(&config, stream, stream_device(stream), comm, model->root, &shard, err);
    if (result == 0) {
        shard_init_values(shard, 1);
        result = pretrained_open(load->dir, &pretrained, err);
    }
    if (result == 0)
        result = pretrained_load(pretrained, model, shard, load->allow_nonfinite, err);
    if (result == 0 && !load->loads_only)
        result = compare_params(shard, model->root, load, arena, err);
    pretrained_close(pretrained);
    shard_close(shard);
    return result;
}

static int load_all(const struct load *load, int size, struct error *err)
{
    struct rank ranks[RANKS_MAX] = {0};
    for (int r = 0; r < size; r++)
        ranks[r].arg = (void *)(uintptr_t)load;
    ranks_run(ranks, size, RANKS_TIMEOUT_MS, load_rank);
    for (int r = 0; r < size; r++)
        if (ranks[r].result < 0) {
            *err = ranks[r].err;
            return -1;
        }
    return 0;
}

static void each_rank_gets_its_part(void **state)
{
    (void)state;
    static const struct {
        const char *dir;
        double relative, absolute;
    } rows[] = {
        {DATA "llama_sharded", 0, 0},        {DATA "llama_tied_bf16", 0x1p-8, 0},
        {DATA "gpt2_f16", 0x1p-11, 0x1p-25}, {DATA "t5_bf16", 0x1p-8, 0},
        {DATA "bert_f16", 0x1p-11, 0x1p-25}, {DATA "t5_v1_1", 0x1p-8, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        for (int size = 1; size <= 3; size++) {
            auto_arena struct arena *arena = arena_open();
            struct error err;
            const struct load load = {rows[i].dir,
                                      read_architecture(arena, rows[i].dir),
                                      size == 2 ? NO_SHARD : FULL_SHARD,
                                      rows[i].relative,
                                      rows[i].absolute,
                                      false,
                                      false};
            assert_ok(load_all(&load, size, &err), &err);
        }
}

/* Checks a directory for a model. */
static int check(const char *dir, const struct architecture *architecture, struct lines *notes,
                 struct arena *arena, struct error *err)
{
    struct pretrained *pretrained = NULL;
    int result = pretrained_open(dir, &pretrained, err);
    if (result == 0)
        result = pretrained_check(pretrained, architecture_build(arena, architecture), notes, err);
    pretrained_close(pretrained);
    return result;
}

static void copy(const char *from, const char *to, const char *name, const char *other_name)
{
    enum { MOST = 1 << 20 };
    auto_free char *bytes = NULL, *path = xasprintf("%s/%s", from, name);
    auto_free char *copied = xasprintf("%s/%s", to, name);
    size_t size;
    struct error err;
    struct durable_result written;
    assert_ok(file_read(path, MOST, &bytes, &size, &err), &err);
    if (other_name) { /* the length stays: blanks may stand before the colon */
        static const char own[] = "\"model.embed_tokens.weight\"";
        char *at = memmem(bytes, size, own, sizeof own - 1);
        assert_non_null(at);
        memset(at, ' ', sizeof own - 1);
        memcpy(at, other_name, strlen(other_name));
    }
    assert_ok(durable_write_file(&file_ops_system, copied, bytes, size, &written, &err), &err);
}

/* As safetensors' save_model leaves it. */
static void a_tied_tensor_may_be_there_under_its_other_name_alone(void **state)
{
    auto_arena struct arena *arena = arena_open();
    struct error err;
    copy(DATA "llama_tied_bf16", *state, "config.json", NULL);
    copy(DATA "llama_tied_bf16", *state, "model.safetensors", "\"lm_head.weight\"");
    const struct load load = {
        *state, read_architecture(arena, *state), FULL_SHARD, 0x1p-8, 0, false, false};
    assert_ok(load_all(&load, 2, &err), &err);
}

static void buffers_and_tied_heads_are_no_surprise(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct error err;
    struct lines notes;
    struct architecture gpt2 = read_architecture(arena, DATA "gpt2_f16");
    struct architecture llama = read_architecture(arena, DATA "llama_sharded");
    lines_init(&notes, arena);
    assert_ok(check(DATA "gpt2_f16", &gpt2, &notes, arena, &err), &err);
    assert_string_equal(lines_join(&notes),
                        DATA "gpt2_f16/model.safetensors: tensor odd.weight is not used");
    lines_init(&notes, arena);
    assert_ok(check(DATA "llama_sharded", &llama, &notes, arena, &err), &err);
    assert_int_equal(notes.count, 0);
    struct architecture t5 = read_architecture(arena, DATA "t5_bf16");
    struct architecture bert = read_architecture(arena, DATA "bert_f16");
    assert_ok(check(DATA "t5_bf16", &t5, &notes, arena, &err), &err);
    assert_ok(check(DATA "bert_f16", &bert, &notes, arena, &err), &err);
    assert_int_equal(notes.count, 0);
}

/* A classifier on top of what was learned without one, whose own head is of no use then. */
static void a_new_head_begins_with_random_values(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct error err;
    struct lines notes;
    struct architecture bert = read_architecture(arena, DATA "bert_f16");
    lines_init(&notes, arena);
    bert.bert.head = BERT_CLASSIFICATION;
    assert_ok(check(DATA "bert_f16", &bert, &notes, arena, &err), &err);
    const char *text = lines_join(&notes);
    assert_non_null(strstr(text, DATA "bert_f16: tensor classifier.weight is missing: it begins "
                                      "with random values"));
    assert_non_null(strstr(text, "tensor cls.seq_relationship.bias is not used"));
    assert_null(strstr(text, "pooler"));
    bert.bert.num_hidden_layers++; /* what is no head's must be there */
    assert_true(check(DATA "bert_f16", &bert, &notes, arena, &err) < 0);
}

static void one_layer_more(struct architecture *a)
{
    a->llama.num_hidden_layers++;
}

static void one_word_more(struct architecture *a)
{
    a->llama.vocab_size++;
}

static void a_narrower_middle(struct architecture *a)
{
    a->gpt2.n_inner = 40;
}

static void a_head_of_its_own(struct architecture *a)
{
    a->llama.tie_word_embeddings = false;
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *dir;
        void (*change)(struct architecture *a);
        const char *message;
    } rows[] = {
        {DATA "llama_sharded", one_layer_more,
         DATA "llama_sharded: tensor model.layers.2.self_attn.q_proj.weight is missing"},
        {DATA "llama_sharded", one_word_more,
         DATA "llama_sharded/model-00001-of-00004.safetensors: tensor model.embed_tokens.weight is "
              "[37, 24], the model's is [38, 24]"},
        {DATA "gpt2_f16", a_narrower_middle,
         DATA "gpt2_f16/model.safetensors: tensor h.0.mlp.c_fc.weight is [24, 96], the model's is "
              "[24, 40]"},
        {DATA "llama_tied_bf16", a_head_of_its_own,
         DATA "llama_tied_bf16: tensor lm_head.weight is missing"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct error err;
        struct architecture architecture = read_architecture(arena, rows[i].dir);
        rows[i].change(&architecture);
        assert_true(check(rows[i].dir, &architecture, NULL, arena, &err) < 0);
        assert_int_equal(err.code, ERR_INPUT);
        assert_string_equal(err.msg, rows[i].message);
    }
}

static void a_head_that_is_not_the_embedding_is_not_tied(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct error err;
    struct load load = {DATA "llama_sharded",
                        read_architecture(arena, DATA "llama_sharded"),
                        FULL_SHARD,
                        0,
                        0,
                        false,
                        false};
    load.architecture.llama.tie_word_embeddings = true;
    assert_true(load_all(&load, 2, &err) < 0);
    assert_string_equal(err.msg, DATA "llama_sharded: tensor lm_head.weight differs from "
                                      "model.embed_tokens.weight, but the model ties them "
                                      "(config.json's tie_word_embeddings)");
}

/* transformers 5 writes tie_word_embeddings and scale_decoder_outputs, and a head, if there is one
 * of its own. */
static void t5_has_the_head_that_its_weights_have(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct architecture tied =
        read_architecture(arena, DATA "t5_bf16"); /* a copy of the embedding */
    struct architecture untied = read_architecture(arena, DATA "t5_v1_1");
    assert_true(tied.t5.tie_word_embeddings);
    assert_true(t5_scales(&tied.t5));
    assert_false(untied.t5.tie_word_embeddings);
    assert_false(t5_scales(&untied.t5));
    struct architecture none;
    struct error err;
    assert_fails(pretrained_read_config(DATA "t5_v1_1/config.json", arena, &none, NULL, &err), &err,
                 ERR_CONFIG, "config.json is a file: name the directory");
    assert_fails(pretrained_read_config(DATA "none", arena, &none, NULL, &err), &err, ERR_NOT_FOUND,
                 DATA "none/config.json");
}

/* ---- what is no number ---- */

/* A copy of the directory's weights below `to`, with one element of a tensor replaced. */
static void copy_with(const char *from, const char *to, const char *tensor, int64_t element,
                      uint16_t half)
{
    auto_free char *path = xasprintf("%s/" PRETRAINED_FILE, from);
    auto_free char *copy = xasprintf("%s/" PRETRAINED_FILE, to);
    auto_free char *bytes = NULL;
    size_t size;
    struct durable_result written;
    struct safetensors *file;
    struct error err;
    assert_ok(file_read(path, 1 << 20, &bytes, &size, &err), &err);
    assert_ok(safetensors_open(path, &file, &err), &err);
    const struct safetensors_header *header = safetensors_header(file);
    int64_t at = header->header_bytes + safetensors_find(header, tensor)->data_begin;
    memcpy(bytes + at + element * 2, &half, sizeof half);
    safetensors_close(file);
    unlink(copy);
    assert_ok(durable_write_file(&file_ops_system, copy, bytes, size, &written, &err), &err);
}

/* By the file's own name of the tensor. What no parameter wants is not looked at. */
static void what_is_no_number_is_named(void **state)
{
    const char *dir = *state;
    static const struct {
        const char *from, *tensor;
        int64_t element;
        uint16_t half;
        const char *fails; /* NULL: loads */
    } rows[] = {
        {DATA "gpt2_f16", "h.1.attn.c_proj.weight", 24 * 5 + 7, 0x7e00,
         "/model.safetensors: tensor h.1.attn.c_proj.weight[5, 7] is NaN"},
        {DATA "gpt2_f16", "ln_f.bias", 23, 0xfc00,
         "/model.safetensors: tensor ln_f.bias[23] is -inf"},
        {DATA "gpt2_f16", "odd.weight", 0, 0x7e00, NULL},
        {DATA "llama_tied_bf16", "model.norm.weight", 1, 0x7f80,
         "/model.safetensors: tensor model.norm.weight[1] is inf"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct error err;
        struct load load = {.dir = dir,
                            .architecture = read_architecture(arena, rows[i].from),
                            .strategy = FULL_SHARD,
                            .loads_only = true};
        copy_with(rows[i].from, dir, rows[i].tensor, rows[i].element, rows[i].half);
        if (rows[i].fails)
            assert_fails(load_all(&load, 2, &err), &err, ERR_INPUT, rows[i].fails);
        load.allow_nonfinite = rows[i].fails != NULL;
        assert_ok(load_all(&load, 2, &err), &err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_gets_its_part),
        cmocka_unit_test_setup_teardown(a_tied_tensor_may_be_there_under_its_other_name_alone,
                                        support_enter_dir, support_leave_dir),
        cmocka_unit_test(buffers_and_tied_heads_are_no_surprise),
        cmocka_unit_test(a_new_head_begins_with_random_values),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(a_head_that_is_not_the_embedding_is_not_tied),
        cmocka_unit_test(t5_has_the_head_that_its_weights_have),
        cmocka_unit_test_setup_teardown(what_is_no_number_is_named, support_enter_dir,
                                        support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
