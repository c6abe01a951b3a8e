/* A tokenizer's directory: which file of it is read, what is wrong with it, and its
 * special tokens. */
#include "agent/text/tokenizer.h"

#include "base/mem.h"
#include "tests/agent/tokenized.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>

#define DATA "tests/data/tokenizers/"

static void put(const char *dir, const char *name, const char *text)
{
    auto_free char *path = xasprintf("%s/%s", dir, name);
    auto_fclose FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
}

static void test_directories(void **state)
{
    const char *dir = *state;
    struct tokenizer *t;
    struct error err;
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_NOT_FOUND,
                 "no tokenizer is in it: looked for tokenizer.json, spiece.model, "
                 "tokenizer.model, vocab.json, vocab.txt");
    put(dir, "vocab.txt", "[PAD]\n[UNK]\n");
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_INPUT,
                 "vocab.txt: there is no line [CLS]: this is no vocabulary of BERT's");
    put(dir, "vocab.txt", "[CLS]\n[SEP]\n[UNK]\na\na\n");
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_INPUT,
                 "vocab.txt: model.vocab: piece \"a\" has two ids, 3 and 4");
    put(dir, "vocab.txt", "[CLS]\n[SEP]\na\n");
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_INPUT,
                 "vocab.txt: model.unk_token: [UNK] is not in model.vocab");
    put(dir, "vocab.json", "{\"a\":0,\"b\":1,\"ab\":2,\"<|endoftext|>\":3}");
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_NOT_FOUND, "merges.txt: No such file");
    put(dir, "merges.txt", "#version: 0.2\na b\nab\n");
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_INPUT,
                 "merges.txt:3: must be \"LEFT RIGHT\", not ab");
    put(dir, "merges.txt", "#version: 0.2\r\na b\r\n");
    assert_ok(tokenizer_open(dir, &t, &err), &err);
    struct tokenizer_special special = tokenizer_special(t);
    assert_int_equal(special.bos, 3);
    assert_int_equal(special.eos, 3);
    assert_int_equal(special.pad, -1);
    tokenizer_close(t);
    put(dir, "tokenizer.model", "IQ== 0\nIg== 1\n");
    assert_fails(
        tokenizer_open(dir, &t, &err), &err, ERR_UNSUPPORTED,
        "tokenizer.model: a tiktoken file, which is not supported: put the tokenizer.json");
    put(dir, "spiece.model", "\x0a\x05nonsense");
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_INPUT,
                 "spiece.model: not a SentencePiece model: ");
    put(dir, "tokenizer.json", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}");
    assert_ok(tokenizer_open(dir, &t, &err), &err);
    tokenizer_close(t);
}

/* tokenizer_config.json has the last word on special tokens. */
static void test_special_tokens(void **state)
{
    const char *dir = *state;
    struct tokenizer *t;
    struct error err;
    put(dir, "vocab.json", "{\"a\":0,\"b\":1,\"ab\":2,\"<|endoftext|>\":3,\"[P]\":4}");
    put(dir, "merges.txt", "a b\n");
    put(dir, "added_tokens.json", "{\"<x>\": 7}");
    put(dir, "special_tokens_map.json",
        "{\"bos_token\":\"a\",\"eos_token\":{\"content\":\"b\",\"lstrip\":false},\"pad_token\":\"[P]\"}");
    put(dir, "tokenizer_config.json",
        "{\"bos_token\":\"<x>\",\"unk_token\":null,\"add_bos_token\":true,\"other\":[1]}");
    assert_ok(tokenizer_open(dir, &t, &err), &err);
    assert_int_equal(tokenizer_vocabulary(t), 8);
    struct tokenizer_special special = tokenizer_special(t);
    assert_int_equal(special.bos, 7);
    assert_int_equal(special.eos, 1);
    assert_int_equal(special.pad, 4);
    assert_int_equal(special.unk, -1);
    const int32_t wanted[] = {7, 0, 1, 4, 7};
    /* b is an added token now, so nothing merges with it */
    tokenized_as(t, "ab[P]<x>", wanted, array_length(wanted));
    tokenizer_close(t);
    put(dir, "tokenizer_config.json",
        "{\"added_tokens_decoder\":{\"9\":{\"content\":\"<y>\",\"special\":true}}}");
    assert_ok(tokenizer_open(dir, &t, &err), &err);
    assert_int_equal(tokenizer_vocabulary(t), 10); /* instead of added_tokens.json's */
    tokenizer_close(t);
    put(dir, "tokenizer_config.json", "{\"added_tokens_decoder\":{\"x\":{\"content\":\"<y>\"}}}");
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_INPUT,
                 "tokenizer_config.json: added_tokens_decoder.x: must be an id within 0 and");
    put(dir, "tokenizer_config.json", "{\"add_bos_token\":1}");
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_INPUT,
                 "tokenizer_config.json: add_bos_token: must be true or false");
    put(dir, "tokenizer_config.json", "{");
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_INPUT,
                 "tokenizer_config.json: line 1, column 1: ");
}

/* A SentencePiece model with added tokens and eos, as its config says. */
static void test_sentencepiece_with_config(void **state)
{
    const char *dir = *state;
    struct tokenizer *t;
    struct error err;
    auto_free char *command =
        xasprintf("cp " DATA "spm_bpe/tokenizer.model '%s/tokenizer.model'", dir);
    assert_int_equal(system(command), 0);
    assert_ok(tokenizer_open(dir, &t, &err), &err);
    int32_t size = tokenizer_vocabulary(t);
    auto_tokens struct tokens plain = {0}, ids = {0};
    tokenized(t, "one", false, &plain);
    tokenizer_close(t);
    auto_free char *config =
        xasprintf("{\"add_bos_token\":false,\"add_eos_token\":true,\"added_tokens_decoder\":{"
                  "\"%d\":{\"content\":\"<pad>\",\"special\":true}},\"pad_token\":\"<pad>\"}",
                  size);
    put(dir, "tokenizer_config.json", config);
    assert_ok(tokenizer_open(dir, &t, &err), &err);
    struct tokenizer_special special = tokenizer_special(t);
    assert_int_equal(special.pad, size);
    assert_int_equal(special.bos, 1);
    assert_int_equal(special.unk, 0);
    tokenized(t, "one<pad>one", true, &ids);
    assert_int_equal(ids.count, 2 * plain.count + 2);
    assert_int_equal(ids.ids[plain.count], size);
    assert_int_equal(ids.ids[ids.count - 1], special.eos);
    auto_str struct str text;
    str_init(&text, 100);
    assert_ok(tokenizer_decode(t, ids.ids, ids.count, false, &text, &err), &err);
    assert_string_equal(str_text(&text), "one<pad>one");
    str_clear(&text);
    assert_ok(tokenizer_decode(t, ids.ids, ids.count, true, &text, &err), &err);
    assert_string_equal(str_text(&text), "oneone");
    tokenizer_close(t);
}

/* What tokenizer_config.json says beside a tokenizer.json, by the class that it names: the ids that
 * transformers' class gives. */
static void test_tokenizer_classes(void **state)
{
#define BERT                                                                                       \
    "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":"   \
    "true,\"strip_accents\":null,\"lowercase\":false},\"pre_tokenizer\":{\"type\":"                \
    "\"BertPreTokenizer\"},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"vocab\":{"      \
    "\"?\":0,\"e\":1,\"E\":2,\"\u00e9\":3,\"\u4e00\u4e01\":4,\"\u4e00\":5,\"\u4e01\":6}}}"
#define BYTES                                                                                       \
    "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"    \
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"    \
    "\"B\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":"        \
    "{\"B\":{\"id\":\"B\",\"ids\":[2],\"tokens\":[\"B\"]}}},\"model\":{\"type\":\"BPE\",\"vocab\":" \
    "{\"a\":0,\"\u0120\":1,\"B\":2,\"E\":3},\"merges\":[]}}"
    enum { MOST = 4 };
    static const struct {
        const char *json, *config, *text;
        int32_t wanted[MOST];
        size_t count;
    } rows[] = {
        {BERT, "{}", "E\u00e9\u4e00", {0, 5}, 2},
        {BERT, "{\"tokenizer_class\":\"BertTokenizer\"}", "E \u00e9", {2, 3}, 2},
        {BERT,
         "{\"tokenizer_class\":\"BertTokenizer\",\"do_lower_case\":true}",
         "E \u00e9",
         {1, 1},
         2},
        {BERT,
         "{\"tokenizer_class\":\"DistilBertTokenizerFast\",\"do_lower_case\":true,"
         "\"strip_accents\":false}",
         "E \u00e9",
         {1, 3},
         2},
        {BERT,
         "{\"tokenizer_class\":\"BertTokenizer\",\"strip_accents\":true}",
         "E \u00e9",
         {2, 1},
         2},
        {BERT,
         "{\"tokenizer_class\":\"BertTokenizer\",\"tokenize_chinese_chars\":false}",
         "\u4e00\u4e01",
         {4},
         1},
        {BERT, "{\"tokenizer_class\":\"BertTokenizer\"}", "\u4e00\u4e01", {5, 6}, 2},
        /* no class of BERT's */
        {BERT,
         "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"do_lower_case\":true}",
         "E",
         {2},
         1},
        {BERT, "{\"do_lower_case\":true}", "E", {2}, 1},

        {BYTES, "{}", "a", {2, 0}, 2},
        {BYTES, "{\"add_prefix_space\":true}", "a", {2, 1, 0}, 3},
        {BYTES,
         "{\"tokenizer_class\":\"LlamaTokenizer\",\"bos_token\":\"B\",\"eos_token\":\"E\","
         "\"add_eos_token\":true}",
         "a",
         {2, 0, 3},
         3},
        {BYTES,
         "{\"tokenizer_class\":\"LlamaTokenizerFast\",\"bos_token\":\"B\",\"eos_token\":\"E\","
         "\"add_bos_token\":false,\"add_eos_token\":true}",
         "a",
         {0, 3},
         2},
        {BYTES,
         "{\"tokenizer_class\":\"GemmaTokenizer\",\"bos_token\":\"B\",\"add_bos_token\":false}",
         "a",
         {0},
         1},
        /* no class that makes its own post-processor */
        {BYTES,
         "{\"tokenizer_class\":\"GPT2Tokenizer\",\"bos_token\":\"B\",\"add_bos_token\":false}",
         "a",
         {2, 0},
         2},
    };
    const char *dir = *state;
    struct tokenizer *t;
    struct error err;
    for (size_t i = 0; i < array_length(rows); i++) {
        put(dir, "tokenizer.json", rows[i].json);
        put(dir, "tokenizer_config.json", rows[i].config);
        assert_ok(tokenizer_open(dir, &t, &err), &err);
        tokenized_as(t, rows[i].text, rows[i].wanted, rows[i].count);
        tokenizer_close(t);
    }
    put(dir, "tokenizer_config.json",
        "{\"tokenizer_class\":\"LlamaTokenizer\",\"add_eos_token\":true}");
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_INPUT,
                 "tokenizer_config.json says add_eos_token, but eos_token is no token of this "
                 "tokenizer");
#undef BERT
#undef BYTES
}

/* BERT's ids by their names; T5's sentinels, which its model does not have. */
static void test_special_tokens_of_bert_and_t5(void **state)
{
    (void)state;
    static const char *const berts[] = {DATA "bert_cased", DATA "bert_cased_files"};
    struct tokenizer *t;
    struct error err;
    for (size_t i = 0; i < array_length(berts); i++) {
        assert_ok(tokenizer_open(berts[i], &t, &err), &err);
        struct tokenizer_special special = tokenizer_special(t);
        assert_int_equal(special.pad, 0);
        assert_int_equal(special.unk, 1);
        assert_int_equal(special.bos, 2);
        assert_int_equal(special.eos, 3);
        assert_int_equal(special.mask, 4);
        const int32_t wanted[] = {2, 4, 3, 3};
        tokenized_as(t, "[MASK] [SEP]", wanted, array_length(wanted));
        tokenizer_close(t);
    }
    static const char *const t5s[] = {DATA "spm_t5", DATA "unigram_t5"};
    for (size_t i = 0; i < array_length(t5s); i++) {
        assert_ok(tokenizer_open(t5s[i], &t, &err), &err);
        struct tokenizer_special special = tokenizer_special(t);
        int32_t size = tokenizer_vocabulary(t);
        assert_int_equal(special.pad, 0);
        assert_int_equal(special.eos, 1);
        assert_int_equal(special.unk, 2);
        const int32_t wanted[] = {size - 1, size - 100, 1};
        tokenized_as(t, "<extra_id_0><extra_id_99>", wanted, array_length(wanted));
        tokenizer_close(t);
    }
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_directories),
        IN_DIR(test_special_tokens),
        IN_DIR(test_sentencepiece_with_config),
        IN_DIR(test_tokenizer_classes),
        cmocka_unit_test(test_special_tokens_of_bert_and_t5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
