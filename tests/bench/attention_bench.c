/* Attention by our kernels and by cuDNN's, side by side, as rows of kernels/attention_table.c.
 * `make bench-gpu` shows them, `make attention-table` puts them there.
 *   attention_bench [DEVICE [THREADS [TFLOPS GBYTES]]]      DEVICE none: what is predicted, alone
 * With SHOAL_ATTENTION=hopper our kernels for compute capability 9.0 take cuDNN's place, in rows of
 * another form, which also say how far the two outputs, or gradients, are apart. Each number is the
 * best of several rounds, of bf16. Where cuDNN cannot do it, a line on stderr says so, and what
 * stands there is no row of the table: it ends with "cuDNN: none". With PREDICT_FOR (predicted.h) a
 * row has what is predicted for both, too. The last line is "attention: complete". */
#include "agent/plan/time_attention.h"
#include "base/contract.h"
#include "base/mem.h"
#include "kernels/attention_choice.h"
#include "tests/bench/timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    int64_t B, T, heads, kv_heads, hd;
    bool causal;
} rows[] = {
    /* Llama-3.2-1B, Llama-3-8B, GPT-2 124M, a model of 1.5B parameters (tests/gpu/steps.sh) */
    {1, 8192, 32, 8, 64, true},
    {1, 8192, 32, 8, 128, true},
    {16, 1024, 12, 12, 64, true},
    {16, 1024, 12, 2, 128, true},
    /* others, each of its own width, mask and length */
    {16, 512, 12, 12, 64, true},
    {4, 2048, 32, 8, 64, true},
    {2, 4096, 32, 8, 64, true},
    {16, 512, 16, 16, 64, false},
    {4, 2048, 16, 16, 64, false},
    {16, 512, 32, 8, 128, true},
    {4, 2048, 32, 8, 128, true},
    {2, 4096, 32, 8, 128, true},
    {16, 512, 16, 16, 128, false},
    {4, 2048, 16, 16, 128, false},
};
enum { OURS, CUDNN, HOPPER = CUDNN, MODES };
static const char *const directions[] = {"FORWARD", "BACKWARD", "BACKWARD_NONDETERMINISTIC"};
enum { DIRECTIONS = array_length(directions) };

struct bench {
    struct timing timing;
    bool is_cudnn; /* what is measured; else ours */
    struct attention_shape shape;
    bf16 *qkv, *y, *dqkv; /* q, k and v: columns */
    float *lse;
    bf16 *host_y, *host_dqkv; /* what ours for 9.0 are compared by; NULL: cuDNN is measured */
};

static void forward(void *ctx)
{
    const struct bench *b = ctx;
    const struct attention_shape *z = &b->shape;
    const bf16 *k = b->qkv + z->heads * z->hd, *v = k + z->kv_heads * z->hd;
    b->timing.ops->attention_forward(b->timing.s, DTYPE_BF16, b->y, b->lse, b->qkv, k, v, z);
}

static void backward(void *ctx)
{
    const struct bench *b = ctx;
    const struct attention_shape *z = &b->shape;
    int64_t k = z->heads * z->hd, v = k + z->kv_heads * z->hd;
    b->timing.ops->attention_backward(b->timing.s, DTYPE_BF16, b->dqkv, b->dqkv + k, b->dqkv + v,
                                      NULL, b->y, b->y, b->lse, b->qkv, b->qkv + k, b->qkv + v, z);
}

static struct attention_shape shape_of(const struct row *row)
{
    const int64_t width = (row->heads + 2 * row->kv_heads) * row->hd;
    return (struct attention_shape){.B = row->B,
                                    .T_q = row->T,
                                    .T_k = row->T,
                                    .heads = row->heads,
                                    .kv_heads = row->kv_heads,
                                    .hd = row->hd,
                                    .q_stride = width,
                                    .k_stride = width,
                                    .v_stride = width,
                                    .causal = row->causal,
                                    .scale = 0.125f};
}

/* Milliseconds; 0 where it is to be cuDNN's and is not. */
static double time_of(struct bench *b, void (*run)(void *ctx))
{
    const struct device *device = b->timing.device;
    int64_t before = device_library_attentions(device);
    double ms = timing_ms(&b->timing, run, b);
    return b->is_cudnn && device_library_attentions(device) == before ? 0 : ms;
}

static void measure_backward(struct bench *b, double ret_ms[DIRECTIONS])
{
    ret_ms[1] = time_of(b, backward);
    if (b->host_y)
        return; /* ours are deterministic in any case */
    b->shape.nondeterministic = true;
    ret_ms[2] = time_of(b, backward);
}

static void keep_results(struct bench *b, int64_t outputs, int64_t gradients)
{
    struct error err;
    stream_copy(b->timing.s, b->host_y, b->y, (size_t)outputs * sizeof *b->host_y);
    stream_copy(b->timing.s, b->host_dqkv, b->dqkv, (size_t)gradients * sizeof *b->host_dqkv);
    if (stream_sync(b->timing.s, &err) < 0) {
        fprintf(stderr, "attention_bench: %s\n", err.msg);
        exit(1);
    }
}

/* Milliseconds by direction; nothing without a device. */
static void measure(struct bench *b, const struct row *row, double ret_ms[DIRECTIONS])
{
    const int64_t tokens = row->B * row->T, width = (row->heads + 2 * row->kv_heads) * row->hd;
    if (!timing_measures(&b->timing))
        return;
    b->shape = shape_of(row);
    b->qkv = timing_random(&b->timing, tokens * width);
    b->dqkv = timing_random(&b->timing, tokens * width);
    b->y = timing_random(&b->timing, tokens * row->heads * row->hd);
    b->lse = timing_room(&b->timing, (size_t)(tokens * row->heads) * sizeof *b->lse);
    ret_ms[0] = time_of(b, forward);
    measure_backward(b, ret_ms);
    if (b->host_y)
        keep_results(b, tokens * row->heads * row->hd, tokens * width);
    void *all[] = {b->qkv, b->dqkv, b->y, b->lse};
    for (size_t i = 0; i < array_length(all); i++)
        device_free(b->timing.device, all[i]);
}

/* Multiplications and additions: two products forward, five backward, half of each masked if
 * causal. */
static double tflops(const struct row *row, int direction, double ms)
{
    double product = 2.0 * (double)(row->B * row->heads * row->hd) * (double)(row->T * row->T);
    return product * (direction ? 5 : 2) * (row->causal ? 0.5 : 1) / ms / 1e9;
}

/* other: whose kernels, called `name`, stand beside ours; all 0: nothing is known of them. */
static void print_predicted(const struct time_device *d, const struct row *row, int direction,
                            const struct time_attention *other, const char *name)
{
    const struct attention_shape shape = shape_of(row);
    double ours = predicted_attention_ms(d, &d->ours, &shape, direction);
    double theirs = predicted_attention_ms(d, other, &shape, direction);
    printf("predicted %.4f", ours);
    if (theirs > 0)
        printf(", %.4f ms", theirs);
    else
        printf(" ms, of %s nothing", name);
}

/* Of its backward nobody knows the speed with equal bits. */
static void print_predicted_cudnn(const struct time_device *d, const struct row *row, int direction)
{
    static const struct time_attention unknown = {.forward = {0}};
    print_predicted(d, row, direction, direction == ATTENTION_BACKWARD ? &unknown : &d->cudnn,
                    "cuDNN");
}

static const char *mask_of(const struct row *row)
{
    return row->causal ? "CAUSAL" : "FULL";
}

/* Of a row that is for people alone. */
static void print_begin(const struct row *row, int direction)
{
    printf("    %s, %lld, %s, %lld, %lld x %lld/%lld heads: ", directions[direction],
           (long long)row->hd, mask_of(row), (long long)row->T, (long long)row->B,
           (long long)row->heads, (long long)row->kv_heads);
}

/* A row of the table; tests/gpu/attention_table.sh finds it by its form. Without a device, or
 * without cuDNN, it is one for people. */
static void print_row(const struct timing *t, int direction, const struct row *row,
                      const double ms[MODES])
{
    if (!timing_measures(t) || ms[CUDNN] == 0) {
        print_begin(row, direction);
        if (t->predicted)
            print_predicted_cudnn(t->predicted, row, direction);
        if (timing_measures(t))
            printf("%sours %.4f ms, %.0f TFLOP/s; cuDNN: none", t->predicted ? "; " : "", ms[OURS],
                   tflops(row, direction, ms[OURS]));
        printf("\n");
        return;
    }
    printf("    {%d, ATTENTION_%s, %lld, ATTENTION_%s, %lld, %.4f, %.4f}, "
           "/* %lld x %lld/%lld heads: %.0f, %.0f TFLOP/s: %.2f x",
           device_compute_capability(t->device), directions[direction], (long long)row->hd,
           mask_of(row), (long long)row->T, ms[OURS], ms[CUDNN], (long long)row->B,
           (long long)row->heads, (long long)row->kv_heads, tflops(row, direction, ms[OURS]),
           tflops(row, direction, ms[CUDNN]), ms[OURS] / ms[CUDNN]);
    if (t->predicted) {
        printf("; ");
        print_predicted_cudnn(t->predicted, row, direction);
    }
    printf(" */\n");
}

/* The largest difference, as a part of the largest value. */
static double largest_difference(const bf16 *x, const bf16 *y, int64_t count)
{
    double largest = 0, value = 0;
    for (int64_t i = 0; i < count; i++) {
        double apart = fabs((double)bf16_to_float(x[i]) - (double)bf16_to_float(y[i]));
        if (isnan(apart))
            return apart;
        largest = fmax(largest, apart);
        value = fmax(value, fabs((double)bf16_to_float(x[i])));
    }
    return value > 0 ? largest / value : largest;
}

static void print_hopper_row(const struct timing *t, const struct row *row, int direction,
                             const double ms[MODES], double apart)
{
    print_begin(row, direction);
    if (timing_measures(t))
        printf("ours %.4f ms, %.0f TFLOP/s; hopper %.4f ms, %.0f TFLOP/s: %.2f x, apart by %.5f of "
               "the largest%s",
               ms[OURS], tflops(row, direction, ms[OURS]), ms[HOPPER],
               tflops(row, direction, ms[HOPPER]), ms[OURS] / ms[HOPPER], apart,
               t->predicted ? "; " : "");
    if (t->predicted) {
        const struct time_attention hopper = time_attention_hopper(t->predicted);
        print_predicted(t->predicted, row, direction, &hopper, "hopper");
    }
    printf("\n");
}

/* A row with BENCH_TINY. */
static struct row tiny(const struct row *row)
{
    return (struct row){1, row->T / 128, row->heads > row->kv_heads ? 2 : 1,
                        1, row->hd,      row->causal};
}

static void compare_with_cudnn(struct bench benches[MODES], const struct row *row)
{
    double ms[MODES][DIRECTIONS] = {{0}};
    for (int mode = 0; mode < MODES; mode++)
        measure(&benches[mode], row, ms[mode]);
    for (int direction = 0; direction < DIRECTIONS; direction++)
        print_row(&benches[0].timing, direction, row,
                  (const double[]){ms[OURS][direction], ms[CUDNN][direction]});
}

static void compare_with_hopper(struct bench benches[MODES], const struct row *row)
{
    double ms[MODES][DIRECTIONS] = {{0}};
    struct bench *ours = &benches[OURS], *hopper = &benches[HOPPER];
    const int64_t tokens = timing_measures(&ours->timing) ? row->B * row->T : 0;
    const int64_t outputs = tokens * row->heads * row->hd;
    const int64_t gradients = tokens * (row->heads + 2 * row->kv_heads) * row->hd;
    for (int mode = 0; mode < MODES; mode++) {
        benches[mode].host_y = xcalloc((size_t)outputs, sizeof *benches[mode].host_y);
        benches[mode].host_dqkv = xcalloc((size_t)gradients, sizeof *benches[mode].host_dqkv);
        measure(&benches[mode], row, ms[mode]);
    }
    const double apart[] = {largest_difference(ours->host_y, hopper->host_y, outputs),
                            largest_difference(ours->host_dqkv, hopper->host_dqkv, gradients)};
    for (int direction = 0; direction < (int)array_length(apart); direction++)
        print_hopper_row(&ours->timing, row, direction,
                         (const double[]){ms[OURS][direction], ms[HOPPER][direction]},
                         apart[direction]);
    for (int mode = 0; mode < MODES; mode++) {
        free(benches[mode].host_y);
        free(benches[mode].host_dqkv);
    }
}

int main(int argc, char **argv)
{
    struct bench benches[MODES] = {0}; /* a device each: it reads the variable when it is opened */
    const char *asked = getenv(ENV_ATTENTION);
    const bool is_hopper = asked && strcmp(asked, "hopper") == 0;
    const char *const modes[] = {"ours", is_hopper ? "hopper" : "cudnn"};
    for (int mode = 0; mode < MODES; mode++) {
        setenv(ENV_ATTENTION, modes[mode], 1);
        benches[mode].is_cudnn = mode == CUDNN && !is_hopper;
        timing_open_or_predict(&benches[mode].timing, "attention_bench", argc, argv);
    }
    printf("attention, bf16: hd, mask, T, and ms of ours and of %s\n",
           is_hopper ? "those for compute capability 9.0" : "cuDNN's");
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct row row = timing_is_tiny() ? tiny(&rows[i]) : rows[i];
        (is_hopper ? compare_with_hopper : compare_with_cudnn)(benches, &row);
        fflush(stdout); /* what ends the program later does not take it along */
    }
    for (int mode = 0; mode < MODES; mode++)
        timing_close(&benches[mode].timing);
    printf("attention: complete\n"); /* the time limit did not cut it */
    return 0;
}
