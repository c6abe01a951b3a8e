/* Token for token what the tokenizers library and SentencePiece give: tests/data/tokenizers. */
#include "agent/text/tokenizer.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA "tests/data/tokenizers/"

/* Every line of a file as JSON; the caller frees. */
static struct json *read_lines(const char *path)
{
    auto_free char *text = NULL;
    size_t bytes;
    struct error err;
    assert_ok(file_read(path, 1 << 20, &text, &bytes, &err), &err);
    struct json *lines = json_new_array();
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line;) {
        struct json *value = json_parse_text(line, JSON_ALLOW_NUL, NULL);
        assert_non_null(value);
        json_append(lines, value);
    }
    return lines;
}

/* The bytes of a string; a NUL may be among them. */
static void add_text(struct str *out, const struct json *string)
{
    struct json *copy = json_clone(string);
    size_t bytes = json_restore_nul(copy);
    str_add_bytes(out, json_as_text(copy), bytes);
    json_free(copy);
}

/* A text of texts.jsonl as bytes. */
static void get_text(const struct json *line, struct str *out, bool *ret_around)
{
    str_clear(out);
    const struct json *text = json_get(line, "text");
    *ret_around = !text && json_get(line, "around");
    if (*ret_around)
        text = json_get(line, "around");
    if (text)
        add_text(out, text);
    const char *hex = json_as_text(json_get(line, "hex"));
    for (; hex && *hex; hex += 2) {
        unsigned byte;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        str_add_bytes(out, &(char){(char)byte}, 1);
    }
}

static void show(const char *name, size_t line, const struct tokens *got, const struct json *wanted)
{
    print_message("# %s, line %zu: got", name, line + 1);
    for (size_t i = 0; i < got->count; i++)
        print_message(" %d", got->ids[i]);
    auto_free char *text = json_print(wanted, JSON_COMPACT);
    print_message(", not %s\n", text);
}

static bool same_ids(const struct tokens *got, const struct json *wanted)
{
    bool same = got->count == json_array_count(wanted);
    for (size_t i = 0; i < got->count && same; i++)
        same = got->ids[i] == json_as_integer(json_at(wanted, i));
    return same;
}

static int check_line(const struct tokenizer *t, const char *name, size_t number,
                      const struct json *input, const struct json *wanted)
{
    auto_str struct str text, back, expected;
    auto_tokens struct tokens ids = {0};
    struct error err;
    bool around;
    str_init(&text, 1 << 20);
    str_init(&back, 1 << 20);
    str_init(&expected, 1 << 20);
    get_text(input, &text, &around);
    assert_ok(tokenizer_encode(t, str_text(&text), text.length, around, &ids, &err), &err);
    if (!same_ids(&ids, json_at(wanted, 0))) {
        show(name, number, &ids, json_at(wanted, 0));
        return 1;
    }
    if (around || json_get(input, "hex") || json_is_null(json_at(wanted, 1)))
        return 0;
    const struct json *decoded = json_at(wanted, 1);
    if (!decoded)
        decoded = json_get(input, "text");
    assert_ok(tokenizer_decode(t, ids.ids, ids.count, false, &back, &err), &err);
    add_text(&expected, decoded);
    if (back.length == expected.length &&
        memcmp(str_text(&back), str_text(&expected), back.length) == 0)
        return 0;
    print_message("# %s, line %zu: decodes to \"%s\", not \"%s\"\n", name, number + 1,
                  str_text(&back), json_as_text(decoded));
    return 1;
}

/* Encodes all texts of the fixture with the tokenizer at `path`; how many differ from what is
 * expected of `name`. */
static int check_all(const char *path, const char *name)
{
    struct tokenizer *t;
    struct error err;
    auto_free char *file = xasprintf(DATA "%s/expected.jsonl", name);
    struct json *inputs = read_lines(DATA "texts.jsonl"), *wanted = read_lines(file);
    assert_ok(tokenizer_open(path, &t, &err), &err);
    assert_int_equal(json_array_count(inputs), json_array_count(wanted));
    assert_true(json_array_count(inputs) > 90);
    int differ = 0;
    for (size_t i = 0; i < json_array_count(inputs); i++)
        differ += check_line(t, name, i, json_at(inputs, i), json_at(wanted, i));
    tokenizer_close(t);
    json_free(inputs);
    json_free(wanted);
    return differ;
}

static void test_same_as_the_libraries(void **state)
{
    (void)state;
    static const char *const names[] = {
        "gpt2",           "gpt2_prefix",   "llama3",         "llama2_legacy", "llama2_metaspace",
        "unknown_fused",  "unknown_apart", "split_previous", "split_next",    "split_removed",
        "split_inverted", "spm_bpe",       "spm_unigram",    "bert_uncased",  "bert_cased",
        "unigram_bytes",  "unigram_t5",    "spm_t5",
    };
    int differ = 0;
    for (size_t i = 0; i < array_length(names); i++) {
        auto_free char *path = xasprintf(DATA "%s", names[i]);
        differ += check_all(path, names[i]);
    }
    assert_int_equal(differ, 0);
}

/* vocab.json and merges.txt are the same tokenizer as the tokenizer.json. */
static void test_gpt2_files(void **state)
{
    (void)state;
    assert_int_equal(check_all(DATA "gpt2_files", "gpt2"), 0);
    assert_int_equal(check_all(DATA "gpt2_files/vocab.json", "gpt2"), 0);
}

/* vocab.txt, with tokenizer_config.json beside it. */
static void test_bert_files(void **state)
{
    (void)state;
    assert_int_equal(check_all(DATA "bert_uncased_files", "bert_uncased"), 0);
    assert_int_equal(check_all(DATA "bert_cased_files/vocab.txt", "bert_cased"), 0);
}

/* ---- long texts: what would be quadratic does not come to an end here ---- */

static void encode_repeated(const char *name, const char *unit, size_t bytes)
{
    struct tokenizer *t;
    struct error err;
    auto_free char *path = xasprintf(DATA "%s", name);
    auto_str struct str text, back;
    auto_tokens struct tokens ids = {0};
    str_init(&text, bytes + 100);
    str_init(&back, bytes + 100);
    str_add(&text, "x"); /* a leading space is the prefix to some of them */
    while (text.length < bytes)
        str_add(&text, unit);
    assert_ok(tokenizer_open(path, &t, &err), &err);
    assert_ok(tokenizer_encode(t, str_text(&text), text.length, false, &ids, &err), &err);
    assert_ok(tokenizer_decode(t, ids.ids, ids.count, false, &back, &err), &err);
    assert_int_equal(back.length, text.length);
    assert_memory_equal(str_text(&back), str_text(&text), text.length);
    tokenizer_close(t);
}

static void test_long_texts(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2", "llama3", "llama2_legacy", "llama2_metaspace"};
    static const char *const units[] = {"a", " ",  "\n", "\xf0\x9f\x99\x82",
                                        "7", "<|", "a ", "\r\n \t"};
    for (size_t n = 0; n < array_length(names); n++)
        for (size_t u = 0; u < array_length(units); u++)
            encode_repeated(names[n], units[u], 20000);
    encode_repeated("llama3", "a", 400000);
    encode_repeated("llama2_legacy", "ab ", 400000);
    encode_repeated("llama3", " ", 400000);
}

static void test_too_long(void **state)
{
    (void)state;
    struct tokenizer *t;
    struct error err;
    auto_tokens struct tokens ids = {0};
    assert_ok(tokenizer_open(DATA "gpt2", &t, &err), &err);
    assert_fails(tokenizer_encode(t, "", (size_t)TOKENIZER_MAX_TEXT_BYTES + 1, false, &ids, &err),
                 &err, ERR_LIMIT, "at most 268435456: give it in parts");
    tokenizer_close(t);
}

/* ---- many threads, one tokenizer ---- */

enum { THREADS = 4, ROUNDS = 3 };

struct reader {
    const struct tokenizer *tokenizer;
    const struct json *inputs;
    struct tokens ids; /* of all texts, ROUNDS times */
    pthread_t thread;
};

static void *read_all(void *arg)
{
    struct reader *reader = arg;
    auto_str struct str text;
    struct error err;
    str_init(&text, 1 << 20);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < json_array_count(reader->inputs); i++) {
            bool around;
            get_text(json_at(reader->inputs, i), &text, &around);
            if (tokenizer_encode(reader->tokenizer, str_text(&text), text.length, around,
                                 &reader->ids, &err) < 0)
                return &reader->ids;
        }
    }
    return NULL;
}

static void check_threads(const char *path)
{
    struct tokenizer *t;
    struct error err;
    struct reader readers[THREADS] = {0};
    struct json *inputs = read_lines(DATA "texts.jsonl");
    assert_ok(tokenizer_open(path, &t, &err), &err);
    for (int i = 0; i < THREADS; i++) {
        readers[i].tokenizer = t;
        readers[i].inputs = inputs;
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        assert_int_equal(pthread_join(readers[i].thread, &failed), 0);
        assert_null(failed);
        assert_int_equal(readers[i].ids.count, readers[0].ids.count);
        assert_memory_equal(readers[i].ids.ids, readers[0].ids.ids,
                            readers[0].ids.count * sizeof(int32_t));
    }
    for (int i = 0; i < THREADS; i++)
        tokens_free(&readers[i].ids);
    tokenizer_close(t);
    json_free(inputs);
}

static void test_threads(void **state)
{
    (void)state;
    check_threads(DATA "llama3");
    check_threads(DATA "gpt2_prefix");
    check_threads(DATA "llama2_legacy");
    check_threads(DATA "spm_bpe");
    check_threads(DATA "spm_unigram");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_the_libraries),
        cmocka_unit_test(test_gpt2_files),
        cmocka_unit_test(test_bert_files),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
