/* What the language models are made of: units, names, shapes, initial values and the printed tree,
 * without any memory for values. */
#include "agent/models/architecture.h"
#include "agent/models/language.h"
#include "agent/shard/wrap.h"
#include "base/mem.h"
#include "tests/agent/small_models.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

static struct architecture named(const char *name)
{
    struct architecture architecture;
    assert_true(architecture_find(name, &architecture));
    return architecture;
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
        int first = inner->children[0]->unit > 0 ? 2 : 1; /* behind the embedding, if it is one */
        for (int c = 0; c < inner->child_count; c++)
            if (inner->children[c]->is_list)
                list = inner->children[c];
        assert_non_null(list);
        assert_int_equal(list->child_count, rows[i].blocks);
        for (int b = 0; b < rows[i].blocks; b++) {
            assert_int_equal(list->children[b]->unit, first + b);
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

/* Large ones are, where the model's own blocks are asked for; named classes are all there are. */
static void an_untied_embedding_and_head_are_units(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool tied;
        int64_t vocabulary;
        const char *class_name; /* NULL: the model's own blocks */
        bool units;
    } rows[] = {{"llama3_8b", false, 128256, NULL, true},
                {"llama3_8b", true, 128256, NULL, false},
                {"llama3_8b", false, 128256, "LlamaDecoderLayer", false},
                {"llama3_8b", false, 7324, NULL, false}, /* 29,999,104 elements */
                {"llama3_8b", false, 7325, NULL, true}};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct error err;
        struct architecture architecture = named(rows[i].name);
        architecture.llama.tie_word_embeddings = rows[i].tied;
        architecture.llama.vocab_size = rows[i].vocabulary;
        const struct module *root = architecture_build(arena, &architecture)->root;
        assert_ok(wrap_by_class((struct module *)root, &rows[i].class_name,
                                rows[i].class_name != NULL, &err),
                  &err);
        assert_int_equal(root->unit, 0);
        assert_int_equal(root->children[0]->children[0]->unit, rows[i].units ? 1 : -1);
        assert_int_equal(root->children[1]->unit, rows[i].units ? 34 : -1);
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
        struct architecture architecture = small_model(rows[i].family, rows[i].tied);
        struct module *root = architecture_build(arena, &architecture)->root;
        char expected[16384] = "";
        auto_fclose FILE *file = fopen(rows[i].file, "r");
        assert_non_null(file);
        assert_true(fread(expected, 1, sizeof expected - 1, file) > 0);
        auto_str struct str text;
        str_init(&text, sizeof expected);
        module_print(root, MODULE_BARE, &text);
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
    struct architecture t5 = small_model("T5", true);
    t5.t5.initializer_factor = 0.5;
    const struct architecture all[] = {small_model("Mistral", true), small_model("GPT2", true), t5,
                                       small_model("BertForMaskedLM", true)};
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct param *p = NULL;
        for (size_t k = 0; k < array_length(all) && !p; k++)
            p = find_param(architecture_build(arena, &all[k])->root, rows[i].name);
        assert_non_null(p);
        assert_int_equal(p->init.kind, rows[i].kind);
        assert_true(p->init.a == (float)rows[i].a);
        assert_true(p->init.b == (float)rows[i].b);
        bool padded =
            strstr(rows[i].name, "word_embeddings") || strstr(rows[i].name, "embed_tokens");
        assert_int_equal(p->zero_count, padded ? 48 : 0);
    }
}

/* On the host 64 MiB of fp32 as ever, whose rounding parity's fixtures have; on a GPU 1 GiB. */
static void chunks_of_the_loss_are_as_large_as_memory_allows(void **state)
{
    (void)state;
    static const struct {
        int64_t V, host, bf16, fp32;
    } rows[] = {{128256, 1024, 4096, 2048},  {151936, 1024, 3072, 1024},
                {50257, 1024, 10240, 5120},  {32128, 1024, 16384, 8192},
                {1000000, 1024, 1024, 1024}, {512, 32768, 1048576, 524288}};
    for (size_t i = 0; i < array_length(rows); i++) {
        assert_int_equal(language_chunk_rows(0, rows[i].V, DTYPE_BF16, true), rows[i].host);
        assert_int_equal(language_chunk_rows(0, rows[i].V, DTYPE_BF16, false), rows[i].bf16);
        assert_int_equal(language_chunk_rows(0, rows[i].V, DTYPE_F32, false), rows[i].fp32);
        assert_int_equal(language_chunk_rows(7, rows[i].V, DTYPE_F32, i % 2), 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_the_units),
        cmocka_unit_test(t5_blocks_are_the_units),
        cmocka_unit_test(an_untied_embedding_and_head_are_units),
        cmocka_unit_test(nothing_tied_is_a_unit_of_its_own),
        cmocka_unit_test(the_trees_read_as_pytorch_prints_them),
        cmocka_unit_test(chunks_of_the_loss_are_as_large_as_memory_allows),
        cmocka_unit_test(initial_values_are_the_papers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
