#include "agent/models/config_json.h"
#include "agent/models/families.h"
#include "tests/support.h"

#include <math.h>
#include <string.h>

struct reading {
    struct arena *arena;
    struct architecture architecture;
    struct lines notes;
    struct error err;
    int result;
};

static struct reading reading_of(struct arena *arena, const char *text)
{
    struct reading r = {.arena = arena};
    lines_init(&r.notes, arena);
    r.result = config_json_read(arena, "config.json", text, strlen(text), &r.architecture, &r.notes,
                                &r.err);
    return r;
}

#define LLAMA3_2_1B                                                                                \
    "{\"architectures\": [\"LlamaForCausalLM\"], \"attention_bias\": false, "                      \
    "\"attention_dropout\": 0.0, \"bos_token_id\": 128000, \"eos_token_id\": [128001, 128008], "   \
    "\"head_dim\": 64, \"hidden_act\": \"silu\", \"hidden_size\": 2048, "                          \
    "\"initializer_range\": 0.02, \"intermediate_size\": 8192, "                                   \
    "\"max_position_embeddings\": 131072, \"mlp_bias\": false, \"model_type\": \"llama\", "        \
    "\"num_attention_heads\": 32, \"num_hidden_layers\": 16, \"num_key_value_heads\": 8, "         \
    "\"pretraining_tp\": 1, \"rms_norm_eps\": 1e-05, \"rope_scaling\": {\"factor\": 32.0, "        \
    "\"high_freq_factor\": 4.0, \"low_freq_factor\": 1.0, "                                        \
    "\"original_max_position_embeddings\": 8192, \"rope_type\": \"llama3\"}, "                     \
    "\"rope_theta\": 500000.0, \"tie_word_embeddings\": true, \"torch_dtype\": \"bfloat16\", "     \
    "\"transformers_version\": \"4.45.0.dev0\", \"use_cache\": true, \"vocab_size\": 128256}"

static void a_published_file_gives_the_published_model(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct reading r = reading_of(arena, LLAMA3_2_1B);
    assert_ok(r.result, &r.err);
    assert_int_equal(r.notes.count, 0);
    struct architecture named;
    assert_true(architecture_find("llama3_2_1b", &named));
    const struct llama_config *a = &r.architecture.llama, *b = &named.llama;
    assert_ptr_equal(r.architecture.family, &family_llama);
    assert_string_equal(a->family, "Llama");
    assert_int_equal(a->num_key_value_heads, b->num_key_value_heads);
    assert_int_equal(a->max_position_embeddings, b->max_position_embeddings);
    assert_true(a->rms_norm_eps == b->rms_norm_eps);
    assert_memory_equal(&a->rope, &b->rope, sizeof a->rope);
    assert_true(a->tie_word_embeddings);
    assert_int_equal(r.architecture.bos_token_id, 128000);
    assert_int_equal(r.architecture.pad_token_id, -1);
    assert_int_equal(r.architecture.eos_count, 2);
    assert_int_equal(r.architecture.eos_token_ids[1], 128008);
    assert_int_equal(module_param_count(architecture_build(arena, &r.architecture)->root),
                     1235814400);
}

static void absent_fields_have_the_classes_defaults(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct reading r = reading_of(arena, "{\"model_type\": \"llama\", \"head_dim\": null}");
    assert_ok(r.result, &r.err);
    assert_int_equal(module_param_count(architecture_build(arena, &r.architecture)->root),
                     6738415616);
    r = reading_of(arena, "{\"architectures\": [\"GPT2LMHeadModel\"], \"n_inner\": null}");
    assert_ok(r.result, &r.err);
    assert_ptr_equal(r.architecture.family, &family_gpt2);
    assert_int_equal(module_param_count(architecture_build(arena, &r.architecture)->root),
                     124439808);
    r = reading_of(arena, "{\"model_type\": \"mistral\", \"sliding_window\": 4096, \"vocab_size\": "
                          "32768, \"num_key_value_heads\": 8, \"intermediate_size\": 14336, "
                          "\"max_position_embeddings\": 32768, \"colour\": 1, "
                          "\"pad_token_id\": -1}");
    assert_ok(r.result, &r.err);
    assert_string_equal(lines_join(&r.notes),
                        "colour: unknown field, ignored; pad_token_id: -1: no token is padding; to "
                        "transformers the last one is; sliding_window 4096: nothing is masked by "
                        "it, longer sequences are refused");
    struct model *model = architecture_build(arena, &r.architecture);
    assert_string_equal(model->root->class_name, "MistralForCausalLM");
    assert_int_equal(model->language.max_tokens, 4096);
    assert_int_equal(module_param_count(model->root), 7248023552);
}

/* Old files say type and rope_scaling, new ones rope_parameters with the theta in it. */
static void rope_is_read_in_all_its_spellings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum rope_type type;
        double theta, factor;
    } rows[] = {
        {"\"rope_theta\": 1e6", ROPE_DEFAULT, 1e6, 1},
        {"\"rope_scaling\": null", ROPE_DEFAULT, 1e4, 1},
        {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}", ROPE_LINEAR, 1e4, 2},
        {"\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 4.5}", ROPE_DYNAMIC, 1e4, 4.5},
        {"\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 500000.0}",
         ROPE_DEFAULT, 5e5, 1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct reading r =
            reading_of(arena, arena_printf(arena, "{\"model_type\": \"llama\", %s}", rows[i].text));
        assert_ok(r.result, &r.err);
        assert_int_equal(r.architecture.llama.rope.type, rows[i].type);
        assert_true(r.architecture.llama.rope.theta == rows[i].theta);
        assert_true(r.architecture.llama.rope.factor == rows[i].factor);
    }
}

/* The files of t5-small and t5-v1_1-small, shortened; and how transformers 5 writes the latter. */
static void t5_says_whether_it_is_tied_and_scaled(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool tied, scales;
        enum t5_feed_forward feed_forward;
    } rows[] = {
        {"\"n_positions\": 512, \"output_past\": true", true, true, T5_RELU},
        {"\"tie_word_embeddings\": false, \"feed_forward_proj\": \"gated-gelu\"", false, false,
         T5_GATED_GELU},
        {"\"scale_decoder_outputs\": false, \"tie_word_embeddings\": true, \"feed_forward_proj\": "
         "\"gated-silu\"",
         true, false, T5_GATED_SILU},
        {"\"tie_word_embeddings\": false, \"scale_decoder_outputs\": true", false, true, T5_RELU},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct reading r = reading_of(
            arena, arena_printf(arena,
                                "{\"model_type\": \"t5\", \"architectures\": "
                                "[\"T5WithLMHeadModel\"], \"is_encoder_decoder\": true, %s}",
                                rows[i].text));
        assert_ok(r.result, &r.err);
        assert_int_equal(r.notes.count, 0);
        assert_int_equal(r.architecture.t5.tie_word_embeddings, rows[i].tied);
        assert_int_equal(t5_scales(&r.architecture.t5), rows[i].scales);
        assert_int_equal(r.architecture.t5.feed_forward_proj, rows[i].feed_forward);
        assert_int_equal(r.architecture.pad_token_id, 0);
        assert_int_equal(r.architecture.eos_token_ids[0], 1);
    }
}

static void berts_class_says_what_is_learned(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum bert_head head;
        int64_t labels;
        const char *names; /* NULL: none are kept */
    } rows[] = {
        {"\"model_type\": \"bert\"", BERT_MASKED_LM, 2, NULL},
        {"\"architectures\": [\"BertModel\"]", BERT_MASKED_LM, 2, NULL},
        {"\"model_type\": \"bert\", \"architectures\": [\"BertForPreTraining\"]", BERT_PRETRAINING,
         2, NULL},
        {"\"architectures\": [\"BertForSequenceClassification\"], \"id2label\": {\"0\": \"no\", "
         "\"1\": \"so\", \"2\": \"yes\"}",
         BERT_CLASSIFICATION, 3, "no,so,yes"},
        {"\"architectures\": [\"BertForSequenceClassification\"], \"id2label\": {\"0\": \"a,b\", "
         "\"1\": \"c\"}",
         BERT_CLASSIFICATION, 2, NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct reading r = reading_of(arena, arena_printf(arena, "{%s}", rows[i].text));
        assert_ok(r.result, &r.err);
        assert_ptr_equal(r.architecture.family, &family_bert);
        assert_int_equal(r.architecture.bert.head, rows[i].head);
        assert_int_equal(r.architecture.bert.num_labels, rows[i].labels);
        const char *names = r.architecture.bert.label_names;
        assert_string_equal(names ? names : "", rows[i].names ? rows[i].names : "");
    }
}

static const struct {
    const char *text, *message;
} wrong_files[] = {
    {"{\"model_type\": \"mixtral\"}",
     "config.json: model_type: unsupported model \"mixtral\": llama, mistral, gpt2, t5 and bert "
     "work"},
    {"{}", "config.json: model_type: unsupported model \"\": llama, mistral, gpt2, t5 and bert "
           "work"},
    {"{\"model_type\": \"llama\", \"architectures\": [\"LlamaForSequenceClassification\"]}",
     "config.json: architectures: unsupported architecture \"LlamaForSequenceClassification\"; "
     "of llama works: LlamaForCausalLM"},
    {"{\"model_type\": \"bert\", \"architectures\": [\"BertForQuestionAnswering\"]}",
     "config.json: architectures: unsupported architecture \"BertForQuestionAnswering\"; of bert "
     "works: BertForMaskedLM, BertForPreTraining, BertForSequenceClassification"},
    {"{\"model_type\": \"t5\", \"feed_forward_proj\": \"gelu\"}",
     "config.json: feed_forward_proj: unsupported \"gelu\": relu, gated-gelu and gated-silu "
     "work"},
    {"{\"model_type\": \"bert\", \"position_embedding_type\": \"relative_key\"}",
     "config.json: position_embedding_type: unsupported \"relative_key\": absolute works"},
    {"{\"architectures\": [\"BertForSequenceClassification\"], \"problem_type\": "
     "\"regression\"}",
     "config.json: problem_type: unsupported \"regression\": single_label_classification works"},
    {"{\"architectures\": [\"BertForSequenceClassification\"], \"id2label\": {\"0\": \"a\"}}",
     "config.json: BERT model: 1 label: regression is not supported, 2 classes or more are "
     "needed (id2label, num_labels)"},
    {"{\"model_type\": \"bert\", \"is_decoder\": true}",
     "config.json: is_decoder: only false is supported"},
    {"{\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"yarn\"}}",
     "config.json: rope_scaling.rope_type: unsupported rope type \"yarn\": default, linear, "
     "dynamic and llama3 work"},
    {"{\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, "
     "\"low_freq_factor\": 1, \"high_freq_factor\": 4}}",
     "config.json: rope_scaling.original_max_position_embeddings: missing; rope type llama3 "
     "needs it"},
    {"{\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, "
     "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 8192}}",
     "config.json: rope_scaling.low_freq_factor: missing; rope type llama3 needs it"},
    {"{\"model_type\": \"llama\", \"hidden_act\": \"relu\"}",
     "config.json: hidden_act: unsupported activation \"relu\": silu works"},
    {"{\"model_type\": \"gpt2\", \"activation_function\": \"relu\"}",
     "config.json: activation_function: unsupported activation \"relu\": gelu_new, "
     "gelu_pytorch_tanh and gelu work"},
    {"{\"model_type\": \"llama\", \"hidden_size\": \"2048\", \"rms_norm_eps\": -1}",
     "config.json: hidden_size: must be a whole number, not the text \"2048\"; rms_norm_eps: "
     "must be a number within 0 and 1000, not -1"},
    {"{\"model_type\": \"llama\", \"hidden_size\": null, \"num_hidden_layers\": 32.0, "
     "\"num_key_value_heads\": null, \"rope_scaling\": null}",
     "config.json: hidden_size: must not be null: give a value, or leave the field out; "
     "num_hidden_layers: must be a whole number, not the number 32.0"},
    {"{\"model_type\": \"gpt2\", \"tie_word_embeddings\": null, \"n_inner\": null}",
     "config.json: tie_word_embeddings: must not be null: give a value, or leave the field out"},
    {"{\"model_type\": \"t5\", \"tie_word_embeddings\": null, \"d_kv\": null}",
     "config.json: d_kv: must not be null: give a value, or leave the field out"},
    {"\xef\xbb\xbf{\"model_type\": \"t5\"}",
     "config.json: begins with a byte order mark, which JSON has not (RFC 8259): save it as UTF-8 "
     "without one"},
    {"{\"model_type\": \"llama\", \"num_key_value_heads\": 5}",
     "config.json: Llama model: num_key_value_heads 5 does not divide num_attention_heads 32"},
    {"{\"model_type\": \"gpt2\", \"resid_pdrop\": 1.0}",
     "config.json: resid_pdrop: must be a number within 0 and 0.999999, not 1.0"},
    {"{\"model_type\": \"llama\", \"pad_token_id\": 32000}",
     "config.json: Llama model: pad_token_id is 32000, not within -1 .. 31999"},
    {"{\"model_type\": \"bert\", \"pad_token_id\": 30522}",
     "config.json: BERT model: pad_token_id is 30522, not within -1 .. 30521"},
    {"{\"model_type\": \"llama\", \"partial_rotary_factor\": 0.5}",
     "config.json: partial_rotary_factor: 0.5 is not supported: only 1 is"},
    {"{\"model_type\": \"mistral\", \"rope_parameters\": {\"partial_rotary_factor\": 2}}",
     "config.json: rope_parameters.partial_rotary_factor: 2 is not supported: only 1 is"},
    {"[]", "config.json: must be a mapping, not a list"},
    {"{\"model_type\": \"llama\"", "config.json: line 1, column 22: '}' expected near end of file"},
};

static void wrong_files_are_refused_by_field_and_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(wrong_files); i++) {
        auto_arena struct arena *arena = arena_open();
        struct reading r = reading_of(arena, wrong_files[i].text);
        assert_true(r.result < 0);
        assert_int_equal(r.err.code, ERR_CONFIG);
        assert_string_equal(r.err.msg, wrong_files[i].message);
    }
}

/* What is written is what was read, for every named model. */
static void written_files_read_back(void **state)
{
    (void)state;
    for (int i = 0; architecture_name(i); i++) {
        auto_arena struct arena *arena = arena_open();
        struct architecture a;
        assert_true(architecture_find(architecture_name(i), &a));
        a.bert.head = (enum bert_head)(i % BERT_HEADS);
        a.bert.num_labels = 3;
        a.bert.label_names = i % 2 ? "bad,so so,good" : NULL;
        a.bert.classifier_dropout = i % 2 ? 0.3 : -1;
        if (a.family->rope)
            a.llama.head_dim = llama_head_dim(&a.llama); /* the file always says it */
        auto_str struct str text, again;
        str_init(&text, 1 << 16);
        str_init(&again, 1 << 16);
        config_json_write(&a, "float32", &text);
        struct reading r = reading_of(arena, str_text(&text));
        assert_ok(r.result, &r.err);
        assert_int_equal(r.notes.count, 0);
        assert_ptr_equal(r.architecture.family, a.family);
        if (a.family == &family_bert && a.bert.head == BERT_CLASSIFICATION)
            assert_string_equal(r.architecture.bert.label_names,
                                i % 2 ? "bad,so so,good" : "LABEL_0,LABEL_1,LABEL_2");
        config_json_write(&r.architecture, "float32", &again);
        assert_string_equal(str_text(&again), str_text(&text));
        assert_int_equal(module_param_count(architecture_build(arena, &r.architecture)->root),
                         module_param_count(architecture_build(arena, &a)->root));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_published_file_gives_the_published_model),
        cmocka_unit_test(absent_fields_have_the_classes_defaults),
        cmocka_unit_test(rope_is_read_in_all_its_spellings),
        cmocka_unit_test(t5_says_whether_it_is_tied_and_scaled),
        cmocka_unit_test(berts_class_says_what_is_learned),
        cmocka_unit_test(wrong_files_are_refused_by_field_and_value),
        cmocka_unit_test(written_files_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
