/* In which order a stream's samples come, for any number of ranks and threads, and going on from
 * any of them. */
#include "base/mem.h"
#include "tests/agent/token_samples.h"
#include "tests/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void assert_same(const struct samples *a, const struct samples *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->ids, b->ids, sizeof a->ids);
    assert_memory_equal(a->targets, b->targets, sizeof a->targets);
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
    samples_write_c4(*state);
    struct token_options options = samples_c4_options(*state, 16);
    options.source.packing = TOKENS_NONE;
    auto_free struct samples *one = samples_of_epoch(&options, 0);
    auto_free struct samples *two = samples_of_epoch(&options, 1);
    options.seed++;
    auto_free struct samples *other = samples_of_epoch(&options, 0);
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
        auto_free struct samples *part = samples_of_epoch(&options, epoch);
        assert_int_equal(part->count, 10);
        for (int n = 0; n < 10; n++)
            assert_in_range(number_of(part->ids[n]), 10, 19);
    }
}

/* The blocks of an epoch are shuffled each in its own way, and the files take turns in the lead. */
static void test_shuffle_within(void **state)
{
    samples_write_c4(*state);
    auto_free char *path =
        xasprintf("%s/allenai/c4/en/c4-train.00001-of-00003.json.gz", (char *)*state);
    struct token_options options = samples_c4_options(*state, 16);
    options.source.packing = TOKENS_NONE;
    bool led[3] = {false};
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        auto_free struct samples *all = samples_of_epoch(&options, epoch);
        int number = number_of(all->ids[0]);
        led[number < 17 ? 0 : number < 47 ? 1 : 2] = true;
    }
    assert_true(led[0] && led[1] && led[2]);
    options.source.dataset = path; /* 30 texts from 17 on: blocks of 8, 8, 8 and 6 */
    int same = 0;
    for (int64_t epoch = 0; epoch < 10; epoch++) {
        auto_free struct samples *all = samples_of_epoch(&options, epoch);
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
    samples_write_c4(*state);
    struct token_options options = samples_c4_options(*state, 7);
    auto_free struct samples *expected = samples_of_epoch(&options, 3);
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
            int32_t ids[SAMPLES_MAX_T], targets[SAMPLES_MAX_T];
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
    samples_write_c4(*state);
    auto_free char *other = xasprintf("%s/moved", (char *)*state);
    mkdir(other, 0777);
    samples_write_c4(other);
    struct token_options options = samples_c4_options(*state, 7);
    struct token_source *source = texts_open(&options);
    struct token_position position;
    struct error err;
    token_source_tell(source, &position);
    token_source_close(source);
    options.source.root = other;
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
    changed[3].source.shuffle_buffer = 9;
    changed[4].source.packing = TOKENS_NONE;
    changed[5].source.text_column = "url";
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
    samples_write_c4(*state);
    struct token_options options = samples_c4_options(*state, 7);
    auto_free struct samples *alone = samples_of_epoch(&options, 2);
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
            for (; at < SAMPLES_MAX; at += world) {
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
    samples_write_c4(*state);
    static const enum token_packing packings[] = {TOKENS_CONCAT, TOKENS_PER_DOCUMENT, TOKENS_NONE};
    for (size_t p = 0; p < array_length(packings); p++) {
        struct token_options options = samples_c4_options(*state, 7);
        options.source.packing = packings[p];
        options.threads = 2;
        auto_free struct samples *whole = samples_of_epoch(&options, 1);
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
            samples_take(source, rest);
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
    samples_write_c4(*state);
    struct token_options options = samples_c4_options(*state, 16);
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

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_shuffle),     IN_DIR(test_shuffle_within), IN_DIR(test_turn),
        IN_DIR(test_fingerprint), IN_DIR(test_worlds),         IN_DIR(test_resume),
        IN_DIR(test_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
