/* Text, tokenized and packed: which samples come of it. */
#include "base/mem.h"
#include "tests/agent/token_samples.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

enum { X = TOKENS_IGNORED };

/* The ids of the texts first .. first + count - 1 behind one another, each with eos. */
static int64_t flatten(int64_t first, int64_t count, bool bos, int32_t *out)
{
    int64_t n = 0;
    for (int64_t i = first; i < first + count; i++) {
        auto_free char *text = texts_document(i);
        if (bos)
            out[n++] = TEXTS_BOS;
        for (const char *p = text; *p; p++)
            out[n++] = *p + TEXTS_FIRST;
        out[n++] = TEXTS_EOS;
    }
    return n;
}

static void assert_flat(const struct samples *samples, const int32_t *flat, int64_t flat_count,
                        int64_t T)
{
    assert_int_equal(samples->count, flat_count / T);
    for (int64_t w = 0; w < samples->count; w++) {
        assert_memory_equal(samples->ids[w], flat + w * T, (size_t)T * sizeof *flat);
        for (int64_t t = 0; t < T; t++)
            assert_int_equal(samples->targets[w][t], t + 1 < T ? flat[w * T + t + 1] : X);
    }
}

static void test_concat(void **state)
{
    auto_free char *lines = texts_lines(0, 40);
    auto_free char *path = texts_write(*state, "a.jsonl", lines, strlen(lines));
    int32_t flat[1024];
    for (int64_t T = 2; T <= 21; T++) { /* windows end everywhere in the documents */
        struct token_options options = texts_options(path, T);
        options.threads = (int)(T % 3);
        auto_free struct samples *samples = samples_of_epoch(&options, 0);
        assert_flat(samples, flat, flatten(0, 40, false, flat), T);
    }
    struct token_options options = texts_options(path, 9);
    options.encoder.adds_bos = true;
    auto_free struct samples *with = samples_of_epoch(&options, 0);
    assert_flat(with, flat, flatten(0, 40, true, flat), 9);
    options.source.add_bos = TOKENS_AFFIX_FALSE;
    auto_free struct samples *without = samples_of_epoch(&options, 0);
    assert_flat(without, flat, flatten(0, 40, false, flat), 9);
}

static void expect(const struct samples *samples, int64_t i, int64_t T, const char *text,
                   int64_t targets)
{
    int64_t count = (int64_t)strlen(text);
    assert_true(i < samples->count);
    for (int64_t t = 0; t < T; t++) {
        assert_int_equal(samples->ids[i][t], t < count ? text[t] + TEXTS_FIRST : TEXTS_EOS);
        int32_t target = t + 1 < count ? text[t + 1] + TEXTS_FIRST : X;
        if (t < targets && t + 1 == T) /* what follows the window */
            target = samples->targets[i][t];
        assert_int_equal(samples->targets[i][t], target);
        assert_int_equal(samples->targets[i][t] != X, t < targets);
    }
}

static void test_apart(void **state)
{
    static const char lines[] = "{\"text\":\"abcdefghi\"}\n{\"text\":\"x\"}\n{\"text\":\"\"}\n"
                                "{\"text\":\"pq\"}\n{\"text\":\"ABCDE\"}";
    auto_free char *path = texts_write(*state, "a.jsonl", lines, sizeof lines - 1);
    struct token_options options = texts_options(path, 4);
    options.source.packing = TOKENS_PER_DOCUMENT;
    auto_free struct samples *parts = samples_of_epoch(&options, 0);
    assert_int_equal(parts->count, 4);
    expect(parts, 0, 4, "abcd", 4);
    assert_int_equal(parts->targets[0][3], 'e' + TEXTS_FIRST);
    expect(parts, 1, 4, "efgh", 4);
    assert_int_equal(parts->targets[1][3], 'i' + TEXTS_FIRST);
    expect(parts, 2, 4, "pq", 1);
    expect(parts, 3, 4, "ABCD", 4);
    assert_int_equal(parts->targets[3][3], 'E' + TEXTS_FIRST);
    /* of "ABCDE" one id is left, which is nobody's input; with eos it is, and so is "x" */
    options.source.add_eos = TOKENS_AFFIX_TRUE;
    auto_free struct samples *ended = samples_of_epoch(&options, 0);
    assert_int_equal(ended->count, 7);
    assert_int_equal(ended->ids[2][0], 'i' + TEXTS_FIRST);
    assert_int_equal(ended->targets[2][0], TEXTS_EOS);
    assert_int_equal(ended->targets[2][1], X);
    options.source.add_eos = TOKENS_AFFIX_AUTO;
    options.source.packing = TOKENS_NONE;
    auto_free struct samples *first = samples_of_epoch(&options, 0);
    assert_int_equal(first->count, 3);
    expect(first, 0, 4, "abcd", 4);
    expect(first, 1, 4, "pq", 1);
    expect(first, 2, 4, "ABCD", 4);
}

static void test_c4(void **state)
{
    samples_write_c4(*state);
    struct token_options options = samples_c4_options(*state, 10);
    options.shuffle = false;
    int32_t flat[1024];
    auto_free struct samples *train = samples_of_epoch(&options, 0);
    assert_flat(train, flat, flatten(0, 50, false, flat), 10);
    options.split = "validation";
    auto_free struct samples *valid = samples_of_epoch(&options, 0);
    assert_flat(valid, flat, flatten(100, 5, false, flat), 10);
    options.split = "train[:40]";
    auto_free struct samples *some = samples_of_epoch(&options, 0);
    assert_flat(some, flat, flatten(0, 40, false, flat), 10);
    options.split = "train[50%:90%]";
    auto_free struct samples *part = samples_of_epoch(&options, 0);
    assert_flat(part, flat, flatten(25, 20, false, flat), 10);
    options.max_rows = 6;
    auto_free struct samples *few = samples_of_epoch(&options, 0);
    assert_flat(few, flat, flatten(25, 6, false, flat), 10);
    options.source.dataset_config_name = "de";
    texts_open_fails(&options, ERR_NOT_FOUND, "has no subdirectory de");
}

/* Paragraphs, however their lines end, with a byte order mark in front. */
static void test_text(void **state)
{
    static const char text[] = "\xef\xbb\xbf"
                               "one\r\ntwo\r\n\r\n \nthree\n\n\nfour";
    auto_free char *path = texts_write(*state, "book.txt", text, sizeof text - 1);
    struct token_options options = texts_options(path, 8);
    options.source.packing = TOKENS_NONE;
    auto_free struct samples *samples = samples_of_epoch(&options, 0);
    assert_int_equal(samples->count, 3);
    expect(samples, 0, 8, "one\ntwo", 6);
    expect(samples, 1, 8, "three", 4);
    expect(samples, 2, 8, "four", 3);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_concat),
        IN_DIR(test_apart),
        IN_DIR(test_c4),
        IN_DIR(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
