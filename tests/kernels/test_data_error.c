/* Ids and labels that no op can use: the stream fails by the number, on every device, and later
 * work of the device does not hide it. A GPU is of no use after one, so each case is a process. */
#include "kernels/data_error.h"
#include "kernels/ops.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 6, V = 5, D = 8 };

/* What an op works on, in the device's memory, zeros but for the numbers. */
struct bench {
    struct device *device;
    struct stream *stream;
    const struct ops *ops;
    int32_t *numbers; /* [ROWS] */
    void *table, *rows, *logits;
    double *sums;
};

static void look_up(const struct bench *b)
{
    b->ops->embedding_forward(b->stream, DTYPE_F32, b->rows, b->table, b->numbers, ROWS, V, D);
}
static void look_up_back(const struct bench *b)
{
    b->ops->embedding_backward(b->stream, DTYPE_F32, b->table, b->rows, b->numbers, ROWS, V, D,
                               false);
}
static void cross_entropy(const struct bench *b)
{
    b->ops->cross_entropy(b->stream, DTYPE_F32, b->logits, b->sums, b->logits, b->numbers, 1, ROWS,
                          V, V);
}
static void nll_loss(const struct bench *b)
{
    b->ops->nll_loss(b->stream, b->sums, b->logits, b->numbers, ROWS, V);
}

static const struct {
    const char *name;
    void (*run)(const struct bench *b);
    int32_t value;
    const char *told; /* NULL: nothing is wrong */
} rows[] = {
    {"ids of the table", look_up, V - 1, NULL},
    {"labels of the classes", cross_entropy, V - 1, NULL},
    {"a label that is ignored", cross_entropy, -100, NULL},
    {"an id behind the table", look_up, V, "embedding: id 3 is 5, not within 0 .. 4: the batch is"},
    {"an id before it", look_up, -1, "embedding: id 3 is -1, not within 0 .. 4"},
    {"a large one", look_up, INT32_MAX, "embedding: id 3 is 2147483647, not within 0 .. 4"},
    {"backwards, behind the table", look_up_back, V, "embedding: id 3 is 5, not within 0 .. 4"},
    {"backwards, before it", look_up_back, INT32_MIN, "id 3 is -2147483648, not within 0 .. 4"},
    {"a label behind the classes", cross_entropy, V, "loss: label 3 is 5, not within 0 .. 4"},
    {"a log-probability's", nll_loss, V + 2, "loss: label 3 is 7, not within 0 .. 4"},
    {"a log-probability's, ignored", nll_loss, -100, "loss: label 3 is -100, not within 0 .. 4"},
};

static void *zeros(const struct bench *b, size_t bytes)
{
    static const char nothing[ROWS * D * sizeof(double)];
    struct error err;
    void *memory;
    if (device_alloc(b->device, MEMORY_INPUT, bytes, "bench", &memory, &err) < 0)
        fail_msg("%s", err.msg);
    stream_copy(b->stream, memory, nothing, bytes);
    return memory;
}

/* The op, and what is queued behind it; leaves the device open. */
static int run(size_t i, struct bench *b, struct error *err)
{
    int32_t numbers[ROWS] = {0, 1, 2, rows[i].value, 3, 1};
    assert_ok(device_open(support_device(), 2, &b->device, err), err);
    assert_ok(stream_open(b->device, "bench", &b->stream, err), err);
    b->ops = device_ops(b->device);
    b->numbers = zeros(b, sizeof numbers);
    b->table = zeros(b, V * D * sizeof(float));
    b->rows = zeros(b, ROWS * D * sizeof(float));
    b->logits = zeros(b, ROWS * V * sizeof(float));
    b->sums = zeros(b, 3 * sizeof(double));
    stream_copy(b->stream, b->numbers, numbers, sizeof numbers);
    assert_ok(stream_sync(b->stream, err), err);
    rows[i].run(b);
    b->ops->fill(b->stream, b->rows, 1, ROWS * D);
    return stream_sync(b->stream, err);
}

/* 0: it ended as it should. */
static int try_row(size_t i)
{
    struct bench b;
    struct error err = {0}, again = {0};
    int result = run(i, &b, &err);
    bool is_told = device_data_error(b.device, &again);
    if (!rows[i].told)
        return result || is_told;
    if (!support_is_error(result, &err, ERR_INPUT, rows[i].told))
        return 1;
    bool is_gpu = !device_is_host(b.device);
    return is_told != is_gpu || (is_gpu && strcmp(again.msg, err.msg) != 0);
}

static void test_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            _exit(try_row(i));
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status)
            fail_msg("%s: status %d", rows[i].name, status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
