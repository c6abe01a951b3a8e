/* Text, tokenized and packed: which samples come, in which order, and going on from any of them. */
#include "agent/dataset/token_source.h"

#include "base/mem.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { X = TOKENS_IGNORED, MAX_T = 64, MAX_SAMPLES = 512 };

struct samples {
    int64_t count;
    int32_t ids[MAX_SAMPLES][MAX_T], targets[MAX_SAMPLES][MAX_T];
};

/* Takes what is left of the epoch. */
static void take_all(struct token_source *source, struct samples *out)
{
    struct error err;
    memset(out, 0, sizeof *out);
    for (bool end = false;; out->count++) {
        assert_true(out->count < MAX_SAMPLES);
        assert_ok(
            token_source_next(source, out->ids[out->count], out->targets[out->count], &end, &err),
            &err);
        if (end)
            return;
    }
}

static struct samples *read_epoch(const struct token_options *options, int64_t epoch)
{
    struct samples *samples = xcalloc(1, sizeof *samples);
    struct token_source *source = texts_open(options);
    struct error err;
    assert_ok(token_source_set_epoch(source, epoch, &err), &err);
    take_all(source, samples);
    token_source_close(source);
    return samples;
}

static void assert_same(const struct samples *a, const struct samples *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->ids, b->ids, sizeof a->ids);
    assert_memory_equal(a->targets, b->targets, sizeof a->targets);
}

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
        auto_free struct samples *samples = read_epoch(&options, 0);
        assert_flat(samples, flat, flatten(0, 40, false, flat), T);
    }
    struct token_options options = texts_options(path, 9);
    options.encoder.adds_bos = true;
    auto_free struct samples *with = read_epoch(&options, 0);
    assert_flat(with, flat, flatten(0, 40, true, flat), 9);
    options.add_bos = TOKENS_AFFIX_FALSE;
    auto_free struct samples *without = read_epoch(&options, 0);
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
    options.packing = TOKENS_PER_DOCUMENT;
    auto_free struct samples *parts = read_epoch(&options, 0);
    assert_int_equal(parts->count, 4);
    expect(parts, 0, 4, "abcd", 4);
    assert_int_equal(parts->targets[0][3], 'e' + TEXTS_FIRST);
    expect(parts, 1, 4, "efgh", 4);
    assert_int_equal(parts->targets[1][3], 'i' + TEXTS_FIRST);
    expect(parts, 2, 4, "pq", 1);
    expect(parts, 3, 4, "ABCD", 4);
    assert_int_equal(parts->targets[3][3], 'E' + TEXTS_FIRST);
    /* of "ABCDE" one id is left, which is nobody's input; with eos it is, and so is "x" */
    options.add_eos = TOKENS_AFFIX_TRUE;
    auto_free struct samples *ended = read_epoch(&options, 0);
    assert_int_equal(ended->count, 7);
    assert_int_equal(ended->ids[2][0], 'i' + TEXTS_FIRST);
    assert_int_equal(ended->targets[2][0], TEXTS_EOS);
    assert_int_equal(ended->targets[2][1], X);
    options.add_eos = TOKENS_AFFIX_AUTO;
    options.packing = TOKENS_NONE;
    auto_free struct samples *first = read_epoch(&options, 0);
    assert_int_equal(first->count, 3);
    expect(first, 0, 4, "abcd", 4);
    expect(first, 1, 4, "pq", 1);
    expect(first, 2, 4, "ABCD", 4);
}

/* Three files of 17, 30 and 3 texts, as C4 has them. */
static void write_c4(const char *dir)
{
    static const int64_t counts[] = {17, 30, 3};
    int64_t first = 0;
    for (int i = 0; i < 3; i++) {
        auto_free char *lines = texts_lines(first, counts[i]);
        auto_free char *name = xasprintf("allenai/c4/en/c4-train.%05d-of-00003.json.gz", i);
        free(texts_write_gzip(dir, name, lines, strlen(lines), 1 + i));
        first += counts[i];
    }
    auto_free char *lines = texts_lines(100, 5);
    free(texts_write_gzip(dir, "allenai/c4/en/c4-validation.00000-of-00001.json.gz", lines,
                          strlen(lines), 1));
}

static struct token_options c4_options(const char *dir, int64_t window)
{
    struct token_options options = texts_options("allenai/c4", window);
    options.root = dir;
    options.config = "en";
    options.shuffle = true;
    options.shuffle_buffer = 8;
    options.seed = 4;
    return options;
}

static void test_c4(void **state)
{
    write_c4(*state);
    struct token_options options = c4_options(*state, 10);
    options.shuffle = false;
    int32_t flat[1024];
    auto_free struct samples *train = read_epoch(&options, 0);
    assert_flat(train, flat, flatten(0, 50, false, flat), 10);
    options.split = "validation";
    auto_free struct samples *valid = read_epoch(&options, 0);
    assert_flat(valid, flat, flatten(100, 5, false, flat), 10);
    options.split = "train[:40]";
    auto_free struct samples *some = read_epoch(&options, 0);
    assert_flat(some, flat, flatten(0, 40, false, flat), 10);
    options.split = "train[50%:90%]";
    auto_free struct samples *part = read_epoch(&options, 0);
    assert_flat(part, flat, flatten(25, 20, false, flat), 10);
    options.max_rows = 6;
    auto_free struct samples *few = read_epoch(&options, 0);
    assert_flat(few, flat, flatten(25, 6, false, flat), 10);
    options.config = "de";
    texts_open_fails(&options, ERR_NOT_FOUND, "has no subdirectory de");
}

/* Which text a sample of TOKENS_NONE begins with. */
static int number_of(const int32_t *ids)
{
    int number = 0;
    for (; *ids != ':' + TEXTS_FIRST; ids++)
        number = 10 * number + (*ids - TEXTS_FIRST - '0');
    return number;
}

/* Every text once an epoch, in an order that depends on seed and epoch. */
static void test_shuffle(void **state)
{
    write_c4(*state);
    struct token_options options = c4_options(*state, 16);
    options.packing = TOKENS_NONE;
    auto_free struct samples *one = read_epoch(&options, 0);
    auto_free struct samples *two = read_epoch(&options, 1);
    options.seed++;
    auto_free struct samples *other = read_epoch(&options, 0);
    assert_memory_not_equal(one->ids, two->ids, sizeof one->ids);
    assert_memory_not_equal(one->ids, other->ids, sizeof one->ids);
    struct samples *const all[] = {one, two, other};
    for (size_t i = 0; i < array_length(all); i++) {
        bool seen[50] = {false};
        assert_int_equal(all[i]->count, 50);
        for (int n = 0; n < 50; n++) {
            int number = number_of(all[i]->ids[n]);
            assert_in_range(number, 0, 49);
            assert_false(seen[number]);
            seen[number] = true;
        }
    }
    options.split = "train[10:20]"; /* a part is the same rows, shuffled */
    for (int64_t epoch = 0; epoch < 6; epoch++) {
        auto_free struct samples *part = read_epoch(&options, epoch);
        assert_int_equal(part->count, 10);
        for (int n = 0; n < 10; n++)
            assert_in_range(number_of(part->ids[n]), 10, 19);
    }
}

/* The blocks of an epoch are shuffled each in its own way, and the files take turns in the lead. */
static void test_shuffle_within(void **state)
{
    write_c4(*state);
    auto_free char *path =
        xasprintf("%s/allenai/c4/en/c4-train.00001-of-00003.json.gz", (char *)*state);
    struct token_options options = c4_options(*state, 16);
    options.packing = TOKENS_NONE;
    bool led[3] = {false};
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        auto_free struct samples *all = read_epoch(&options, epoch);
        int number = number_of(all->ids[0]);
        led[number < 17 ? 0 : number < 47 ? 1 : 2] = true;
    }
    assert_true(led[0] && led[1] && led[2]);
    options.dataset = path; /* 30 texts from 17 on: blocks of 8, 8, 8 and 6 */
    int same = 0;
    for (int64_t epoch = 0; epoch < 10; epoch++) {
        auto_free struct samples *all = read_epoch(&options, epoch);
        for (int n = 0; n < 24; n++)
            assert_in_range(number_of(all->ids[n]), 17 + n / 8 * 8, 24 + n / 8 * 8);
        for (int n = 0; n < 8; n++)
            same += number_of(all->ids[n]) + 8 == number_of(all->ids[n + 8]);
    }
    assert_in_range(same, 0, 30); /* 10 of 80 are expected, 80 if all blocks were alike */
}

/* A source that is in the middle of something else goes where it is told. */
static void test_turn(void **state)
{
    write_c4(*state);
    struct token_options options = c4_options(*state, 7);
    auto_free struct samples *expected = read_epoch(&options, 3);
    for (options.threads = 0; options.threads < 4; options.threads++) {
        struct token_source *source = texts_open(&options);
        struct token_position position;
        struct error err;
        for (int64_t at = 0; at < 12; at++) {
            int64_t skipped;
            assert_ok(token_source_skip(source, at, &skipped, &err), &err);
            assert_ok(token_source_set_epoch(source, 3, &err), &err);
            assert_ok(token_source_skip(source, at, &skipped, &err), &err);
            token_source_tell(source, &position);
            assert_ok(token_source_skip(source, 5, &skipped, &err), &err);
            assert_ok(token_source_seek(source, &position, &err), &err);
            int32_t ids[MAX_T], targets[MAX_T];
            bool end;
            assert_ok(token_source_next(source, ids, targets, &end, &err), &err);
            assert_memory_equal(ids, expected->ids[at], 7 * sizeof *ids);
        }
        token_source_close(source);
    }
}

/* A position is of these files, wherever they lie, and of these options. */
static void test_fingerprint(void **state)
{
    write_c4(*state);
    auto_free char *other = xasprintf("%s/moved", (char *)*state);
    mkdir(other, 0777);
    write_c4(other);
    struct token_options options = c4_options(*state, 7);
    struct token_source *source = texts_open(&options);
    struct token_position position;
    struct error err;
    token_source_tell(source, &position);
    token_source_close(source);
    options.root = other;
    options.threads = 3;
    source = texts_open(&options);
    assert_ok(token_source_seek(source, &position, &err), &err);
    token_source_close(source);
    struct token_options changed[6];
    for (size_t i = 0; i < array_length(changed); i++)
        changed[i] = options;
    changed[0].window = 8;
    changed[1].split = "validation";
    changed[2].split = "train[:100]";
    changed[3].shuffle_buffer = 9;
    changed[4].packing = TOKENS_NONE;
    changed[5].text_column = "url";
    for (size_t i = 0; i < array_length(changed); i++) {
        source = texts_open(&changed[i]);
        assert_fails(token_source_seek(source, &position, &err), &err, ERR_INPUT,
                     "is of other files or options");
        token_source_close(source);
    }
    auto_free char *lines = texts_lines(0, 90);
    free(texts_write_gzip(other, "allenai/c4/en/c4-train.00001-of-00003.json.gz", lines,
                          strlen(lines), 1));
    source = texts_open(&options);
    assert_fails(token_source_seek(source, &position, &err), &err, ERR_INPUT,
                 "is of other files or options");
    token_source_close(source);
}

/* The ranks of a world of any size read the same sequence together, with any number of threads. */
static void test_worlds(void **state)
{
    write_c4(*state);
    struct token_options options = c4_options(*state, 7);
    auto_free struct samples *alone = read_epoch(&options, 2);
    for (int world = 2; world <= 4; world++) {
        auto_free struct samples *all = xcalloc(1, sizeof *all);
        for (int rank = 0; rank < world; rank++) {
            options.threads = rank;
            struct token_source *source = texts_open(&options);
            struct error err;
            int64_t at = rank, skipped;
            bool end = false;
            assert_ok(token_source_set_epoch(source, 2, &err), &err);
            assert_ok(token_source_skip(source, rank, &skipped, &err), &err);
            for (; at < MAX_SAMPLES; at += world) {
                assert_ok(token_source_next(source, all->ids[at], all->targets[at], &end, &err),
                          &err);
                if (end)
                    break;
                all->count++;
                assert_ok(token_source_skip(source, world - 1, &skipped, &err), &err);
            }
            assert_true(end);
            token_source_close(source);
        }
        assert_same(all, alone);
    }
}

/* From the position before each sample, as text, another source with another number of threads
 * goes on with the same samples and counters. */
static void test_resume(void **state)
{
    write_c4(*state);
    static const enum token_packing packings[] = {TOKENS_CONCAT, TOKENS_PER_DOCUMENT, TOKENS_NONE};
    for (size_t p = 0; p < array_length(packings); p++) {
        struct token_options options = c4_options(*state, 7);
        options.packing = packings[p];
        options.threads = 2;
        auto_free struct samples *whole = read_epoch(&options, 1);
        struct token_position last = {0};
        for (int64_t at = whole->count; at >= 0; at--) {
            struct token_position position;
            struct error err;
            int64_t skipped;
            struct token_source *source = texts_open(&options);
            assert_ok(token_source_set_epoch(source, 1, &err), &err);
            assert_ok(token_source_skip(source, at, &skipped, &err), &err);
            assert_int_equal(skipped, at);
            token_source_tell(source, &position);
            auto_free char *text = token_position_print(&position);
            token_source_close(source);
            assert_ok(token_position_parse("state", text, strlen(text), &position, &err), &err);
            options.threads = (int)(at % 3);
            source = texts_open(&options);
            assert_ok(token_source_seek(source, &position, &err), &err);
            auto_free struct samples *rest = xcalloc(1, sizeof *rest);
            take_all(source, rest);
            token_source_tell(source, &position);
            token_source_close(source);
            assert_int_equal(rest->count, whole->count - at);
            assert_memory_equal(rest->ids, whole->ids[at], (size_t)rest->count * sizeof *rest->ids);
            assert_memory_equal(rest->targets, whole->targets[at],
                                (size_t)rest->count * sizeof *rest->targets);
            if (at < whole->count)
                assert_memory_equal(&position, &last, sizeof last);
            last = position;
        }
    }
}

/* Counters go on from epoch to epoch. */
static void test_counters(void **state)
{
    write_c4(*state);
    struct token_options options = c4_options(*state, 16);
    struct token_source *source = texts_open(&options);
    struct token_position position;
    struct error err;
    int64_t skipped, tokens = 0;
    assert_int_equal(token_source_samples(source), -1);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        assert_ok(token_source_set_epoch(source, epoch, &err), &err);
        assert_ok(token_source_skip(source, INT64_MAX, &skipped, &err), &err);
        tokens += skipped * 16;
        token_source_tell(source, &position);
        assert_int_equal(position.documents, 50 * (epoch + 1));
        assert_int_equal(position.tokens, tokens);
        assert_int_equal(position.sample, skipped);
    }
    token_source_close(source);
}

/* Paragraphs, however their lines end, with a byte order mark in front. */
static void test_text(void **state)
{
    static const char text[] = "\xef\xbb\xbf"
                               "one\r\ntwo\r\n\r\n \nthree\n\n\nfour";
    auto_free char *path = texts_write(*state, "book.txt", text, sizeof text - 1);
    struct token_options options = texts_options(path, 8);
    options.packing = TOKENS_NONE;
    auto_free struct samples *samples = read_epoch(&options, 0);
    assert_int_equal(samples->count, 3);
    expect(samples, 0, 8, "one\ntwo", 6);
    expect(samples, 1, 8, "three", 4);
    expect(samples, 2, 8, "four", 3);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_concat),         IN_DIR(test_apart),  IN_DIR(test_c4),
        IN_DIR(test_shuffle_within), IN_DIR(test_turn),   IN_DIR(test_fingerprint),
        IN_DIR(test_shuffle),        IN_DIR(test_worlds), IN_DIR(test_resume),
        IN_DIR(test_counters),       IN_DIR(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
