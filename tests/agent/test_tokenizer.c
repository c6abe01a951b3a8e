/* Token for token what the tokenizers library and SentencePiece give: tests/data/tokenizers. */
#include "agent/text/tokenizer.h"

#include "base/file.h"
#include "base/mem.h"
#include "tests/support.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA "tests/data/tokenizers/"

/* Every line of a file as JSON; the caller frees. */
static json_t *read_lines(const char *path)
{
    auto_free char *text = NULL;
    size_t bytes;
    struct error err;
    assert_ok(file_read(path, 1 << 20, &text, &bytes, &err), &err);
    json_t *lines = json_array();
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line;) {
        json_t *value = json_loads(line, JSON_ALLOW_NUL, NULL);
        assert_non_null(value);
        json_array_append_new(lines, value);
    }
    return lines;
}

/* A text of texts.jsonl as bytes. */
static void get_text(const json_t *line, struct str *out, bool *ret_around)
{
    str_clear(out);
    const json_t *text = json_object_get(line, "text");
    *ret_around = !text && json_object_get(line, "around");
    if (*ret_around)
        text = json_object_get(line, "around");
    if (text)
        str_add_bytes(out, json_string_value(text), json_string_length(text));
    const char *hex = json_string_value(json_object_get(line, "hex"));
    for (; hex && *hex; hex += 2) {
        unsigned byte;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        str_add_bytes(out, &(char){(char)byte}, 1);
    }
}

static void show(const char *name, size_t line, const struct tokens *got, const json_t *wanted)
{
    print_message("# %s, line %zu: got", name, line + 1);
    for (size_t i = 0; i < got->count; i++)
        print_message(" %d", got->ids[i]);
    auto_free char *text = json_dumps(wanted, JSON_COMPACT);
    print_message(", not %s\n", text);
}

static bool same_ids(const struct tokens *got, const json_t *wanted)
{
    bool same = got->count == json_array_size(wanted);
    for (size_t i = 0; i < got->count && same; i++)
        same = got->ids[i] == json_integer_value(json_array_get(wanted, i));
    return same;
}

static int check_line(const struct tokenizer *t, const char *name, size_t number,
                      const json_t *input, const json_t *wanted)
{
    auto_str struct str text, back;
    auto_tokens struct tokens ids = {0};
    struct error err;
    bool around;
    str_init(&text, 1 << 20);
    str_init(&back, 1 << 20);
    get_text(input, &text, &around);
    assert_ok(tokenizer_encode(t, str_text(&text), text.length, around, &ids, &err), &err);
    if (!same_ids(&ids, json_array_get(wanted, 0))) {
        show(name, number, &ids, json_array_get(wanted, 0));
        return 1;
    }
    if (around || json_object_get(input, "hex") || json_is_null(json_array_get(wanted, 1)))
        return 0;
    const json_t *decoded = json_array_get(wanted, 1);
    if (!decoded)
        decoded = json_object_get(input, "text");
    assert_ok(tokenizer_decode(t, ids.ids, ids.count, false, &back, &err), &err);
    if (back.length == json_string_length(decoded) &&
        memcmp(str_text(&back), json_string_value(decoded), back.length) == 0)
        return 0;
    print_message("# %s, line %zu: decodes to \"%s\", not \"%s\"\n", name, number + 1,
                  str_text(&back), json_string_value(decoded));
    return 1;
}

/* Encodes all texts of the fixture with the tokenizer at `path`; how many differ from what is
 * expected of `name`. */
static int check_all(const char *path, const char *name)
{
    struct tokenizer *t;
    struct error err;
    auto_free char *file = xasprintf(DATA "%s/expected.jsonl", name);
    json_t *inputs = read_lines(DATA "texts.jsonl"), *wanted = read_lines(file);
    assert_ok(tokenizer_open(path, &t, &err), &err);
    assert_int_equal(json_array_size(inputs), json_array_size(wanted));
    assert_true(json_array_size(inputs) > 90);
    int differ = 0;
    for (size_t i = 0; i < json_array_size(inputs); i++)
        differ += check_line(t, name, i, json_array_get(inputs, i), json_array_get(wanted, i));
    tokenizer_close(t);
    json_decref(inputs);
    json_decref(wanted);
    return differ;
}

static void test_same_as_the_libraries(void **state)
{
    (void)state;
    static const char *const names[] = {
        "gpt2",           "gpt2_prefix",   "llama3",         "llama2_legacy", "llama2_metaspace",
        "unknown_fused",  "unknown_apart", "split_previous", "split_next",    "split_removed",
        "split_inverted", "spm_bpe",       "spm_unigram",
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_the_libraries),
        cmocka_unit_test(test_gpt2_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
