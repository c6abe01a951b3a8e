/* What the language models are made of: names, shapes, counts and the printed tree, without any
 * memory for values. */
#include "agent/models/architecture.h"
#include "agent/wrap.h"
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
        {"llama2_7b", 6738415616},     {"llama2_13b", 13015864320},     {"llama2_70b", 68976648192},
        {"llama3_8b", 8030261248},     {"llama3_70b", 70553706496},     {"llama3_1_8b", 8030261248},
        {"llama3_1_70b", 70553706496}, {"llama3_1_405b", 405853388800}, {"llama3_2_1b", 1235814400},
        {"llama3_2_3b", 3212749824},   {"mathstral_7b", 7248023552},    {"gpt2", 124439808},
        {"gpt2_medium", 354823168},    {"gpt2_large", 774030080},       {"gpt2_xl", 1557611200},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct architecture architecture = named(rows[i].name);
        assert_string_equal(architecture_name((int)i), rows[i].name);
        assert_int_equal(count_of(&architecture), rows[i].count);
    }
    assert_null(architecture_name((int)array_length(rows)));
    struct architecture none;
    assert_false(architecture_find("llama4", &none));
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

static struct architecture small(const char *family, bool tied)
{
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
    };
    auto_arena struct arena *arena = arena_open();
    const struct architecture llama = small("Llama", true), gpt2 = small("GPT2", true);
    const struct module *roots[] = {architecture_build(arena, &llama)->root,
                                    architecture_build(arena, &gpt2)->root};
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct param *p = find_param(roots[rows[i].name[0] == 't'], rows[i].name);
        assert_non_null(p);
        assert_int_equal(p->init.kind, rows[i].kind);
        assert_true(p->init.a == (float)rows[i].a);
        assert_true(p->init.b == (float)rows[i].b);
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_models_have_their_published_sizes),
        cmocka_unit_test(sizes_given_by_options_count_too),
        cmocka_unit_test(blocks_are_the_units),
        cmocka_unit_test(nothing_tied_is_a_unit_of_its_own),
        cmocka_unit_test(the_trees_read_as_pytorch_prints_them),
        cmocka_unit_test(initial_values_are_the_papers),
        cmocka_unit_test(sizes_that_make_no_model_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
