/* What the language models are made of: names, shapes, counts and the printed tree, without any
 * memory for values. */
#include "agent/models/architecture.h"
#include "agent/models/t5_bias.h"
#include "agent/shard/wrap.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

static int64_t count_of(const struct architecture *architecture)
{
    auto_arena struct arena *arena = arena_open();
    struct error err;
    assert_ok(architecture_check(architecture, &err), &err);
    return module_param_count(architecture_build(arena, architecture)->root);
}

static struct architecture named(const char *name)
{
    struct architecture architecture;
    assert_true(architecture_find(name, &architecture));
    return architecture;
}

static void published_models_have_their_published_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t count;
    } rows[] = {
        {"llama2_7b", 6738415616},       {"llama2_13b", 13015864320},
        {"llama2_70b", 68976648192},     {"llama3_8b", 8030261248},
        {"llama3_70b", 70553706496},     {"llama3_1_8b", 8030261248},
        {"llama3_1_70b", 70553706496},   {"llama3_1_405b", 405853388800},
        {"llama3_2_1b", 1235814400},     {"llama3_2_3b", 3212749824},
        {"mathstral_7b", 7248023552},    {"gpt2", 124439808},
        {"gpt2_medium", 354823168},      {"gpt2_large", 774030080},
        {"gpt2_xl", 1557611200},         {"t5_small", 60506624},
        {"t5_base", 222903552},          {"t5_large", 737668096},
        {"t5_3b", 2851598336},           {"t5_11b", 11307321344},
        {"t5_v1_1_small", 76961152},     {"t5_v1_1_base", 247577856},
        {"t5_v1_1_large", 783150080},    {"t5_v1_1_xl", 2849757184},
        {"t5_v1_1_xxl", 11135332352},    {"bert_base_uncased", 109514298},
        {"bert_base_cased", 108340804},  {"bert_large_uncased", 335174458},
        {"bert_large_cased", 333610308},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct architecture architecture = named(rows[i].name);
        assert_string_equal(architecture_name((int)i), rows[i].name);
        assert_int_equal(count_of(&architecture), rows[i].count);
    }
    assert_null(architecture_name((int)array_length(rows)));
    struct architecture none;
    assert_false(architecture_find("llama4", &none));
    assert_false(architecture_find("t5-smaller", &none));
    assert_false(architecture_find("", &none));
    assert_true(architecture_find("google/t5-v1_1-small", &none));
    assert_int_equal(none.t5.d_ff, 1024);
    assert_true(architecture_find("google-bert/bert-base-cased", &none));
    assert_int_equal(none.bert.vocab_size, 28996);
}

/* The table of transformers' sizes by what is learned. */
static void heads_count_too(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum bert_head head;
        int64_t count;
    } rows[] = {
        {"bert_base_uncased", BERT_PRETRAINING, 110106428},
        {"bert_base_uncased", BERT_CLASSIFICATION, 109483778},
        {"bert_large_uncased", BERT_PRETRAINING, 336226108},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct architecture architecture = named(rows[i].name);
        architecture.bert.head = rows[i].head;
        assert_int_equal(count_of(&architecture), rows[i].count);
    }
}

/* The first block of a stack has the table of position biases, which it alone has. */
static void t5_blocks_are_the_units(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct error err;
    struct architecture architecture = named("t5_small");
    struct module *root = architecture_build(arena, &architecture)->root;
    assert_ok(wrap_by_class(root, NULL, 0, &err), &err);
    static const struct {
        int stack, list;
        int64_t stack_count, block_count;
    } rows[] = {{1, 1, 18881280, 3146752}, {2, 1, 25175808, 4195840}};
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct module *stack = root->children[rows[i].stack];
        assert_int_equal(module_param_count(stack), rows[i].stack_count);
        const struct module *list = stack->children[rows[i].list];
        assert_int_equal(list->child_count, 6);
        for (int b = 0; b < 6; b++) {
            assert_int_equal(list->children[b]->unit, (int)i * 6 + b + 1);
            assert_int_equal(module_param_count(list->children[b]),
                             rows[i].block_count + (b == 0 ? 256 : 0));
        }
    }
    const char *classes[] = {"T5Attention"};
    assert_ok(wrap_by_class(root, classes, 1, &err), &err);
    const struct module *layers = root->children[1]->children[1]->children[0]->children[0];
    assert_int_equal(layers->children[0]->children[0]->unit, -1); /* read before its layer begins */
    layers = root->children[1]->children[1]->children[1]->children[0];
    assert_true(layers->children[0]->children[0]->unit > 0);
}

/* Known answers of transformers' formula. */
static void distances_fall_into_their_buckets(void **state)
{
    (void)state;
    static const int rows[][2] = {
        {-200, 15}, {-128, 15}, {-91, 15}, {-90, 14}, {-64, 14}, {-32, 12}, {-16, 10}, {-12, 9},
        {-11, 8},   {-8, 8},    {-7, 7},   {0, 0},    {1, 17},   {7, 23},   {8, 24},   {11, 24},
        {12, 25},   {16, 26},   {32, 28},  {64, 30},  {90, 30},  {91, 31},  {200, 31},
    };
    static const int causal[][2] = {
        {5, 0},    {0, 0},    {-1, 1},   {-15, 15}, {-16, 16}, {-18, 16}, {-19, 17},  {-20, 17},
        {-21, 18}, {-24, 19}, {-32, 21}, {-48, 24}, {-64, 26}, {-96, 29}, {-112, 30}, {-113, 31},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_int_equal(t5_bucket(rows[i][0], true, 32, 128), rows[i][1]);
    for (size_t i = 0; i < array_length(causal); i++)
        assert_int_equal(t5_bucket(causal[i][0], false, 32, 128), causal[i][1]);
}

/* Whatever the length, from tables that grow. */
static void bucket_tables_are_the_formula(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct t5_buckets buckets = {
        .arena = arena, .bidirectional = true, .buckets = 32, .max_distance = 128};
    struct device *device;
    struct stream *stream;
    struct tape *tape;
    struct error err;
    assert_ok(device_open("cpu", 1, &device, &err), &err);
    assert_ok(stream_open(device, "compute", &stream, &err), &err);
    assert_ok(tape_open(stream, DTYPE_F32, NULL, &tape, &err), &err);
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 511, 512, 513, 1500, 7};
    for (size_t i = 0; i < array_length(lengths); i++) {
        int64_t T = lengths[i];
        const int32_t *table = t5_buckets_get(&buckets, tape, T);
        assert_ok(stream_sync(stream, &err), &err);
        assert_int_equal((uintptr_t)table % 16, 0);
        for (int64_t k = 0; k < 2 * T - 1; k++)
            assert_int_equal(table[k], t5_bucket(k - (T - 1), true, 32, 128));
    }
    tape_close(tape);
    stream_close(stream);
    device_close(device);
}

/* AWS's argument files: other vocabularies and key heads, never tied. */
static void sizes_given_by_options_count_too(void **state)
{
    (void)state;
    static const struct {
        const char *base;
        int64_t vocab_size, kv_heads, count;
    } rows[] = {
        {"llama2_7b", 50432, 32, 6889410560},    {"llama2_13b", 50432, 40, 13204608000},
        {"llama2_70b", 50432, 8, 69278638080},   {"llama3_1_8b", 50432, 8, 7392727040},
        {"llama3_1_70b", 50432, 8, 69278638080}, {"llama3_2_1b", 50432, 2, 1154549760},
        {"llama3_2_3b", 50432, 2, 2996481024},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct architecture architecture = named(rows[i].base);
        architecture.llama.vocab_size = rows[i].vocab_size;
        architecture.llama.num_key_value_heads = rows[i].kv_heads;
        architecture.llama.tie_word_embeddings = false;
        assert_int_equal(count_of(&architecture), rows[i].count);
    }
    struct architecture padded = named("gpt2");
    padded.gpt2.vocab_size = 50304;
    assert_int_equal(count_of(&padded), 124475904);
}

/* A block is a unit of the published number of elements; what is tied stays with the root. */
static void blocks_are_the_units(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int blocks;
        int64_t block_count;
    } rows[] = {{"llama3_2_1b", 16, 60821504}, {"llama3_8b", 32, 218112000}, {"gpt2", 12, 7087872}};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct error err;
        struct architecture architecture = named(rows[i].name);
        struct module *root = architecture_build(arena, &architecture)->root;
        assert_ok(wrap_by_class(root, NULL, 0, &err), &err);
        const struct module *inner = root->children[0];
        const struct module *list = NULL;
        for (int c = 0; c < inner->child_count; c++)
            if (inner->children[c]->is_list)
                list = inner->children[c];
        assert_non_null(list);
        assert_int_equal(list->child_count, rows[i].blocks);
        for (int b = 0; b < rows[i].blocks; b++) {
            assert_int_equal(list->children[b]->unit, b + 1);
            assert_int_equal(module_param_count(list->children[b]), rows[i].block_count);
        }
    }
}

static void nothing_tied_is_a_unit_of_its_own(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct architecture architecture = named("llama3_2_1b");
    struct module *root = architecture_build(arena, &architecture)->root;
    wrap_by_size(root, 1000);
    assert_int_equal(root->children[0]->unit, -1);              /* model */
    assert_int_equal(root->children[0]->children[0]->unit, -1); /* embed_tokens */
    architecture.llama.tie_word_embeddings = false;
    root = architecture_build(arena, &architecture)->root;
    wrap_by_size(root, 1000);
    assert_true(root->children[0]->children[0]->unit > 0);
}

/* The trees and the parameters' names and shapes as transformers has them
 * (tests/parity/make_language_fixture.py). */
static void list_params(const struct module *m, struct str *out)
{
    for (int i = 0; i < m->param_count; i++) {
        const struct param *p = m->params[i];
        str_printf(out, "%s [", p->name);
        for (int d = 0; d < p->dims; d++)
            str_printf(out, "%s%lld", d ? ", " : "", (long long)p->shape[d]);
        str_add(out, "]\n");
    }
    for (int i = 0; i < m->child_count; i++)
        list_params(m->children[i], out);
}

static struct architecture small_t5(bool tied)
{
    struct architecture a = architecture_default(ARCHITECTURE_T5);
    a.t5.vocab_size = 61;
    a.t5.d_model = 48;
    a.t5.d_kv = 10;
    a.t5.d_ff = 80;
    a.t5.num_layers = 3;
    a.t5.num_heads = 6;
    a.t5.tie_word_embeddings = tied;
    if (!tied) {
        a.t5.feed_forward_proj = T5_GATED_GELU;
        a.t5.num_decoder_layers = 2;
    }
    return a;
}

static struct architecture small_bert(const char *class_name)
{
    struct architecture a = architecture_default(ARCHITECTURE_BERT);
    while (strcmp(bert_class_name(a.bert.head), class_name) != 0)
        a.bert.head++;
    a.bert.vocab_size = 61;
    a.bert.hidden_size = 48;
    a.bert.num_hidden_layers = 3;
    a.bert.num_attention_heads = 6;
    a.bert.intermediate_size = 80;
    a.bert.max_position_embeddings = 64;
    a.bert.gelu_tanh = a.bert.head == BERT_PRETRAINING;
    if (a.bert.head == BERT_CLASSIFICATION) {
        a.bert.num_labels = 5;
        a.bert.classifier_dropout = 0.2;
    }
    return a;
}

static struct architecture small(const char *family, bool tied)
{
    if (strcmp(family, "T5") == 0)
        return small_t5(tied);
    if (strncmp(family, "Bert", 4) == 0)
        return small_bert(family);
    struct architecture a =
        architecture_default(strcmp(family, "GPT2") == 0 ? ARCHITECTURE_GPT2 : ARCHITECTURE_LLAMA);
    a.llama.family = family;
    a.llama.vocab_size = a.gpt2.vocab_size = 61;
    a.llama.hidden_size = a.gpt2.n_embd = 48;
    a.llama.intermediate_size = 80;
    a.llama.num_hidden_layers = a.gpt2.n_layer = 3;
    a.llama.num_attention_heads = 6;
    a.llama.num_key_value_heads = 2;
    a.llama.attention_bias = a.llama.mlp_bias = tied;
    a.llama.tie_word_embeddings = a.gpt2.tie_word_embeddings = tied;
    a.llama.max_position_embeddings = a.gpt2.n_positions = 64;
    a.gpt2.n_head = 3;
    return a;
}

static void the_trees_read_as_pytorch_prints_them(void **state)
{
    (void)state;
    static const struct {
        const char *file, *family;
        bool tied;
    } rows[] = {
        {"tests/data/parity/tree_llama.txt", "Llama", false},
        {"tests/data/parity/tree_llama_tied_bias.txt", "Llama", true},
        {"tests/data/parity/tree_mistral.txt", "Mistral", false},
        {"tests/data/parity/tree_gpt2.txt", "GPT2", true},
        {"tests/data/parity/tree_t5.txt", "T5", true},
        {"tests/data/parity/tree_t5_v1_1.txt", "T5", false},
        {"tests/data/parity/tree_bert_masked_lm.txt", "BertForMaskedLM", true},
        {"tests/data/parity/tree_bert_pretraining.txt", "BertForPreTraining", true},
        {"tests/data/parity/tree_bert_classification.txt", "BertForSequenceClassification", false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct architecture architecture = small(rows[i].family, rows[i].tied);
        struct module *root = architecture_build(arena, &architecture)->root;
        char expected[16384] = "";
        auto_fclose FILE *file = fopen(rows[i].file, "r");
        assert_non_null(file);
        assert_true(fread(expected, 1, sizeof expected - 1, file) > 0);
        auto_str struct str text;
        str_init(&text, sizeof expected);
        module_print(root, false, &text);
        str_add(&text, "\n");
        list_params(root, &text);
        assert_string_equal(str_text(&text), expected);
    }
}

static const struct param *find_param(const struct module *m, const char *name)
{
    const struct param *found = NULL;
    for (int i = 0; i < m->param_count && !found; i++)
        if (strcmp(m->params[i]->name, name) == 0)
            found = m->params[i];
    for (int i = 0; i < m->child_count && !found; i++)
        found = find_param(m->children[i], name);
    return found;
}

/* N(0, initializer_range); what adds to GPT-2's residual stream by 1 / sqrt(2 L) less; norms 1. */
static void initial_values_are_the_papers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int kind;
        double a, b;
    } rows[] = {
        {"model.embed_tokens.weight", INIT_NORMAL, 0, 0.02},
        {"model.layers.2.self_attn.o_proj.weight", INIT_NORMAL, 0, 0.02},
        {"model.layers.2.self_attn.o_proj.bias", INIT_UNIFORM, 0, 0},
        {"model.norm.weight", INIT_UNIFORM, 1, 1},
        {"transformer.wpe.weight", INIT_NORMAL, 0, 0.02},
        {"transformer.h.1.attn.c_attn.weight", INIT_NORMAL, 0, 0.02},
        {"transformer.h.1.attn.c_proj.weight", INIT_NORMAL, 0, 0.02 / 2.449489742783178},
        {"transformer.h.1.mlp.c_fc.weight", INIT_NORMAL, 0, 0.02},
        {"transformer.h.1.mlp.c_proj.weight", INIT_NORMAL, 0, 0.02 / 2.449489742783178},
        {"transformer.h.1.ln_1.weight", INIT_UNIFORM, 1, 1},
        {"transformer.h.1.ln_1.bias", INIT_UNIFORM, 0, 0},
        {"transformer.h.1.attn.c_attn.bias", INIT_UNIFORM, 0, 0},
        {"shared.weight", INIT_NORMAL, 0, 0.5},
        {"encoder.block.0.layer.0.SelfAttention.q.weight", INIT_NORMAL, 0,
         0.5 / 21.908902300206645},
        {"decoder.block.2.layer.1.EncDecAttention.k.weight", INIT_NORMAL, 0,
         0.5 / 6.928203230275509},
        {"decoder.block.2.layer.1.EncDecAttention.o.weight", INIT_NORMAL, 0,
         0.5 / 7.745966692414834},
        {"decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", INIT_NORMAL, 0,
         0.5 / 6.928203230275509},
        {"encoder.block.1.layer.1.DenseReluDense.wi.weight", INIT_NORMAL, 0,
         0.5 / 6.928203230275509},
        {"encoder.block.1.layer.1.DenseReluDense.wo.weight", INIT_NORMAL, 0,
         0.5 / 8.94427190999916},
        {"decoder.final_layer_norm.weight", INIT_UNIFORM, 0.5, 0.5},
        {"bert.embeddings.word_embeddings.weight", INIT_NORMAL, 0, 0.02},
        {"bert.encoder.layer.1.attention.self.query.weight", INIT_NORMAL, 0, 0.02},
        {"bert.encoder.layer.1.output.dense.bias", INIT_UNIFORM, 0, 0},
        {"bert.encoder.layer.1.output.LayerNorm.weight", INIT_UNIFORM, 1, 1},
        {"cls.predictions.bias", INIT_UNIFORM, 0, 0},
    };
    auto_arena struct arena *arena = arena_open();
    struct architecture t5 = small("T5", true);
    t5.t5.initializer_factor = 0.5;
    const struct architecture all[] = {small("Llama", true), small("GPT2", true), t5,
                                       small("BertForMaskedLM", true)};
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct param *p = NULL;
        for (size_t k = 0; k < array_length(all) && !p; k++)
            p = find_param(architecture_build(arena, &all[k])->root, rows[i].name);
        assert_non_null(p);
        assert_int_equal(p->init.kind, rows[i].kind);
        assert_true(p->init.a == (float)rows[i].a);
        assert_true(p->init.b == (float)rows[i].b);
        bool padded = strstr(rows[i].name, "word_embeddings");
        assert_int_equal(p->zero_count, padded ? 48 : 0);
    }
}

static void sizes_that_make_no_model_are_refused(void **state)
{
    (void)state;
    struct error err;
    struct architecture a = small("Llama", false);
    a.llama.num_key_value_heads = 4;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "Llama model: num_key_value_heads 4 does not divide "
                                 "num_attention_heads 6");
    a = small("Llama", false);
    a.llama.hidden_size = 50;
    assert_true(architecture_check(&a, &err) < 0);
    a.llama.head_dim = 7;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "Llama model: head_dim 7 is odd: rotary positions turn pairs");
    a.llama.head_dim = 8;
    assert_ok(architecture_check(&a, &err), &err);
    a = small("GPT2", true);
    a.gpt2.n_head = 5;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "GPT2 model: n_head 5 does not divide n_embd 48");
    a.gpt2.n_head = 0;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "GPT2 model: n_head is 0, not within 1 .. 48");
    a = small("T5", true);
    a.t5.relative_attention_num_buckets = 6;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "T5 model: relative_attention_num_buckets 6 is no multiple of 4");
    a.t5.relative_attention_num_buckets = 256;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "T5 model: relative_attention_max_distance 128 must be above half "
                                 "of relative_attention_num_buckets (256)");
    a = small("T5", true);
    a.t5.decoder_start_token_id = 61;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "T5 model: decoder_start_token_id is 61, not within 0 .. 60");
    a = small("BertForMaskedLM", true);
    a.bert.num_attention_heads = 5;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "BERT model: hidden_size 48 must be even and a multiple of "
                                 "num_attention_heads 5");
    a = small("BertForSequenceClassification", true);
    a.bert.num_labels = 1;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "BERT model: 1 label: regression is not supported, 2 classes or "
                                 "more are needed (id2label, num_labels)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_models_have_their_published_sizes),
        cmocka_unit_test(sizes_given_by_options_count_too),
        cmocka_unit_test(heads_count_too),
        cmocka_unit_test(t5_blocks_are_the_units),
        cmocka_unit_test(distances_fall_into_their_buckets),
        cmocka_unit_test(bucket_tables_are_the_formula),
        cmocka_unit_test(blocks_are_the_units),
        cmocka_unit_test(nothing_tied_is_a_unit_of_its_own),
        cmocka_unit_test(the_trees_read_as_pytorch_prints_them),
        cmocka_unit_test(initial_values_are_the_papers),
        cmocka_unit_test(sizes_that_make_no_model_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
