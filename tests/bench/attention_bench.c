/* Attention by our kernels and by cuDNN's, side by side, as rows of kernels/cuda/attention_table.c.
 * `make bench-gpu` shows them, `make attention-table` puts them there.
 *   attention_bench [DEVICE [THREADS [TFLOPS GBYTES]]]
 * Each number is the best of several rounds, of bf16. Where cuDNN cannot do it, a line on stderr
 * says so, and its column is ours. With PREDICT_FOR (predicted.h) a row has what is predicted for
 * both, too. */
#include "base/contract.h"
#include "base/mem.h"
#include "tests/bench/timing.h"

#include <stdio.h>
#include <stdlib.h>

static const struct row {
    int64_t B, T, heads, kv_heads, hd;
    bool causal;
} rows[] = {
    {16, 512, 12, 12, 64, true},   {8, 1024, 12, 12, 64, true},   {4, 2048, 32, 8, 64, true},
    {2, 4096, 32, 8, 64, true},    {1, 8192, 32, 8, 64, true},    {16, 512, 16, 16, 64, false},
    {4, 2048, 16, 16, 64, false},  {16, 512, 32, 8, 128, true},   {8, 1024, 32, 8, 128, true},
    {4, 2048, 32, 8, 128, true},   {2, 4096, 32, 8, 128, true},   {1, 8192, 32, 8, 128, true},
    {16, 512, 16, 16, 128, false}, {4, 2048, 16, 16, 128, false},
};
static const char *const modes[] = {"ours", "cudnn"};
enum { MODES = 2, DIRECTIONS = 2 };

struct bench {
    struct timing timing;
    struct attention_shape shape;
    bf16 *qkv, *y, *dqkv; /* q, k and v: columns */
    float *lse;
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

/* bf16 at random. */
static bf16 *room(struct bench *b, int64_t count)
{
    const struct ops *ops = b->timing.ops;
    float *exact = timing_room(&b->timing, (size_t)count * sizeof *exact);
    bf16 *rounded = timing_room(&b->timing, (size_t)count * sizeof *rounded);
    ops->uniform(b->timing.s, exact, count, 1, 0, -1, 1);
    ops->cast(b->timing.s, DTYPE_BF16, rounded, DTYPE_F32, exact, count);
    device_free(b->timing.device, exact);
    return rounded;
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

/* Milliseconds, forward and backward. */
static void measure(struct bench *b, const struct row *row, double ret_ms[DIRECTIONS])
{
    const int64_t tokens = row->B * row->T, width = (row->heads + 2 * row->kv_heads) * row->hd;
    b->shape = shape_of(row);
    b->qkv = room(b, tokens * width);
    b->dqkv = room(b, tokens * width);
    b->y = room(b, tokens * row->heads * row->hd);
    b->lse = timing_room(&b->timing, (size_t)(tokens * row->heads) * sizeof *b->lse);
    ret_ms[0] = timing_ms(&b->timing, forward, b);
    ret_ms[1] = timing_ms(&b->timing, backward, b);
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

static void print_predicted(const struct row *row, int direction)
{
    const struct time_device *d = predicted_device("attention_bench");
    const struct attention_shape shape = shape_of(row);
    if (!d)
        return;
    double ours = predicted_attention_ms(d, &d->ours, &shape, direction);
    double cudnn = predicted_attention_ms(d, &d->cudnn, &shape, direction);
    printf("; predicted %.4f", ours);
    if (cudnn > 0)
        printf(", %.4f ms", cudnn);
    else
        printf(" ms, of cuDNN nothing");
}

/* A row of the table; tests/gpu/attention_table.sh finds it by its form. */
static void print_row(int compute_capability, int direction, const struct row *row,
                      const double ms[MODES])
{
    printf("    {%d, ATTENTION_%s, %lld, ATTENTION_%s, %lld, %.4f, %.4f}, "
           "/* %lld x %lld/%lld heads: %.0f, %.0f TFLOP/s: %.2f x",
           compute_capability, direction ? "BACKWARD" : "FORWARD", (long long)row->hd,
           row->causal ? "CAUSAL" : "FULL", (long long)row->T, ms[0], ms[1], (long long)row->B,
           (long long)row->heads, (long long)row->kv_heads, tflops(row, direction, ms[0]),
           tflops(row, direction, ms[1]), ms[0] / ms[1]);
    print_predicted(row, direction);
    printf(" */\n");
}

int main(int argc, char **argv)
{
    static double ms[MODES][array_length(rows)][DIRECTIONS];
    int compute_capability = 0;
    for (int mode = 0; mode < MODES; mode++) {
        struct bench b = {0};
        setenv(ENV_ATTENTION, modes[mode], 1);
        timing_open(&b.timing, "attention_bench", argc, argv);
        compute_capability = device_compute_capability(b.timing.device);
        for (size_t i = 0; i < array_length(rows); i++)
            measure(&b, &rows[i], ms[mode][i]);
        timing_close(&b.timing);
    }
    printf("attention, bf16: hd, mask, T, and ms of ours and of cuDNN's\n");
    for (int direction = 0; direction < DIRECTIONS; direction++)
        for (size_t i = 0; i < array_length(rows); i++)
            print_row(compute_capability, direction, &rows[i],
                      (const double[MODES]){ms[0][i][direction], ms[1][i][direction]});
    return 0;
}
