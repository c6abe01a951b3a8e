/* Milliseconds of each op at the sizes of the MNIST network: `make bench-ops`.
 *   ops_bench [BATCH [THREADS]]
 * Every row is the best of several rounds; the last line adds them up, weighted by how often a
 * training step runs them. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "kernels/ops.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 15, PARAMETERS = 1199882 };

struct bench {
    struct stream *s;
    const struct ops *ops;
    struct conv2d_shape conv1, conv2;
    int64_t B;
    float *large[3]; /* each as large as the largest activation */
    float *w[4];     /* each as large as all parameters */
    uint8_t *bytes;
    int32_t *target;
    double *sums;
};

static void conv1_forward(struct bench *b)
{
    b->ops->conv2d_forward(b->s, b->large[0], b->large[1], b->w[0], b->w[1], true, &b->conv1);
}

static void conv1_backward_weights(struct bench *b)
{
    b->ops->conv2d_backward_weights(b->s, b->w[0], b->w[1], b->large[1], b->large[0], &b->conv1,
                                    false);
}

static void conv2_forward(struct bench *b)
{
    b->ops->conv2d_forward(b->s, b->large[0], b->large[1], b->w[0], b->w[1], true, &b->conv2);
}

static void conv2_backward_data(struct bench *b)
{
    b->ops->conv2d_backward_data(b->s, b->large[1], b->large[0], b->w[0], &b->conv2);
}

static void conv2_backward_weights(struct bench *b)
{
    b->ops->conv2d_backward_weights(b->s, b->w[0], b->w[1], b->large[1], b->large[0], &b->conv2,
                                    false);
}

static void relu1_backward(struct bench *b)
{
    b->ops->relu_backward(b->s, DTYPE_F32, b->large[0], b->large[1], b->large[0],
                          b->B * 26 * 26 * 32);
}

static void relu2_backward(struct bench *b)
{
    b->ops->relu_backward(b->s, DTYPE_F32, b->large[0], b->large[1], b->large[0],
                          b->B * 24 * 24 * 64);
}

static void pool_forward(struct bench *b)
{
    b->ops->max_pool2d_forward(b->s, b->large[1], b->bytes, b->large[0], b->B, 24, 24, 64);
}

static void pool_backward(struct bench *b)
{
    b->ops->max_pool2d_backward(b->s, b->large[0], b->bytes, b->large[1], b->B, 24, 24, 64);
}

static void dropout1(struct bench *b)
{
    b->ops->dropout(b->s, DTYPE_F32, b->large[1], b->large[0], b->B, 9216, 0.25f, 1, 0, 1);
}

static void flatten(struct bench *b)
{
    b->ops->channels_first(b->s, b->large[1], b->large[0], b->B, 12, 12, 64);
}

static void unflatten(struct bench *b)
{
    b->ops->channels_last(b->s, b->large[1], b->large[0], b->B, 12, 12, 64);
}

static void fc1_forward(struct bench *b)
{
    const struct linear_shape shape = linear_dense(b->B, 9216, 128);
    b->ops->linear_forward(b->s, DTYPE_F32, DTYPE_F32, b->large[1], b->large[0], b->w[0], b->w[1],
                           true, &shape);
}

static void fc1_backward_data(struct bench *b)
{
    const struct linear_shape shape = linear_dense(b->B, 9216, 128);
    b->ops->linear_backward_data(b->s, DTYPE_F32, b->large[1], b->large[0], b->w[0], &shape, false);
}

static void fc1_backward_weights(struct bench *b)
{
    const struct linear_shape shape = linear_dense(b->B, 9216, 128);
    b->ops->linear_backward_weights(b->s, DTYPE_F32, b->w[0], b->w[1], b->large[0], b->large[1],
                                    &shape, false);
}

static void fc2_forward(struct bench *b)
{
    const struct linear_shape shape = linear_dense(b->B, 128, 10);
    b->ops->linear_forward(b->s, DTYPE_F32, DTYPE_F32, b->large[1], b->large[0], b->w[0], b->w[1],
                           false, &shape);
}

static void fc2_backward(struct bench *b)
{
    const struct linear_shape shape = linear_dense(b->B, 128, 10);
    b->ops->linear_backward_data(b->s, DTYPE_F32, b->large[1], b->large[0], b->w[0], &shape, false);
    b->ops->linear_backward_weights(b->s, DTYPE_F32, b->w[0], b->w[1], b->large[0], b->large[1],
                                    &shape, false);
}

static void loss(struct bench *b)
{
    b->ops->log_softmax(b->s, b->large[0], b->large[0], b->B, 10);
    b->ops->nll_loss(b->s, b->sums, b->large[0], b->target, b->B, 10);
    b->ops->nll_log_softmax_backward(b->s, b->large[1], b->large[0], b->target, 1, b->B, 10);
}

static void normalize(struct bench *b)
{
    b->ops->normalize(b->s, b->large[0], b->bytes, b->B * 28 * 28, 0.13f, 0.31f);
}

static void adadelta(struct bench *b)
{
    b->ops->adadelta(b->s, b->w[0], b->w[1], b->w[2], b->w[3], PARAMETERS, 1, 0.9f, 1e-6f, 0);
}

static void adam(struct bench *b)
{
    const struct adam_step step = {
        .lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .step = 1};
    b->ops->adam(b->s, DTYPE_F32, b->w[0], b->w[1], b->w[2], b->w[3], PARAMETERS, &step, 0, 0);
}

static const struct {
    const char *name;
    void (*run)(struct bench *b);
    int times; /* in a training step */
} rows[] = {
    {"normalize", normalize, 1},
    {"conv1 forward", conv1_forward, 1},
    {"conv1 backward weights", conv1_backward_weights, 1},
    {"relu1 backward", relu1_backward, 1},
    {"conv2 forward", conv2_forward, 1},
    {"conv2 backward data", conv2_backward_data, 1},
    {"conv2 backward weights", conv2_backward_weights, 1},
    {"relu2 backward", relu2_backward, 1},
    {"max_pool forward", pool_forward, 1},
    {"max_pool backward", pool_backward, 1},
    {"dropout1 (each way)", dropout1, 2},
    {"flatten", flatten, 1},
    {"flatten backward", unflatten, 1},
    {"fc1 forward", fc1_forward, 1},
    {"fc1 backward data", fc1_backward_data, 1},
    {"fc1 backward weights", fc1_backward_weights, 1},
    {"fc2 forward", fc2_forward, 1},
    {"fc2 backward", fc2_backward, 1},
    {"log_softmax, loss and back", loss, 1},
    {"adadelta, all parameters", adadelta, 1},
    {"adam, all parameters", adam, 0},
};

static int sync_or_say(struct stream *s)
{
    struct error err;
    if (stream_sync(s, &err) == 0)
        return 0;
    fprintf(stderr, "ops_bench: %s\n", err.msg);
    return -1;
}

static int measure(struct bench *b)
{
    double step_ms = 0;
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t best_us = INT64_MAX;
        for (int round = 0; round < ROUNDS; round++) {
            int64_t start_us = clock_monotonic_us();
            rows[i].run(b);
            if (sync_or_say(b->s) < 0)
                return -1;
            int64_t us = clock_monotonic_us() - start_us;
            best_us = us < best_us ? us : best_us;
        }
        printf("%-28s %8.3f ms\n", rows[i].name, (double)best_us / 1e3);
        step_ms += rows[i].times * (double)best_us / 1e3;
    }
    printf("%-28s %8.3f ms = %.0f samples/s\n", "a training step", step_ms,
           (double)b->B / step_ms * 1e3);
    return 0;
}

static int run(struct bench *b, struct device *device, struct error *err)
{
    size_t image_bytes = (size_t)(b->B * 24 * 24 * 64) * sizeof(float);
    for (size_t i = 0; i < array_length(b->large); i++) {
        if (device_alloc(device, MEMORY_ACTIVATION, image_bytes, "images", (void **)&b->large[i],
                         err) < 0)
            return -1;
        b->ops->uniform(b->s, b->large[i], b->B * 24 * 24 * 64, i, 0, -1, 1);
    }
    for (size_t i = 0; i < array_length(b->w); i++) {
        if (device_alloc(device, MEMORY_SHARD, PARAMETERS * sizeof(float), "w", (void **)&b->w[i],
                         err) < 0)
            return -1;
        b->ops->uniform(b->s, b->w[i], PARAMETERS, i, 0, 0, 0.05f);
    }
    b->bytes = xcalloc(1, image_bytes);
    b->target = xcalloc((size_t)b->B, sizeof *b->target);
    b->sums = xcalloc(3, sizeof *b->sums);
    int result = measure(b);
    free(b->bytes);
    free(b->target);
    free(b->sums);
    for (size_t i = 0; i < array_length(b->large); i++)
        device_free(device, b->large[i]);
    for (size_t i = 0; i < array_length(b->w); i++)
        device_free(device, b->w[i]);
    return result < 0 ? error_set(err, ERR_IO, "an op failed") : 0;
}

int main(int argc, char **argv)
{
    int64_t batch = 64, threads = 1;
    if ((argc > 1 && !str_to_i64(argv[1], 1, 4096, &batch)) ||
        (argc > 2 && !str_to_i64(argv[2], 1, 64, &threads)) || argc > 3) {
        fprintf(stderr, "usage: ops_bench [BATCH [THREADS]]\n");
        return 2;
    }
    struct device *device;
    struct bench b = {.B = batch};
    struct error err;
    if (device_open("cpu", (int)threads, &device, &err) < 0 ||
        stream_open(device, "bench", &b.s, &err) < 0) {
        fprintf(stderr, "ops_bench: %s\n", err.msg);
        return 1;
    }
    b.ops = device_ops(device);
    b.conv1 = (struct conv2d_shape){batch, 28, 28, 1, 32, 3, 3};
    b.conv2 = (struct conv2d_shape){batch, 26, 26, 32, 64, 3, 3};
    int result = run(&b, device, &err);
    if (result < 0)
        fprintf(stderr, "ops_bench: %s\n", err.msg);
    stream_close(b.s);
    device_close(device);
    return result < 0;
}
