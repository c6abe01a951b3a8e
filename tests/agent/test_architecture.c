/* Sizes of language models: how many parameters they make, and which make no model; without any
 * memory for values. */
#include "agent/models/architecture.h"

#include "base/mem.h"
#include "tests/agent/small_models.h"
#include "tests/support.h"

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
    static const struct {
        const char *id;
        int64_t count;
    } ids[] = {
        {"meta-llama/Meta-Llama-3-8B", 8030261248},       {"meta-llama/Llama-2-7b-hf", 6738415616},
        {"meta-llama/Llama-3.1-70B", 70553706496},        {"meta-llama/Llama-3.2-1B", 1235814400},
        {"meta-llama/Llama-3.2-3B-Instruct", 3212749824}, {"openai-community/gpt2-xl", 1557611200},
    };
    for (size_t i = 0; i < array_length(ids); i++) {
        struct architecture architecture = named(ids[i].id);
        assert_int_equal(count_of(&architecture), ids[i].count);
    }
    static const char *const others[] = {"meta-llama/Llama-3.2-11B-Vision", "meta-llama/", "gpt2-",
                                         "Meta-Llama-3-8B-mine"};
    for (size_t i = 0; i < array_length(others); i++)
        assert_int_equal(architecture_find(others[i], &none), i == 2);
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

static void sizes_that_make_no_model_are_refused(void **state)
{
    (void)state;
    struct error err;
    struct architecture a = small_model("Llama", false);
    a.llama.num_key_value_heads = 4;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "Llama model: num_key_value_heads 4 does not divide "
                                 "num_attention_heads 6");
    a = small_model("Llama", false);
    a.llama.hidden_size = 50;
    assert_true(architecture_check(&a, &err) < 0);
    a.llama.head_dim = 7;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "Llama model: head_dim 7 is odd: rotary positions turn pairs");
    a.llama.head_dim = 8;
    assert_ok(architecture_check(&a, &err), &err);
    a = small_model("GPT2", true);
    a.gpt2.n_head = 5;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "GPT2 model: n_head 5 does not divide n_embd 48");
    a.gpt2.n_head = 0;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "GPT2 model: n_head is 0, not within 1 .. 48");
    a = small_model("T5", true);
    a.t5.relative_attention_num_buckets = 6;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "T5 model: relative_attention_num_buckets 6 is no multiple of 4");
    a.t5.relative_attention_num_buckets = 256;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "T5 model: relative_attention_max_distance 128 must be above half "
                                 "of relative_attention_num_buckets (256)");
    a = small_model("T5", true);
    a.t5.decoder_start_token_id = 61;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "T5 model: decoder_start_token_id is 61, not within 0 .. 60");
    a = small_model("BertForMaskedLM", true);
    a.bert.num_attention_heads = 5;
    assert_true(architecture_check(&a, &err) < 0);
    assert_string_equal(err.msg, "BERT model: hidden_size 48 must be even and a multiple of "
                                 "num_attention_heads 5");
    a = small_model("BertForSequenceClassification", true);
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
        cmocka_unit_test(sizes_that_make_no_model_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
