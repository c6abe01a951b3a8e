/* Splits by name and part, and which files of a directory they are. */
#include "agent/dataset/token_split.h"

#include "agent/dataset/token_files.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

static void test_rows(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t max_rows, rows, first, end;
    } rows[] = {
        {"train", 0, 10, 0, 10},           {"train", 4, 10, 0, 4},
        {"train[:3]", 0, 10, 0, 3},        {"train[:30]", 0, 10, 0, 10},
        {"train[7:]", 0, 10, 7, 10},       {"train[2:5]", 2, 10, 2, 4},
        {"train[:10%]", 0, 55, 0, 6},      {"train[10%:]", 0, 55, 6, 55},
        {"train[:10%]", 0, 54, 0, 5},      {"train[5:2]", 0, 10, 5, 5},
        {"train[20:]", 0, 10, 10, 10},     {"train[:]", 0, 10, 0, 10},
        {"train[:100%]", 0, 10, 0, 10},    {"train[3:50%]", 0, 10, 3, 5},
        {"train[2:]", 3, INT64_MAX, 2, 5}, {"train[:10%]", 0, 25, 0, 2},
        {"train[10%:]", 0, 35, 4, 35},     {"train[50%:]", 0, 1, 0, 1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct token_split split;
        struct error err;
        int64_t first, end;
        assert_ok(token_split_parse(rows[i].text, rows[i].max_rows, &split, &err), &err);
        assert_string_equal(split.name, "train");
        token_split_rows(&split, rows[i].rows, &first, &end);
        assert_int_equal(first, rows[i].first);
        assert_int_equal(end, rows[i].end);
        assert_int_equal(token_split_needs_count(&split), strchr(rows[i].text, '%') != NULL);
    }
}

static void test_wrong(void **state)
{
    (void)state;
    static const char *const texts[] = {"",          "[:3]",         "train[3]",   "train[:3",
                                        "train[:x]", "train[:101%]", "train[-3:]", "train[:3]x",
                                        "a/b",       "train[%:]",    "train[:3:]"};
    for (size_t i = 0; i < array_length(texts); i++) {
        struct token_split split;
        struct error err;
        assert_fails(token_split_parse(texts[i], 0, &split, &err), &err, ERR_CONFIG, texts[i]);
    }
}

/* The names of the files found, joined by spaces; "-" if the split is not there. */
static char *find(const char *dir, const char *dataset, const char *split_text, bool any_split)
{
    auto_arena struct arena *arena = arena_open();
    struct token_options options = texts_options(dataset, 8);
    struct token_split split;
    struct token_files files;
    struct error err;
    options.source.root = dir;
    options.source.any_split = any_split;
    assert_ok(token_split_parse(split_text, 0, &split, &err), &err);
    if (token_files_find(&options.source, &split, arena, &files, &err) < 0) {
        assert_int_equal(err.code, ERR_NOT_FOUND);
        return xstrdup("-");
    }
    auto_str struct str names;
    str_init(&names, 4096);
    for (int i = 0; i < files.count; i++)
        str_printf(&names, "%s%s", i ? " " : "", files.paths[i] + strlen(dir) + 1);
    return xstrdup(str_text(&names));
}

static void test_find(void **state)
{
    const char *dir = *state;
    static const char *const files[] = {
        "plain/b.txt",
        "plain/a.txt",
        "plain/.hidden.txt",
        "plain/notes.md",
        "plain/config.json",
        "named/train.jsonl",
        "named/val.jsonl",
        "named/test.jsonl",
        "named/trainer.txt",
        "named/other.jsonl",
        "below/train/x.txt",
        "below/valid/y.txt",
        "deep/data/train_0.txt",
        "deep/README.md",
        "org/set/train-1.txt",
        "only/dev.txt",
        "pair/a.idx",
        "pair/a.bin",
        "pair/b.bin",
        "json/x-train.json",
        "a[1].txt",
    };
    for (size_t i = 0; i < array_length(files); i++)
        free(texts_write(dir, files[i], "abc\n", 4));
    static const struct {
        const char *dataset, *split, *found;
        bool any_split;
    } rows[] = {
        {"plain", "train", "plain/a.txt plain/b.txt", false},
        {"plain", "validation", "-", false},
        {"named", "train", "named/train.jsonl", false},
        {"named", "validation", "named/val.jsonl", false},
        {"named", "test", "named/test.jsonl", false},
        {"named", "other", "named/other.jsonl", false},
        {"below", "train[:2]", "below/train/x.txt", false},
        {"below", "validation", "below/valid/y.txt", false},
        {"deep", "train", "deep/data/train_0.txt", false},
        {"org/set", "train", "org/set/train-1.txt", false},
        {"elsewhere/set", "train", "-", false},
        {"elsewhere/plain", "train", "plain/a.txt plain/b.txt", false},
        {"only", "train", "-", false},
        {"only", "eval", "only/dev.txt", false},
        {"pair", "train", "pair/a.idx pair/b.bin", false},
        {"pair/a", "train", "pair/a.idx", false},
        {"pair/a.bin", "train", "pair/a.idx", false},
        {"json", "train", "json/x-train.json", false},
        {"named/other.jsonl", "train", "named/other.jsonl", false},
        {"named/other.jsonl", "validation", "-", false},
        {"n*/t*.jsonl", "train", "named/test.jsonl named/train.jsonl", false},
        {"n*/none*", "train", "-", false},
        {"a[1].txt", "train", "a[1].txt", false}, /* no pattern: it is there */
        {"plain", "validation", "plain/a.txt plain/b.txt", true},
        {"named", "validation", "named/val.jsonl", true},
        {"named", "none", "-", true},
        {"named/other.jsonl", "validation[:1]", "named/other.jsonl", true},
        {"n*/t*.jsonl", "validation", "named/test.jsonl named/train.jsonl", true},
        {"only", "train", "-", true},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *found = find(dir, rows[i].dataset, rows[i].split, rows[i].any_split);
        assert_string_equal(found, rows[i].found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test_setup_teardown(test_find, support_enter_dir, support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
