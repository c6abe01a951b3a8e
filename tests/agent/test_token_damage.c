/* Data that is broken, cut off, or not what it should be: an error that says where, or a line that
 * is counted and left out; never a crash. */
#include "agent/dataset/token_source.h"

#include "agent/dataset/text_file.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA "tests/data/tokens"
enum { T = 6 };

/* Reads an epoch; returns the result of the call that ended it. */
static int read_all(struct token_source *source, int64_t *ret_count, struct error *err)
{
    int32_t ids[T], targets[T];
    bool end = false;
    for (*ret_count = 0; !end; ++*ret_count)
        if (token_source_next(source, ids, targets, &end, err) < 0)
            return -1;
    --*ret_count;
    return 0;
}

/* Opening or reading must fail. */
static void assert_unreadable(const struct token_options *options, enum error_code code,
                              const char *part)
{
    struct token_source *source = NULL;
    struct error err = {0};
    int64_t count;
    int result = token_source_open(options, &source, &err);
    if (result == 0)
        result = read_all(source, &count, &err);
    token_source_close(source);
    assert_fails(result, &err, code, part);
}

static void test_bad_lines(void **state)
{
    static const char lines[] = "{\"text\":\"abcdef\"}\n"
                                "{\"text\":\"abc\n" /* line 2 */
                                "{\"title\":\"x\",\"id\":3}\n"
                                "[1]\n"
                                "{\"text\":7}\n"
                                "{\"text\":\"\xff\"}\n"
                                "{\"text\":\"ghi\\u0000kl\"}\n";
    auto_free char *path = texts_write(*state, "a.jsonl", lines, sizeof lines - 1);
    struct token_options options = texts_options(path, T);
    struct token_source *source = texts_open(&options);
    struct token_position position;
    struct error err;
    struct token_bad_lines bad;
    int64_t count;
    token_source_bad_lines(source, &bad);
    assert_int_equal(bad.kept, 0);
    assert_ok(read_all(source, &count, &err), &err);
    assert_int_equal(count, 2); /* "abcdef" + eos, "ghi\0kl" + eos: 14 ids */
    token_source_tell(source, &position);
    assert_int_equal(position.bad_lines, 5);
    assert_int_equal(position.lines, 7);
    assert_int_equal(position.documents, 2);
    assert_ok(token_source_set_epoch(source, 1, &err), &err);
    assert_ok(read_all(source, &count, &err), &err);
    token_source_bad_lines(source, &bad);
    assert_int_equal(bad.bad, 10); /* of both epochs */
    assert_int_equal(bad.lines, 14);
    assert_int_equal(bad.kept, 5); /* each is named once */
    assert_non_null(strstr(bad.why[0], "a.jsonl:2: no JSON object: "));
    assert_non_null(strstr(bad.why[4], "a.jsonl:6: no JSON object: "));
    token_source_close(source);
    options.strict = true;
    assert_unreadable(&options, ERR_INPUT, "a.jsonl:2: no JSON object: ");
    options.strict = false;
    options.source.text_column = "content";
    assert_unreadable(&options, ERR_NOT_FOUND,
                      "split train has no window of 6 ids: 0 texts in 7 rows");
}

/* Ten bad lines are forgiven, then one in a hundred of the epoch's, wherever they lie. */
static void test_bad_rate(void **state)
{
    static const struct {
        int good, bad, behind; /* good ones behind the bad */
        bool reads;
    } rows[] = {{1, 10, 0, true},     {1, 11, 0, false},    {1089, 11, 0, true},
                {1088, 11, 0, false}, {1, 11, 1088, true},  {1, 11, 1087, false},
                {0, 100, 9900, true}, {0, 101, 9999, false}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct str text;
        str_init(&text, 1 << 20);
        for (int n = 0; n < rows[i].good; n++)
            str_add(&text, "{\"text\":\"abcdefg\"}\n");
        for (int n = 0; n < rows[i].bad; n++)
            str_add(&text, "{\"text\":\n");
        for (int n = 0; n < rows[i].behind; n++)
            str_add(&text, "{\"text\":\"abcdefg\"}\n");
        auto_free char *path = texts_write(*state, "a.jsonl", text.text, text.length);
        str_free(&text);
        struct token_options options = texts_options(path, T);
        options.threads = 2;
        if (rows[i].reads) {
            struct token_source *source = texts_open(&options);
            struct error err;
            int64_t count;
            for (int epoch = 0; epoch < 3; epoch++) { /* each counts its own */
                assert_ok(token_source_set_epoch(source, epoch, &err), &err);
                assert_ok(read_all(source, &count, &err), &err);
            }
            token_source_close(source);
        } else {
            assert_unreadable(&options, ERR_INPUT, "lines are bad, more than 1 in a hundred");
        }
    }
}

/* A line beyond the cap is bad, and the lines around it are read. */
static void test_long_line(void **state)
{
    size_t size = TEXT_FILE_MAX_LINE_BYTES + 64;
    auto_free char *text = xmalloc(size);
    memset(text, 'x', size);
    static const char before[] = "{\"text\":\"abcdefg\"}\n", after[] = "\n{\"text\":\"hijklmn\"}\n";
    memcpy(text, before, sizeof before - 1);
    memcpy(text + size - (sizeof after - 1), after, sizeof after - 1);
    for (int packed = 0; packed < 2; packed++) {
        auto_free char *path = packed ? texts_write_gzip(*state, "a.jsonl.gz", text, size, 2)
                                      : texts_write(*state, "a.jsonl", text, size);
        struct token_options options = texts_options(path, T);
        options.source.packing = TOKENS_NONE;
        struct token_source *source = texts_open(&options);
        struct token_position position;
        struct error err;
        struct token_bad_lines bad;
        int64_t count;
        assert_ok(read_all(source, &count, &err), &err);
        assert_int_equal(count, 2);
        token_source_tell(source, &position);
        assert_int_equal(position.bad_lines, 1);
        assert_int_equal(position.line, 0);
        token_source_bad_lines(source, &bad);
        assert_non_null(strstr(bad.why[0], ":2: longer than 16777216 bytes"));
        token_source_close(source);
    }
}

static void test_broken_gzip(void **state)
{
    auto_free char *lines = texts_lines(0, 60);
    auto_free char *path = texts_write_gzip(*state, "whole.gz", lines, strlen(lines), 2);
    struct error err;
    auto_free char *bytes = NULL;
    size_t size;
    assert_ok(file_read(path, 1 << 20, &bytes, &size, &err), &err);
    for (size_t cut = 1; cut < size; cut += 7) {
        auto_free char *part = texts_write(*state, "a.jsonl.gz", bytes, cut);
        struct token_options options = texts_options(part, T);
        options.source.format = TOKENS_JSONL;
        struct token_source *source = NULL;
        int64_t count;
        int result = token_source_open(&options, &source, &err);
        if (result == 0)
            result = read_all(source, &count, &err);
        token_source_close(source);
        if (result == 0) /* cut exactly between the two streams */
            continue;
        /* less than gzip's own first bytes are a line that is no JSON */
        assert_int_equal(err.code, cut < 3 ? ERR_NOT_FOUND : ERR_INPUT);
        assert_non_null(strstr(err.msg, "a.jsonl.gz"));
        assert_non_null(strstr(err.msg, cut < 3 ? "" : ": offset "));
    }
    bytes[size - 6] ^= 1; /* in the checksum */
    auto_free char *wrong = texts_write(*state, "b.jsonl.gz", bytes, size);
    struct token_options options = texts_options(wrong, T);
    assert_unreadable(&options, ERR_INPUT, "b.jsonl.gz: ");
    assert_unreadable(&options, ERR_INPUT, "incorrect data check");
}

/* Behind a gzip stream comes another one or nothing; tar's zeros are nothing. */
static void test_behind_a_gzip_stream(void **state)
{
    enum { MORE = 600 };
    auto_free char *lines = texts_lines(0, 60);
    auto_free char *path = texts_write_gzip(*state, "whole.gz", lines, strlen(lines), 2);
    struct error err;
    auto_free char *bytes = NULL;
    size_t size;
    int64_t count[2];
    assert_ok(file_read(path, 1 << 20, &bytes, &size, &err), &err);
    bytes = xrealloc(bytes, size + MORE);
    memset(bytes + size, 0, MORE);
    for (int filled = 0; filled < 2; filled++) {
        auto_free char *part = texts_write(*state, "a.jsonl.gz", bytes, size + (filled ? MORE : 0));
        struct token_options options = texts_options(part, T);
        struct token_source *source = texts_open(&options);
        assert_ok(read_all(source, &count[filled], &err), &err);
        token_source_close(source);
    }
    assert_int_equal(count[0], count[1]);
    static const char damage[] = "garbage";
    memcpy(bytes + size, damage, sizeof damage);
    auto_free char *garbage = texts_write(*state, "b.jsonl.gz", bytes, size + sizeof damage);
    struct token_options options = texts_options(garbage, T);
    assert_unreadable(&options, ERR_INPUT, "the gzip stream is followed by what is none");
    char *second = memmem(bytes + 2, size - 2, "\x1f\x8b", 2);
    assert_non_null(second);
    *second = 0;
    auto_free char *broken = texts_write(*state, "c.jsonl.gz", bytes, size);
    options = texts_options(broken, T);
    assert_unreadable(&options, ERR_INPUT, "the gzip stream is followed by what is none");
}

/* What a file of text is read as: a first line that is broken must not make JSON lines text. */
static void test_text_formats(void **state)
{
    static const struct {
        const char *name, *content;
        enum token_format format;
    } rows[] = {
        {"a.jsonl", "garbage\n{\"text\":\"abcdefghi\"}\n", TOKENS_JSONL},
        {"a.json", "garbage\n{\"text\":\"abcdefghi\"}\n", TOKENS_JSONL},
        {"b.jsonl", "\xef\xbb\xbf{\"text\":\"abcdefghi\"}\n", TOKENS_JSONL},
        {"rows", "\xef\xbb\xbf {\"text\":\"abcdefghi\"}\n", TOKENS_JSONL},
        {"words", "{\"text\":\"abcdefghi\"}\n", TOKENS_JSONL},
        {"prose", "garbage\n{\"text\":\"abcdefghi\"}\n", TOKENS_TEXT},
        {"a.txt", "{\"text\":\"abcdefghi\"}\n", TOKENS_TEXT},
    };
    for (size_t i = 0; i < 2 * array_length(rows); i++) {
        size_t size = strlen(rows[i / 2].content);
        auto_free char *packed = xasprintf("%s.gz", rows[i / 2].name);
        auto_free char *path =
            i % 2 ? texts_write_gzip(*state, packed, rows[i / 2].content, size, 1)
                  : texts_write(*state, rows[i / 2].name, rows[i / 2].content, size);
        struct token_options options = texts_options(path, T);
        struct token_source *source = texts_open(&options);
        assert_int_equal(token_source_format(source), rows[i / 2].format);
        token_source_close(source);
    }
    auto_free char *path = xasprintf("%s/a.json", (const char *)*state);
    struct token_options options = texts_options(path, T);
    options.strict = true;
    assert_unreadable(&options, ERR_INPUT, "a.json:1: no JSON object");
}

static void test_formats(void **state)
{
    static const struct {
        const char *name, *content;
        size_t size;
        enum error_code code;
        const char *part;
    } rows[] = {
        {"a.parquet.bin", "PAR1....", 8, ERR_UNSUPPORTED, "Parquet is not read"},
        {"a.arrow", "ARROW1\0\0", 8, ERR_UNSUPPORTED, "Arrow's file format is not read"},
        {"a.json", " [\n{\"text\":\"x\"}]", 16, ERR_UNSUPPORTED, "write one object per line"},
        {"a.bin", "ab\0\0\0\1", 6, ERR_INPUT, "neither text nor a known format of ids"},
        {"b.bin", "", 0, ERR_INPUT, "the file is empty"},
        {"a.txt", " \n\n", 3, ERR_NOT_FOUND, "has no window of 6 ids: 0 texts in 0 rows"},
        {"b.txt", "ab\n", 3, ERR_NOT_FOUND, "has no window of 6 ids: 1 texts in 1 rows"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *path = texts_write(*state, rows[i].name, rows[i].content, rows[i].size);
        struct token_options options = texts_options(path, T);
        assert_unreadable(&options, rows[i].code, rows[i].part);
    }
    struct error err;
    auto_free char *bytes = NULL;
    size_t size;
    assert_ok(file_read(DATA "/llmc/words_val_000000.bin", 1 << 20, &bytes, &size, &err), &err);
    auto_free char *packed = texts_write_gzip(*state, "ids.gz", bytes, size, 1);
    struct token_options options = texts_options(packed, T);
    assert_unreadable(&options, ERR_UNSUPPORTED, "unpack it first");
}

static void test_encoder(void **state)
{
    auto_free char *path = texts_write(*state, "a.txt", "abcdefgh", 8);
    struct token_options options = texts_options(path, T);
    options.vocab_size = 105; /* 'e' is 104 */
    assert_unreadable(&options, ERR_INPUT, "a.txt:1: the tokenizer gives id 105, the model's");
    options = texts_options(path, T);
    options.source.add_bos = TOKENS_AFFIX_TRUE;
    options.encoder.bos = -1;
    assert_unreadable(&options, ERR_CONFIG, "data.add_bos is set, but the tokenizer has no such");
    options.encoder.encode = NULL;
    assert_unreadable(&options, ERR_CONFIG, "a.txt is text: set data.tokenizer");
}

/* ---- files of ids ---- */

/* Every cut of a file must be refused, naming it; every flipped bit may be, and what is read stays
 * within the vocabulary. */
static void damage(const char *dir, const char *from, const char *name, const char *dataset,
                   size_t step)
{
    struct error err;
    auto_free char *bytes = NULL;
    size_t size;
    assert_ok(file_read(from, 1 << 20, &bytes, &size, &err), &err);
    auto_free char *where = xasprintf("%s/%s", dir, dataset);
    struct token_options options = texts_options(where, T);
    options.vocab_size = 997;
    options.source.packing = TOKENS_PER_DOCUMENT;
    options.encoder.encode = NULL;
    if (strstr(name, "words"))
        options.source.packing = TOKENS_CONCAT;
    free(texts_write(dir, name, bytes, size));
    struct token_source *whole = texts_open(&options);
    token_source_close(whole);
    for (size_t cut = 0; cut < size; cut += step) {
        free(texts_write(dir, name, bytes, cut));
        struct token_source *source = NULL;
        assert_int_equal(token_source_open(&options, &source, &err), -1);
        assert_true(err.code == ERR_INPUT || cut < 9); /* less than a magic number */
        assert_non_null(strstr(err.msg, dir));
    }
    for (size_t bit = 0; bit < 8 * size; bit += 11 * step) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        free(texts_write(dir, name, bytes, size));
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        struct token_source *source = NULL;
        int64_t count;
        if (token_source_open(&options, &source, &err) == 0)
            (void)read_all(source, &count, &err);
        token_source_close(source);
    }
    free(texts_write(dir, name, bytes, size));
}

static void copy_file(const char *from, const char *dir, const char *name)
{
    struct error err;
    auto_free char *bytes = NULL;
    size_t size;
    assert_ok(file_read(from, 1 << 20, &bytes, &size, &err), &err);
    free(texts_write(dir, name, bytes, size));
}

static void test_damaged_files(void **state)
{
    copy_file(DATA "/arrow_wide/state.json", *state, "arrow/state.json");
    damage(*state, DATA "/arrow_wide/data-00000-of-00001.arrow", "arrow/data-00000-of-00001.arrow",
           "arrow", 3);
    copy_file(DATA "/megatron_i32.bin", *state, "pair.bin");
    damage(*state, DATA "/megatron_i32.idx", "pair.idx", "pair", 1);
    damage(*state, DATA "/llmc/words_train_000001.bin", "words.bin", "words.bin", 5);
}

static void test_refused_files(void **state)
{
    static const char indices[] = "{\"_data_files\":[{\"filename\":\"a.arrow\"}],"
                                  "\"_indices_files\":[{\"filename\":\"i.arrow\"}]}";
    static const char elsewhere[] = "{\"_data_files\":[{\"filename\":\"../a.arrow\"}]}";
    struct token_options options = texts_options(*state, T);
    free(texts_write(*state, "state.json", indices, sizeof indices - 1));
    assert_unreadable(&options, ERR_UNSUPPORTED, "call flatten_indices() before save_to_disk");
    free(texts_write(*state, "state.json", elsewhere, sizeof elsewhere - 1));
    assert_unreadable(&options, ERR_INPUT, "has no name, or one that leads elsewhere");
    free(texts_write(*state, "state.json", "{", 1));
    assert_unreadable(&options, ERR_INPUT, "state.json: damaged: line 1, column 1: ");
    uint8_t header[1024] = {0};
    static const int32_t eval[] = {20240522, 1, 0}, other[] = {20240520, 2, 0};
    memcpy(header, eval, sizeof eval);
    auto_free char *path = texts_write(*state, "a.bin", header, sizeof header);
    options = texts_options(path, T);
    assert_unreadable(&options, ERR_UNSUPPORTED, "file of evaluation questions");
    memcpy(header, other, sizeof other);
    free(texts_write(*state, "a.bin", header, sizeof header));
    assert_unreadable(&options, ERR_INPUT, "magic number 20240520, version 2");
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_bad_lines),
        IN_DIR(test_bad_rate),
        IN_DIR(test_long_line),
        IN_DIR(test_broken_gzip),
        IN_DIR(test_behind_a_gzip_stream),
        IN_DIR(test_text_formats),
        IN_DIR(test_formats),
        IN_DIR(test_encoder),
        IN_DIR(test_damaged_files),
        IN_DIR(test_refused_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
