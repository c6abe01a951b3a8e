/* Milliseconds of each op at the sizes of the MNIST network: `make bench-ops`, `make bench-gpu`.
 *   ops_bench [DEVICE [THREADS [TFLOPS GBYTES]]]
 * Every row is the best of several rounds; the last line adds them up, weighted by how often a
 * training step runs them. With what the device can do at most in a second: how near the rows come
 * to it. */
#include "base/mem.h"
#include "tests/bench/timing.h"

#include <stdio.h>

enum { BATCH = 64, PARAMETERS = 1199882 };

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
    b->ops->conv2d_forward(b->s, DTYPE_F32, b->large[0], b->large[1], b->w[0], b->w[1], true,
                           &b->conv1);
}

static void conv1_backward_weights(struct bench *b)
{
    b->ops->conv2d_backward_weights(b->s, DTYPE_F32, b->w[0], b->w[1], b->large[1], b->large[0],
                                    &b->conv1, false);
}

static void conv2_forward(struct bench *b)
{
    b->ops->conv2d_forward(b->s, DTYPE_F32, b->large[0], b->large[1], b->w[0], b->w[1], true,
                           &b->conv2);
}

static void conv2_backward_data(struct bench *b)
{
    b->ops->conv2d_backward_data(b->s, DTYPE_F32, b->large[1], b->large[0], b->w[0], &b->conv2);
}

static void conv2_backward_weights(struct bench *b)
{
    b->ops->conv2d_backward_weights(b->s, DTYPE_F32, b->w[0], b->w[1], b->large[1], b->large[0],
                                    &b->conv2, false);
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
    b->ops->max_pool2d_forward(b->s, DTYPE_F32, b->large[1], b->bytes, b->large[0], b->B, 24, 24,
                               64);
}

static void pool_backward(struct bench *b)
{
    b->ops->max_pool2d_backward(b->s, DTYPE_F32, b->large[0], b->bytes, b->large[1], b->B, 24, 24,
                                64);
}

static void dropout1(struct bench *b)
{
    b->ops->dropout(b->s, DTYPE_F32, b->large[1], b->large[0], b->B, 9216, 0.25f, 1, 0, 1);
}

static void flatten(struct bench *b)
{
    b->ops->channels_first(b->s, DTYPE_F32, b->large[1], b->large[0], b->B, 12, 12, 64);
}

static void unflatten(struct bench *b)
{
    b->ops->channels_last(b->s, DTYPE_F32, b->large[1], b->large[0], b->B, 12, 12, 64);
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
    b->ops->log_softmax(b->s, DTYPE_F32, b->large[0], b->large[0], b->B, 10);
    b->ops->nll_loss(b->s, b->sums, b->large[0], b->target, b->B, 10);
    b->ops->nll_log_softmax_backward(b->s, DTYPE_F32, b->large[1], b->large[0], b->target, 1, b->B,
                                     10);
}

static void normalize(struct bench *b)
{
    b->ops->normalize(b->s, DTYPE_F32, b->large[0], b->bytes, b->B * 28 * 28, 0.13f, 0.31f);
}

static void adadelta(struct bench *b)
{
    const struct adadelta_step step = {.lr = 1, .rho = 0.9f, .eps = 1e-6f};
    b->ops->adadelta(b->s, DTYPE_F32, b->w[0], b->w[1], b->w[2], b->w[3], PARAMETERS, &step, NULL,
                     0, 0);
}

static void adam(struct bench *b)
{
    const struct adam_step step = {
        .lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .step = 1};
    b->ops->adam(b->s, DTYPE_F32, b->w[0], b->w[1], b->w[2], b->w[3], PARAMETERS, &step, NULL, 0,
                 0);
}

static const struct {
    const char *name;
    void (*run)(struct bench *b);
    int times;        /* in a training step */
    struct work work; /* of one sample */
} rows[] = {
    {"normalize", normalize, 1, {0, 3920}},
    {"conv1 forward", conv1_forward, 1, {389376, 89664}},
    {"conv1 backward weights", conv1_backward_weights, 1, {389376, 89664}},
    {"relu1 backward", relu1_backward, 1, {0, 259584}},
    {"conv2 forward", conv2_forward, 1, {21233664, 233984}},
    {"conv2 backward data", conv2_backward_data, 1, {21233664, 233984}},
    {"conv2 backward weights", conv2_backward_weights, 1, {21233664, 233984}},
    {"relu2 backward", relu2_backward, 1, {0, 442368}},
    {"max_pool forward", pool_forward, 1, {0, 193536}},
    {"max_pool backward", pool_backward, 1, {0, 193536}},
    {"dropout1 (each way)", dropout1, 2, {0, 73728}},
    {"flatten", flatten, 1, {0, 73728}},
    {"flatten backward", unflatten, 1, {0, 73728}},
    {"fc1 forward", fc1_forward, 1, {2359296, 111104}},
    {"fc1 backward data", fc1_backward_data, 1, {2359296, 111104}},
    {"fc1 backward weights", fc1_backward_weights, 1, {2359296, 111104}},
    {"fc2 forward", fc2_forward, 1, {2560, 552}},
    {"fc2 backward", fc2_backward, 1, {5120, 1104}},
    {"log_softmax, loss and back", loss, 1, {0, 240}},
    {"adadelta, all parameters", adadelta, 1, {0, 28.0 * PARAMETERS / BATCH}},
    {"adam, all parameters", adam, 0, {0, 28.0 * PARAMETERS / BATCH}},
};

struct row_run {
    struct bench *b;
    void (*run)(struct bench *b);
};

static void run_row(void *ctx)
{
    const struct row_run *row = ctx;
    row->run(row->b);
}

static void measure(struct bench *b, struct timing *timing)
{
    double step_ms = 0;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct row_run row = {b, rows[i].run};
        double ms = timing_ms(timing, run_row, &row);
        const struct work work = {rows[i].work.flops * BATCH, rows[i].work.bytes * BATCH};
        printf("%-28s %8.4f ms", rows[i].name, ms);
        timing_print_rate(timing, &work, ms,
                          predicted_op_ms(timing->predicted, work.flops, work.bytes));
        printf("\n");
        step_ms += rows[i].times * ms;
    }
    printf("%-28s %8.4f ms = %.0f samples/s\n", "a training step", step_ms, BATCH / step_ms * 1e3);
}

static void run(struct bench *b, struct timing *timing)
{
    const int64_t largest = BATCH * 24 * 24 * 64;
    const int32_t target[BATCH] = {0};
    const double sums[3] = {0};
    for (size_t i = 0; i < array_length(b->large); i++) {
        b->large[i] = timing_room(timing, (size_t)largest * sizeof(float));
        b->ops->uniform(b->s, b->large[i], largest, i, 0, -1, 1);
    }
    for (size_t i = 0; i < array_length(b->w); i++) {
        b->w[i] = timing_room(timing, PARAMETERS * sizeof(float));
        b->ops->uniform(b->s, b->w[i], PARAMETERS, i, 0, 0, 0.05f);
    }
    b->bytes = timing_room(timing, (size_t)largest * sizeof(float));
    b->ops->fill(b->s, (float *)(void *)b->bytes, 0, largest);
    b->target = timing_copy(timing, target, sizeof target);
    b->sums = timing_copy(timing, sums, sizeof sums);
    measure(b, timing);
    void *all[] = {b->large[0], b->large[1], b->large[2], b->w[0],   b->w[1],
                   b->w[2],     b->w[3],     b->bytes,    b->target, b->sums};
    for (size_t i = 0; i < array_length(all); i++)
        device_free(timing->device, all[i]);
}

int main(int argc, char **argv)
{
    struct timing timing;
    timing_open(&timing, "ops_bench", argc, argv);
    struct bench b = {.s = timing.s, .ops = timing.ops, .B = BATCH};
    b.conv1 = (struct conv2d_shape){BATCH, 28, 28, 1, 32, 3, 3};
    b.conv2 = (struct conv2d_shape){BATCH, 26, 26, 32, 64, 3, 3};
    run(&b, &timing);
    timing_close(&timing);
    return 0;
}
