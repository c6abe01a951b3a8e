/* Batches made ready ahead: the same whatever the ranks, threads and depths are. */
#include "agent/dataset/token_loader.h"

#include "base/mem.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { T = 8, MOST = 256, X = TOKENS_IGNORED };

/* The global sequence of an epoch. */
struct sequence {
    int64_t count;
    int32_t ids[MOST][T], targets[MOST][T];
};

static struct token_options shuffled(const char *path)
{
    struct token_options options = texts_options(path, T);
    options.shuffle = true;
    options.source.shuffle_buffer = 16;
    options.seed = 11;
    return options;
}

static struct sequence *read_sequence(const struct token_options *options, int64_t epoch)
{
    struct sequence *all = xcalloc(1, sizeof *all);
    struct token_source *source = texts_open(options);
    struct error err;
    bool end = false;
    assert_ok(token_source_set_epoch(source, epoch, &err), &err);
    for (;; all->count++) {
        assert_ok(
            token_source_next(source, all->ids[all->count], all->targets[all->count], &end, &err),
            &err);
        if (end)
            break;
    }
    token_source_close(source);
    return all;
}

static struct token_loader *open_loader(const struct token_options *options,
                                        const struct token_loader_options *how)
{
    struct token_loader *loader;
    struct error err;
    assert_ok(token_loader_open(texts_open(options), how, &loader, &err), &err);
    return loader;
}

/* Takes the rest of an epoch, whose first sample is number `first`, and compares it. */
static void expect_rest(struct token_loader *loader, const struct token_loader_options *how,
                        const struct sequence *all, int64_t first)
{
    struct token_batch batch;
    struct token_position position;
    struct error err;
    int64_t W = how->world_size, global = W * how->batch_rows;
    for (bool end = false;; first += global) {
        assert_ok(token_loader_next(loader, &batch, &end, &err), &err);
        int64_t left = all->count - first;
        assert_int_equal(end, left <= 0 || (how->drop_last && left < global));
        if (end)
            return;
        assert_int_equal(batch.samples, left < global ? left : global);
        int64_t rows = 0, counted = 0;
        for (int64_t j = 0; j < how->batch_rows; j++) {
            int64_t i = first + j * W + how->rank;
            for (int64_t t = 0; t < T; t++) {
                assert_int_equal(batch.ids[j * T + t], i < all->count ? all->ids[i][t] : 0);
                int32_t target = i < all->count ? all->targets[i][t] : X;
                assert_int_equal(batch.targets[j * T + t], target);
                counted += target != X;
            }
            rows += i < all->count;
        }
        assert_int_equal(batch.rows, rows);
        assert_int_equal(batch.counted, counted);
        token_loader_tell(loader, &position);
        assert_int_equal(position.sample, first + batch.samples);
        token_loader_release(loader);
    }
}

static char *write_texts(const char *dir)
{
    auto_free char *lines = texts_lines(0, 75);
    return texts_write_gzip(dir, "a.jsonl.gz", lines, strlen(lines), 1);
}

static void test_batches(void **state)
{
    auto_free char *path = write_texts(*state);
    struct token_options options = shuffled(path);
    for (int world = 1; world <= 4; world++) {
        for (int rank = 0; rank < world; rank++) {
            struct token_loader_options how = {.rank = rank,
                                               .world_size = world,
                                               .batch_rows = 1 + rank % 2 + world % 2,
                                               .window = T,
                                               .held = 1,
                                               .ahead = 1 + rank,
                                               .drop_last = world == 3};
            options.threads = (rank + world) % 4;
            struct token_loader *loader = open_loader(&options, &how);
            for (int64_t epoch = 0; epoch < 3; epoch++) {
                struct error err;
                auto_free struct sequence *all = read_sequence(&options, epoch);
                assert_ok(token_loader_start(loader, epoch, 0, &err), &err);
                expect_rest(loader, &how, all, 0);
            }
            token_loader_close(loader);
        }
    }
}

/* A run of 2 ranks stops behind any batch, others go on, though the loader was further ahead. */
static void test_resume(void **state)
{
    auto_free char *path = write_texts(*state);
    struct token_options options = shuffled(path);
    options.threads = 2;
    auto_free struct sequence *all = read_sequence(&options, 1);
    struct token_loader_options two = {
        .rank = 1, .world_size = 2, .batch_rows = 3, .window = T, .held = 1, .ahead = 3};
    struct token_loader_options others = {
        .rank = 2, .world_size = 3, .batch_rows = 1, .window = T, .held = 1, .ahead = 1};
    for (int64_t batches = 0; batches * 6 < all->count; batches++) {
        struct token_loader *loader = open_loader(&options, &two);
        struct token_position position;
        struct token_batch batch;
        struct error err;
        bool end;
        assert_ok(token_loader_start(loader, 1, 0, &err), &err);
        for (int64_t i = 0; i < batches; i++) {
            assert_ok(token_loader_next(loader, &batch, &end, &err), &err);
            token_loader_release(loader);
        }
        token_loader_tell(loader, &position);
        token_loader_close(loader); /* with batches that nobody took */
        loader = open_loader(&options, &others);
        assert_ok(token_loader_resume(loader, &position, &err), &err);
        expect_rest(loader, &others, all, batches * 6);
        assert_ok(token_loader_start(loader, 1, batches * 6, &err), &err);
        expect_rest(loader, &others, all, batches * 6);
        token_loader_close(loader);
    }
}

/* Batches that are held stay as they are, and the same few buffers are used all the time. */
static void test_buffers(void **state)
{
    auto_free char *path = write_texts(*state);
    struct token_options options = shuffled(path);
    struct token_loader_options how = {
        .world_size = 1, .batch_rows = 1, .window = T, .held = 3, .ahead = 2};
    auto_free struct sequence *all = read_sequence(&options, 0);
    struct token_loader *loader = open_loader(&options, &how);
    struct error err;
    const int32_t *seen[5] = {NULL};
    int64_t i = 0;
    assert_ok(token_loader_start(loader, 0, 0, &err), &err);
    for (; i + 3 <= all->count; i += 3) {
        struct token_batch batches[3];
        bool end;
        for (int k = 0; k < 3; k++) {
            assert_ok(token_loader_next(loader, &batches[k], &end, &err), &err);
            assert_false(end);
            if (!seen[(i + k) % 5])
                seen[(i + k) % 5] = batches[k].ids;
            assert_ptr_equal(seen[(i + k) % 5], batches[k].ids);
        }
        for (int k = 0; k < 3; k++)
            assert_memory_equal(batches[k].ids, all->ids[i + k], sizeof all->ids[0]);
        token_loader_release(loader);
    }
    assert_true(i > 15);
    token_loader_close(loader);
}

static void test_small(void **state)
{
    static const char line[] = "{\"text\":\"abcdefghijklmnopqrstuvw\"}\n"; /* 3 samples */
    auto_free char *path = texts_write(*state, "a.jsonl", line, sizeof line - 1);
    struct token_options options = texts_options(path, T);
    struct token_loader_options how = {
        .world_size = 2, .batch_rows = 2, .window = T, .held = 1, .ahead = 1};
    struct token_batch batch;
    struct error err;
    bool end;
    struct token_loader *loader = open_loader(&options, &how);
    assert_ok(token_loader_start(loader, 0, 0, &err), &err);
    assert_fails(token_loader_next(loader, &batch, &end, &err), &err, ERR_INPUT,
                 "a.jsonl: 3 samples of 8 ids; one batch of all ranks takes 4 (2 x 2)");
    token_loader_close(loader);
    how.may_be_small = true;
    loader = open_loader(&options, &how);
    auto_free struct sequence *all = read_sequence(&options, 0);
    assert_int_equal(all->count, 3);
    assert_ok(token_loader_start(loader, 0, 0, &err), &err);
    expect_rest(loader, &how, all, 0);
    token_loader_close(loader);
    /* files of ids are known beforehand */
    options = texts_options("tests/data/tokens/llmc", T);
    options.vocab_size = 0;
    how.may_be_small = false;
    how.world_size = 3;
    struct token_source *source = texts_open(&options);
    assert_fails(token_loader_open(source, &how, &loader, &err), &err, ERR_INPUT,
                 "4 samples of 8 ids; one batch of all ranks takes 6");
    how.ahead = 1 << 20;
    source = texts_open(&options);
    assert_fails(token_loader_open(source, &how, &loader, &err), &err, ERR_CONFIG,
                 "are too many to keep ready");
}

/* ---- a tokenizer that waits ---- */

struct gate {
    struct token_encoder behind;
    pthread_mutex_t lock;
    pthread_cond_t opens;
    bool open;
};

static int encode_behind_gate(void *ctx, const char *text, size_t bytes, struct tokens *ids,
                              struct error *err)
{
    struct gate *gate = ctx;
    pthread_mutex_lock(&gate->lock);
    while (!gate->open && bytes == 5) /* "stuck" */
        pthread_cond_wait(&gate->opens, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return gate->behind.encode(gate->behind.ctx, text, bytes, ids, err);
}

static void test_stall(void **state)
{
    static const char lines[] = "{\"text\":\"abcdefg\"}\n{\"text\":\"stuck\"}\n{\"text\":\"xy\"}\n";
    auto_free char *path = texts_write(*state, "a.jsonl", lines, sizeof lines - 1);
    for (int threads = 0; threads < 3; threads++) {
        struct gate gate = {.behind = texts_encoder()};
        pthread_mutex_init(&gate.lock, NULL);
        pthread_cond_init(&gate.opens, NULL);
        struct token_options options = texts_options(path, T);
        options.encoder.encode = encode_behind_gate;
        options.encoder.ctx = &gate;
        options.threads = threads;
        struct token_loader_options how = {.world_size = 1,
                                           .batch_rows = 2,
                                           .window = T,
                                           .held = 1,
                                           .ahead = 1,
                                           .timeout_s = 0.05,
                                           .may_be_small = true};
        struct token_loader *loader = open_loader(&options, &how);
        struct token_batch batch;
        struct error err = {0};
        bool end = false;
        assert_ok(token_loader_start(loader, 0, 0, &err), &err);
        /* the thread may not yet have come to the gate when the time is up for the first time */
        do
            assert_fails(token_loader_next(loader, &batch, &end, &err), &err, ERR_TIMEOUT,
                         "no batch within 0.05 s (data.loader_timeout): the loader is ");
        while (!strstr(err.msg, "the loader is tokenizing") || !strstr(err.msg, "a.jsonl:2"));
        pthread_mutex_lock(&gate.lock);
        gate.open = true;
        pthread_cond_broadcast(&gate.opens);
        pthread_mutex_unlock(&gate.lock);
        while (token_loader_next(loader, &batch, &end, &err) < 0) /* an error that passes */
            assert_int_equal(err.code, ERR_TIMEOUT);
        assert_int_equal(batch.samples, 2);
        token_loader_close(loader);
        pthread_cond_destroy(&gate.opens);
        pthread_mutex_destroy(&gate.lock);
    }
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {IN_DIR(test_batches), IN_DIR(test_resume),
                                       IN_DIR(test_buffers), IN_DIR(test_small),
                                       IN_DIR(test_stall)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
