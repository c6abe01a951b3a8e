/* Files of token ids, as other programs wrote them (tests/parity/make_tokens_fixture.py): which
 * samples they are. Id p of document d is (d * 131 + p * 17 + 5) % 997. */
#include "agent/dataset/token_source.h"

#include "base/mem.h"
#include "tests/support.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA "tests/data/tokens"
enum { MAX_T = 32, X = TOKENS_IGNORED };

static int32_t id_of(int64_t document, int64_t place)
{
    return (int32_t)((document * 131 + place * 17 + 5) % 997);
}

static struct token_options options_of(const char *dataset, int64_t window)
{
    return (struct token_options){
        .source = {.dataset = dataset, .root = ".", .text_column = "text"},
        .split = "train",
        .window = window,
        .vocab_size = 997};
}

static struct token_source *open_ok(const struct token_options *options)
{
    struct token_source *source;
    struct error err;
    assert_ok(token_source_open(options, &source, &err), &err);
    return source;
}

static void assert_opens_not(const struct token_options *options, enum error_code code,
                             const char *part)
{
    struct token_source *source = NULL;
    struct error err;
    assert_fails(token_source_open(options, &source, &err), &err, code, part);
    assert_null(source);
}

/* The next sample must be `count` ids of a document from `first` on; -1: the epoch is over. */
static void expect(struct token_source *source, int64_t T, int64_t document, int64_t first,
                   int64_t count, int64_t targets_count)
{
    int32_t ids[MAX_T], targets[MAX_T];
    bool end;
    struct error err;
    assert_ok(token_source_next(source, ids, targets, &end, &err), &err);
    assert_int_equal(end, document < 0);
    for (int64_t t = 0; t < T && !end; t++) {
        assert_int_equal(ids[t], t < count ? id_of(document, first + t) : 0);
        assert_int_equal(targets[t], t < targets_count ? id_of(document, first + t + 1) : X);
    }
}

/* Shards follow one another; a window's last target is the next window's first id. */
static void test_llmc(void **state)
{
    (void)state;
    struct token_options options = options_of(DATA "/llmc", 6);
    struct token_source *source = open_ok(&options);
    assert_int_equal(token_source_format(source), TOKENS_LLMC);
    assert_int_equal(token_source_samples(source), 5); /* 35 ids: 5 windows of 6, 4 ids left */
    assert_non_null(strstr(token_source_name(source), "words_train_000000.bin and 1 more"));
    for (int w = 0; w < 3; w++)
        expect(source, 6, 0, 6 * w, 6, 6);
    int32_t ids[6], targets[6];
    bool end;
    struct error err;
    assert_ok(token_source_next(source, ids, targets, &end, &err), &err);
    for (int t = 0; t < 6; t++) { /* the fourth spans both */
        int at = 18 + t;
        assert_int_equal(ids[t], at < 20 ? id_of(0, at) : id_of(1, at - 20));
        assert_int_equal(targets[t], at + 1 < 20 ? id_of(0, at + 1) : id_of(1, at - 19));
    }
    expect(source, 6, 1, 4, 6, 6);
    expect(source, 6, -1, 0, 0, 0);
    token_source_close(source);
    options.split = "validation"; /* files of "val", of 32 bits */
    options.window = 8;
    source = open_ok(&options);
    expect(source, 8, 2, 0, 8, 8);
    expect(source, 8, -1, 0, 0, 0);
    token_source_close(source);
}

static void test_megatron(void **state)
{
    (void)state;
    /* sequences of 5, 1, 0, 12 and 7 ids */
    struct token_options options = options_of(DATA "/megatron_i32", 8);
    struct token_source *source = open_ok(&options);
    assert_int_equal(token_source_format(source), TOKENS_MEGATRON);
    assert_int_equal(token_source_samples(source),
                     3); /* 25 ids: three windows and the last target */
    static const int lengths[] = {5, 1, 0, 12, 7};
    int32_t flat[25], ids[8], targets[8];
    int count = 0;
    for (int d = 0; d < 5; d++)
        for (int p = 0; p < lengths[d]; p++)
            flat[count++] = id_of(d, p);
    bool end;
    struct error err;
    for (int w = 0; w < 3; w++) {
        assert_ok(token_source_next(source, ids, targets, &end, &err), &err);
        assert_memory_equal(ids, flat + 8 * w, sizeof ids);
        assert_memory_equal(targets, flat + 8 * w + 1, sizeof targets);
    }
    expect(source, 8, -1, 0, 0, 0);
    token_source_close(source);
    options.source.packing = TOKENS_PER_DOCUMENT;
    source = open_ok(&options);
    expect(source, 8, 0, 0, 5, 4);
    expect(source, 8, 3, 0, 8, 8); /* the sequence of one id has no target: no sample */
    expect(source, 8, 3, 8, 4, 3);
    expect(source, 8, 4, 0, 7, 6);
    expect(source, 8, -1, 0, 0, 0);
    token_source_close(source);
    options.source.packing = TOKENS_NONE;
    options.split = "train[3:]";
    options.source.dataset = DATA "/megatron_i32.bin";
    source = open_ok(&options);
    expect(source, 8, 3, 0, 8, 8);
    expect(source, 8, 4, 0, 7, 6);
    expect(source, 8, -1, 0, 0, 0);
    token_source_close(source);
    options = options_of(DATA "/megatron_u16.idx", 28);
    source = open_ok(&options);
    assert_int_equal(token_source_samples(source), 1);
    token_source_close(source);
}

/* Labels are shifted; what a prompt or the mask hides is no target. */
static void test_arrow(void **state)
{
    (void)state;
    struct token_options options = options_of(DATA "/arrow", 8);
    struct token_source *source = open_ok(&options);
    assert_int_equal(token_source_format(source), TOKENS_ARROW);
    assert_int_equal(token_source_samples(source), 7);
    expect(source, 8, 0, 0, 8, 7);
    int32_t ids[8], targets[8];
    bool end;
    struct error err;
    assert_ok(token_source_next(source, ids, targets, &end, &err), &err);
    for (int t = 0; t < 8; t++) {
        assert_int_equal(ids[t], id_of(1, t));
        assert_int_equal(targets[t], t < 2 || t == 7 ? X : id_of(1, t + 1));
    }
    expect(source, 8, 2, 0, 8, 5);
    expect(source, 8, 3, 0, 5, 4);
    expect(source, 8, 4, 0, 8, 7); /* in the second file */
    expect(source, 8, 5, 0, 8, 7);
    expect(source, 8, 6, 0, 2, 1);
    expect(source, 8, -1, 0, 0, 0);
    token_source_close(source);
    options.split = "validation";
    source = open_ok(&options);
    assert_int_equal(token_source_samples(source), 2);
    expect(source, 8, 7, 0, 8, 7);
    token_source_close(source);
    options.source.dataset = DATA "/arrow/valid"; /* a saved split by itself */
    options.split = "train";
    source = open_ok(&options);
    expect(source, 8, 7, 0, 8, 7);
    token_source_close(source);
}

/* 16-bit ids, 64-bit offsets, other columns in between, no mask; rows of 4, 9 and 6 ids. */
static void test_arrow_wide(void **state)
{
    (void)state;
    struct token_options options = options_of(DATA "/arrow_wide", 4);
    assert_opens_not(&options, ERR_INPUT, "row 1 has 9 ids, a window 4: set data.max_seq_length");
    options.source.packing = TOKENS_PER_DOCUMENT;
    struct token_source *source = open_ok(&options);
    expect(source, 4, 0, 0, 4, 3);
    expect(source, 4, 1, 0, 4, 4);
    expect(source, 4, 1, 4, 4, 4); /* its ninth id is only a target */
    expect(source, 4, 2, 0, 4, 4);
    expect(source, 4, 2, 4, 2, 1);
    expect(source, 4, -1, 0, 0, 0);
    token_source_close(source);
    options.source.packing = TOKENS_NONE;
    source = open_ok(&options);
    expect(source, 4, 0, 0, 4, 3);
    expect(source, 4, 1, 0, 4, 4);
    expect(source, 4, 2, 0, 4, 4);
    expect(source, 4, -1, 0, 0, 0);
    token_source_close(source);
    options.source.dataset = DATA "/arrow_no_labels";
    assert_opens_not(&options, ERR_INPUT, "has no column labels; it has text, meta, input_ids");
}

static void test_refusals(void **state)
{
    (void)state;
    struct token_options options = options_of(DATA "/llmc", 64);
    assert_opens_not(&options, ERR_NOT_FOUND, "35 ids in split train; a window of 64 needs 65");
    options.window = 6;
    options.source.packing = TOKENS_NONE;
    assert_opens_not(&options, ERR_CONFIG, "data.packing must be concat");
    options = options_of(DATA "/megatron_i32", 6);
    options.split = "validation";
    assert_opens_not(&options, ERR_NOT_FOUND, "has no split validation");
    options.split = "train[:0]";
    assert_opens_not(&options, ERR_NOT_FOUND, "split train is empty: 0 of its 5 sequences");
    options.split = "train[x]";
    assert_opens_not(&options, ERR_CONFIG, "split \"train[x]\": write a name, or a part");
    options = options_of("nothing/there", 1);
    assert_opens_not(&options, ERR_CONFIG, "data.max_seq_length: 1; allowed are 2 to 16777216");
    options.window = 6;
    assert_opens_not(&options, ERR_NOT_FOUND, "no data set nothing/there: neither");
    assert_opens_not(&options, ERR_NOT_FOUND,
                     "; if the Hub has it: hf download --repo-type dataset nothing/there");
    /* what has been mistyped is not another one of its last name; an id of the Hub may be */
    static const char *const mistyped[] = {"no/where/llmc", "./no/llmc", "../no/llmc", "no/ll*"};
    for (size_t i = 0; i < array_length(mistyped); i++) {
        options = options_of(mistyped[i], 6);
        options.source.root = DATA;
        assert_opens_not(&options, ERR_NOT_FOUND, "no data set ");
    }
    options = options_of("owner/llmc", 6);
    options.source.root = DATA;
    token_source_close(open_ok(&options));
    options = options_of(DATA "/arrow_wide", 9);
    options.vocab_size = 136; /* document 0 goes up to 56, document 1 begins with 136 */
    struct token_source *source = open_ok(&options);
    expect(source, 9, 0, 0, 4, 3);
    int32_t ids[9], targets[9];
    bool end;
    struct error err;
    assert_fails(
        token_source_next(source, ids, targets, &end, &err), &err, ERR_INPUT,
        "data-00000-of-00001.arrow: row 1, place 0: id 136 is not in the vocabulary of 136");
    token_source_close(source);
}

/* What `datasets` can write and a causal language model cannot learn from. */
static void test_arrow_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *dataset;
        enum error_code code;
        const char *part;
    } rows[] = {
        {DATA "/arrow_uneven", ERR_INPUT, ".arrow: row 1 has 4 input_ids but 3 labels"},
        {DATA "/arrow_null", ERR_INPUT, ".arrow: column input_ids has nulls in it"},
        {DATA "/arrow_text", ERR_INPUT, ".arrow: column input_ids is of type string; a list of"},
        {DATA "/arrow_float", ERR_INPUT, ".arrow: column input_ids is a list of float; lists of"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct token_options options = options_of(rows[i].dataset, 8);
        assert_opens_not(&options, rows[i].code, rows[i].part);
    }
    struct token_options options = options_of(DATA "/arrow_left", 8);
    struct token_source *source = open_ok(&options);
    int32_t ids[8], targets[8];
    bool end;
    struct error err;
    assert_fails(token_source_next(source, ids, targets, &end, &err), &err, ERR_UNSUPPORTED,
                 "row 0: the attention_mask is 0 before it is 1 (at 1): pad on the right");
    token_source_close(source);
}

/* ---- order ---- */

enum { MOST = 64 };

/* The first id of each sample of an epoch, as ranks of a world read it. */
static int64_t read_epoch(const struct token_options *options, int world, int64_t epoch,
                          int32_t first[MOST])
{
    int64_t count = 0;
    for (int rank = 0; rank < world; rank++) {
        struct token_source *source = open_ok(options);
        struct error err;
        int64_t at = rank, skipped;
        assert_ok(token_source_set_epoch(source, epoch, &err), &err);
        assert_ok(token_source_skip(source, rank, &skipped, &err), &err);
        for (bool end = false; skipped == (at == rank ? rank : world - 1); at += world) {
            int32_t ids[MAX_T], targets[MAX_T];
            assert_ok(token_source_next(source, ids, targets, &end, &err), &err);
            if (end)
                break;
            assert_true(at < MOST);
            first[at] = ids[0];
            count++;
            assert_ok(token_source_skip(source, world - 1, &skipped, &err), &err);
        }
        token_source_close(source);
    }
    return count;
}

static void test_order(void **state)
{
    (void)state;
    struct token_options options = options_of(DATA "/megatron_i32", 2);
    int32_t plain[MOST], one[MOST], other[MOST];
    assert_int_equal(read_epoch(&options, 1, 0, plain), 12);
    options.shuffle = true;
    options.seed = 3;
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        assert_int_equal(read_epoch(&options, 1, epoch, one), 12);
        assert_memory_not_equal(one, plain, 12 * sizeof *one);
        int found = 0; /* ids differ from window to window here */
        for (int i = 0; i < 12; i++)
            for (int k = 0; k < 12; k++)
                found += one[i] == plain[k];
        assert_int_equal(found, 12);
        for (int world = 2; world <= 4; world++) {
            assert_int_equal(read_epoch(&options, world, epoch, other), 12);
            assert_memory_equal(one, other, 12 * sizeof *one);
        }
        assert_int_equal(read_epoch(&options, 1, epoch + 1, other), 12);
        assert_memory_not_equal(one, other, 12 * sizeof *one);
    }
}

/* From the position before any sample, as text, another source goes on with the same. */
static void test_resume(void **state)
{
    (void)state;
    struct token_options options = options_of(DATA "/megatron_i32", 2);
    options.shuffle = true;
    int32_t all[MOST];
    assert_int_equal(read_epoch(&options, 1, 5, all), 12);
    for (int at = 0; at <= 12; at++) {
        struct token_source *source = open_ok(&options);
        struct token_position position;
        struct error err;
        int64_t skipped;
        assert_ok(token_source_set_epoch(source, 5, &err), &err);
        assert_ok(token_source_skip(source, at, &skipped, &err), &err);
        token_source_tell(source, &position);
        token_source_close(source);
        auto_free char *text = token_position_print(&position);
        memset(&position, 0xff, sizeof position);
        assert_ok(token_position_parse("state", text, strlen(text), &position, &err), &err);
        source = open_ok(&options);
        assert_ok(token_source_seek(source, &position, &err), &err);
        for (int i = at; i <= 12; i++) {
            int32_t ids[2], targets[2];
            bool end;
            assert_ok(token_source_next(source, ids, targets, &end, &err), &err);
            assert_int_equal(end, i == 12);
            if (!end)
                assert_int_equal(ids[0], all[i]);
        }
        token_source_close(source);
    }
    struct token_source *source = open_ok(&options);
    struct token_position position;
    struct error err;
    token_source_tell(source, &position);
    token_source_close(source);
    options.seed = 1;
    source = open_ok(&options);
    assert_fails(token_source_seek(source, &position, &err), &err, ERR_INPUT,
                 "is of other files or options");
    token_source_close(source);
    assert_fails(token_position_parse("state", "{\"epoch\":0}", 11, &position, &err), &err,
                 ERR_INPUT, "state: the position in the data has no number >= 0 as its sample");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llmc),     cmocka_unit_test(test_megatron),
        cmocka_unit_test(test_arrow),    cmocka_unit_test(test_arrow_wide),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_arrow_refusals),
        cmocka_unit_test(test_order),    cmocka_unit_test(test_resume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
