/* A tokenizer's directory: which file of it is read, what is wrong with it, and its
 * special tokens. */
#include "agent/text/tokenizer.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/agent/tokenized.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Files of 2020 do not say which model they have. */
static void test_models_without_a_type(void **state)
{
    static const struct {
        const char *name, *type;
    } rows[] = {{"bert_uncased", "\"type\": \"WordPiece\","},
                {"unigram_t5", "\"type\": \"Unigram\","},
                {"gpt2", "\"type\": \"BPE\","}};
    const char *dir = *state, *text = "Files of the year 2020";
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *path = xasprintf(DATA "%s/tokenizer.json", rows[i].name);
        auto_free char *content = NULL;
        auto_tokens struct tokens with = {0}, without = {0};
        struct tokenizer *t;
        struct error err;
        size_t bytes;
        assert_ok(tokenizer_open(path, &t, &err), &err);
        tokenized(t, text, true, &with);
        tokenizer_close(t);
        assert_ok(file_read(path, 16 << 20, &content, &bytes, &err), &err);
        char *model = strstr(content, "\"model\": {"), *type = strstr(model, rows[i].type);
        assert_non_null(type);
        memset(type, ' ', strlen(rows[i].type));
        put(dir, "tokenizer.json", content);
        assert_ok(tokenizer_open(dir, &t, &err), &err);
        tokenized(t, text, true, &without);
        tokenizer_close(t);
        assert_int_equal(without.count, with.count);
        assert_memory_equal(without.ids, with.ids, with.count * sizeof *with.ids);
    }
}

/* Other classes make other ids of files of the same name, and their code is not here. */
static void test_files_of_other_classes(void **state)
{
    (void)state;
    static const struct {
        const char *file, *from, *class_name;
        bool is_read;
    } rows[] = {
        {"vocab.txt", "bert_cased_files/vocab.txt", "BertTokenizer", true},
        {"vocab.txt", "bert_cased_files/vocab.txt", "PreTrainedTokenizerFast", true},
        {"vocab.txt", "bert_cased_files/vocab.txt", "BertJapaneseTokenizer", false},
        {"vocab.txt", "bert_cased_files/vocab.txt", "T5Tokenizer", false},
        {"spiece.model", "spm_t5/spiece.model", "T5TokenizerFast", true},
        {"spiece.model", "spm_t5/spiece.model", "AlbertTokenizer", false},
        {"tokenizer.model", "spm_bpe/tokenizer.model", "LlamaTokenizer", true},
        {"tokenizer.model", "spm_bpe/tokenizer.model", "GPT2Tokenizer", false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char *dir = support_temp_dir();
        struct tokenizer *t;
        struct error err;
        auto_free char *command =
            xasprintf("cp " DATA "%s '%s/%s'", rows[i].from, dir, rows[i].file);
        auto_free char *config = xasprintf("{\"tokenizer_class\":\"%s\"}", rows[i].class_name);
        assert_int_equal(system(command), 0);
        put(dir, "tokenizer_config.json", config);
        int result = tokenizer_open(dir, &t, &err);
        if (rows[i].is_read)
            assert_ok(result, &err);
        else
            assert_fails(result, &err, ERR_UNSUPPORTED, rows[i].class_name);
        if (rows[i].is_read)
            tokenizer_close(t);
        support_remove_tree(dir);
        free(dir);
    }
}

/* The ids are transformers 4.57's and 5.24's. */
static void test_how_many_sentinels(void **state)
{
    static const struct {
        const char *config, *text;
        int32_t first;
        int32_t vocabulary;
    } rows[] = {
        {"{\"extra_ids\":10}", "<extra_id_0>", 459, 460},
        {"{}", "<extra_id_0>", 549, 550},
        {"{\"extra_ids\":0}", "a", -1, 450},
    };
    const char *dir = *state;
    auto_free char *command = xasprintf("cp " DATA "spm_t5/spiece.model '%s'", dir);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_tokens struct tokens ids = {0};
        struct tokenizer *t;
        struct error err;
        put(dir, "tokenizer_config.json", rows[i].config);
        assert_ok(tokenizer_open(dir, &t, &err), &err);
        assert_int_equal(tokenizer_vocabulary(t), rows[i].vocabulary);
        tokenized(t, rows[i].text, false, &ids);
        if (rows[i].first >= 0)
            assert_int_equal(ids.ids[0], rows[i].first);
        tokenizer_close(t);
    }
}

/* A case of tests/data/tokenizers/classes: the ids that transformers 4's class gives. */
static void assert_case(const char *dir, const struct json *one)
{
    struct tokenizer *t;
    struct error err;
    const char *text = json_as_text(json_get(one, "text"));
    auto_free char *config = json_print(json_get(one, "config"), JSON_COMPACT);
    auto_free char *form =
        xasprintf(DATA "classes/%s.json", json_as_text(json_get(one, "tokenizer")));
    auto_free char *content = NULL;
    size_t bytes;
    assert_ok(file_read(form, 1 << 20, &content, &bytes, &err), &err);
    put(dir, "tokenizer.json", content);
    put(dir, "tokenizer_config.json", config);
    assert_ok(tokenizer_open(dir, &t, &err), &err);
    auto_tokens struct tokens ids = {0};
    tokenized(t, text, true, &ids);
    const struct json *wanted = json_get(one, "ids");
    bool same = ids.count == (size_t)json_array_count(wanted);
    for (size_t i = 0; same && i < ids.count; i++)
        same = ids.ids[i] == json_as_integer(json_at(wanted, i));
    if (!same)
        fail_msg("%s: %zu ids, the first %d", config, ids.count, ids.count ? ids.ids[0] : -1);
    tokenizer_close(t);
}

static void test_tokenizer_classes(void **state)
{
    enum { CASES = 92 };
    const char *dir = *state;
    struct tokenizer *t;
    struct error err;
    auto_free char *text = NULL;
    size_t bytes;
    assert_ok(file_read(DATA "classes/cases.json", 1 << 20, &text, &bytes, &err), &err);
    struct json *cases = json_parse(text, bytes, JSON_STRICT, &err), *one;
    int count = 0;
    assert_non_null(cases);
    json_each_item(one, cases) {
        assert_case(dir, one);
        count++;
    }
    json_free(cases);
    assert_int_equal(count, CASES);
    put(dir, "tokenizer_config.json",
        "{\"tokenizer_class\":\"LlamaTokenizer\",\"add_eos_token\":true}");
    assert_fails(tokenizer_open(dir, &t, &err), &err, ERR_INPUT,
                 "tokenizer_config.json says add_eos_token, but eos_token is no token of this "
                 "tokenizer");
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
        IN_DIR(test_models_without_a_type),
        cmocka_unit_test(test_files_of_other_classes),
        IN_DIR(test_how_many_sentinels),
        IN_DIR(test_tokenizer_classes),
        cmocka_unit_test(test_special_tokens_of_bert_and_t5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
