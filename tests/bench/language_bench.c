/* Milliseconds of each op at the sizes of language models, and how many billion multiplications and
 * additions a second that is: `make bench-ops`.
 *   language_bench [THREADS]
 * Every row is the best of several rounds; the last line of a table adds them up, weighted by how
 * often a training step runs them. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "kernels/ops.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5 };

struct model {
    const char *name;
    bool gpt2; /* else Llama's ops */
    int64_t B, T, D, H, kv_heads, I, V, L;
    int64_t parameters;
};

static const struct model models[] = {
    {"Llama, 25 M parameters", false, 4, 512, 384, 6, 6, 1024, 32000, 8, 38744448},
    {"GPT-2, 124 M parameters", true, 1, 1024, 768, 12, 12, 3072, 50257, 12, 124439808},
};

struct bench {
    struct device *device;
    struct stream *s;
    const struct ops *ops;
    const struct model *m;
    enum dtype t;
    int64_t rows;      /* B * T */
    void *x[3];        /* activations: each as large as the largest but the logits */
    void *w;           /* as large as the largest weight */
    float *dw, *saved; /* gradients of w; what forward leaves */
    float *logits;     /* [rows, V] */
    void *state[4];    /* of `parameters` elements: w, g, m, v */
    double *sums;
    int32_t *ids;
    double work; /* multiplications and additions of the products of the row that ran */
};

static int64_t qkv_width(const struct model *m)
{
    return (m->H + 2 * m->kv_heads) * (m->D / m->H);
}

static struct linear_shape layer(const struct bench *b, int64_t in, int64_t out)
{
    struct linear_shape shape = linear_dense(b->rows, in, out);
    shape.in_out = b->m->gpt2;
    return shape;
}

static void linear_step(struct bench *b, int64_t in, int64_t out)
{
    const struct linear_shape shape = layer(b, in, out);
    b->ops->linear_forward(b->s, b->t, b->t, b->x[1], b->x[0], b->w, NULL, false, &shape);
    b->ops->linear_backward_data(b->s, b->t, b->x[2], b->x[1], b->w, &shape, false);
    b->ops->linear_backward_weights(b->s, b->t, b->dw, NULL, b->x[0], b->x[1], &shape, true);
    b->work = 6.0 * (double)(b->rows * in * out);
}

static void qkv(struct bench *b)
{
    linear_step(b, b->m->D, qkv_width(b->m));
}

static void output(struct bench *b)
{
    linear_step(b, b->m->D, b->m->D);
}

static void mlp_up(struct bench *b)
{
    linear_step(b, b->m->D, b->m->I * (b->m->gpt2 ? 1 : 2));
}

static void mlp_down(struct bench *b)
{
    linear_step(b, b->m->I, b->m->D);
}

static void head_forward(struct bench *b)
{
    const struct linear_shape shape = linear_dense(b->rows, b->m->D, b->m->V);
    b->ops->linear_forward(b->s, b->t, DTYPE_F32, b->logits, b->x[0], b->w, NULL, false, &shape);
    b->work = 2.0 * (double)(b->rows * b->m->D * b->m->V);
}

/* The gradient of the logits takes their place in fp32, and half of it in bf16. */
static void cross_entropy(struct bench *b)
{
    void *dlogits = b->t == DTYPE_F32 ? (void *)b->logits : b->state[0];
    b->ops->cross_entropy(b->s, b->t, dlogits, b->sums, b->logits, b->ids, 1, b->rows, b->m->V);
}

static void head_backward(struct bench *b)
{
    const struct linear_shape shape = linear_dense(b->rows, b->m->D, b->m->V);
    b->ops->linear_backward_data(b->s, b->t, b->x[1], b->logits, b->w, &shape, false);
    b->ops->linear_backward_weights(b->s, b->t, b->dw, NULL, b->x[0], b->logits, &shape, true);
    b->work = 4.0 * (double)(b->rows * b->m->D * b->m->V);
}

static struct attention_shape attention_of(const struct bench *b)
{
    const struct model *m = b->m;
    int64_t width = qkv_width(m);
    return (struct attention_shape){.B = m->B,
                                    .T_q = m->T,
                                    .T_k = m->T,
                                    .heads = m->H,
                                    .kv_heads = m->kv_heads,
                                    .hd = m->D / m->H,
                                    .q_stride = width,
                                    .k_stride = width,
                                    .v_stride = width,
                                    .causal = true,
                                    .scale = 0.125f};
}

static char *column(const struct bench *b, void *x, int64_t i)
{
    return (char *)x + (size_t)i * dtype_bytes(b->t);
}

static void attention_forward(struct bench *b)
{
    const struct attention_shape shape = attention_of(b);
    int64_t k = b->m->D, v = k + b->m->kv_heads * shape.hd;
    b->ops->attention_forward(b->s, b->t, b->x[1], b->saved, b->x[0], column(b, b->x[0], k),
                              column(b, b->x[0], v), &shape);
    b->work = 2.0 * (double)(b->rows * b->m->T * b->m->D); /* two products, half of each masked */
}

static void attention_backward(struct bench *b)
{
    const struct attention_shape shape = attention_of(b);
    int64_t k = b->m->D, v = k + b->m->kv_heads * shape.hd;
    b->ops->attention_backward(b->s, b->t, b->x[2], column(b, b->x[2], k), column(b, b->x[2], v),
                               NULL, b->x[1], b->x[1], b->saved, b->x[0], column(b, b->x[0], k),
                               column(b, b->x[0], v), &shape);
    b->work = 5.0 * (double)(b->rows * b->m->T * b->m->D);
}

static void norm_forward(struct bench *b)
{
    if (b->m->gpt2)
        b->ops->layer_norm_forward(b->s, b->t, b->x[1], b->saved, b->x[0], b->w, b->w, b->rows,
                                   b->m->D, 1e-5f);
    else
        b->ops->rms_norm_forward(b->s, b->t, b->x[1], b->saved, b->x[0], b->w, b->rows, b->m->D,
                                 1e-5f);
}

static void norm_backward(struct bench *b)
{
    if (b->m->gpt2)
        b->ops->layer_norm_backward(b->s, b->t, b->x[1], b->dw, b->dw + b->m->D, b->x[1], b->x[0],
                                    b->w, b->saved, b->rows, b->m->D, true);
    else
        b->ops->rms_norm_backward(b->s, b->t, b->x[1], b->dw, b->x[1], b->x[0], b->w, b->saved,
                                  b->rows, b->m->D, true);
}

static void activation_forward(struct bench *b)
{
    if (b->m->gpt2)
        b->ops->gelu_forward(b->s, b->t, b->x[1], b->x[0], b->rows * b->m->I, true);
    else
        b->ops->swiglu_forward(b->s, b->t, b->x[1], b->x[0], b->rows, b->m->I);
}

static void activation_backward(struct bench *b)
{
    if (b->m->gpt2)
        b->ops->gelu_backward(b->s, b->t, b->x[2], b->x[1], b->x[0], b->rows * b->m->I, true);
    else
        b->ops->swiglu_backward(b->s, b->t, b->x[2], b->x[1], b->x[0], b->rows, b->m->I);
}

static void gelu_exact(struct bench *b)
{
    b->ops->gelu_forward(b->s, b->t, b->x[1], b->x[0], b->rows * b->m->I, false);
    b->ops->gelu_backward(b->s, b->t, b->x[2], b->x[1], b->x[0], b->rows * b->m->I, false);
}

static void rope(struct bench *b)
{
    b->ops->rope(b->s, b->t, b->x[0], b->dw, b->dw, b->m->B, b->m->T, b->m->H + b->m->kv_heads,
                 b->m->D / b->m->H, qkv_width(b->m), false);
}

static void residual(struct bench *b)
{
    b->ops->add(b->s, b->t, b->x[0], b->x[1], b->rows * b->m->D);
}

static void dropout(struct bench *b)
{
    b->ops->dropout(b->s, b->t, b->x[1], b->x[0], b->rows, b->m->D, 0.1f, 1, 0, 1);
}

static void embedding_forward(struct bench *b)
{
    b->ops->embedding_forward(b->s, b->t, b->x[0], b->w, b->ids, b->rows, b->m->V, b->m->D);
}

static void embedding_backward(struct bench *b)
{
    b->ops->embedding_backward(b->s, b->t, b->dw, b->x[0], b->ids, b->rows, b->m->V, b->m->D, true);
}

static void sum_of_squares(struct bench *b)
{
    b->ops->sum_of_squares(b->s, b->sums, b->state[1], b->m->parameters);
}

static void clip(struct bench *b)
{
    b->ops->clip(b->s, b->state[1], b->sums, 1e-3f, b->m->parameters);
}

static void cast(struct bench *b)
{
    b->ops->cast(b->s, DTYPE_BF16, b->state[0], DTYPE_F32, b->state[1], b->m->parameters);
}

static void adam(struct bench *b)
{
    const struct adam_step step = {
        .lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .step = 1};
    b->ops->adam(b->s, b->t, b->state[0], b->state[1], b->state[2], b->state[3], b->m->parameters,
                 &step, 0, 0);
}

static void normal(struct bench *b)
{
    b->ops->normal(b->s, b->state[1], b->m->parameters, 1, 0, 0, 0.02f);
}

static const struct {
    const char *name;
    void (*run)(struct bench *b);
    int per_layer, per_step; /* times */
} rows[] = {
    {"embedding forward", embedding_forward, 0, 1},
    {"norm forward", norm_forward, 2, 1},
    {"qkv, forward and back", qkv, 1, 0},
    {"rope (Llama)", rope, 2, 0},
    {"attention forward", attention_forward, 1, 0},
    {"attention backward", attention_backward, 1, 0},
    {"output, forward and back", output, 1, 0},
    {"residual", residual, 4, 0},
    {"mlp up, forward and back", mlp_up, 1, 0},
    {"activation forward", activation_forward, 1, 0},
    {"activation backward", activation_backward, 1, 0},
    {"mlp down, forward and back", mlp_down, 1, 0},
    {"norm backward", norm_backward, 2, 1},
    {"head forward", head_forward, 0, 1},
    {"cross_entropy", cross_entropy, 0, 1},
    {"head backward", head_backward, 0, 1},
    {"embedding backward", embedding_backward, 0, 1},
    {"sum of squares", sum_of_squares, 0, 1},
    {"clip", clip, 0, 1},
    {"adam", adam, 0, 1},
    {"cast to bf16", cast, 0, 0},
    {"dropout", dropout, 0, 0},
    {"gelu by erf, both ways", gelu_exact, 0, 0},
    {"normal, all parameters", normal, 0, 0},
};

static int64_t best_of(struct bench *b, void (*run)(struct bench *b))
{
    int64_t best_us = INT64_MAX;
    struct error err;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_us = clock_monotonic_us();
        b->work = 0;
        run(b);
        if (stream_sync(b->s, &err) < 0) {
            fprintf(stderr, "language_bench: %s\n", err.msg);
            exit(1);
        }
        int64_t us = clock_monotonic_us() - start_us;
        best_us = us < best_us ? us : best_us;
    }
    return best_us;
}

static void measure(struct bench *b)
{
    double step_ms = 0;
    printf("%s, %s, batch %lld of %lld tokens\n", b->m->name, dtype_name(b->t), (long long)b->m->B,
           (long long)b->m->T);
    for (size_t i = 0; i < array_length(rows); i++) {
        double ms = (double)best_of(b, rows[i].run) / 1e3;
        int64_t times = rows[i].per_layer * b->m->L + rows[i].per_step;
        printf("  %-28s %9.3f ms x %2lld", rows[i].name, ms, (long long)times);
        if (b->work > 0)
            printf(" %8.0f GFLOP/s", b->work / ms / 1e6);
        printf("\n");
        step_ms += (double)times * ms;
    }
    printf("  %-28s %9.3f ms = %.0f tokens/s\n", "a training step", step_ms,
           (double)b->rows / step_ms * 1e3);
}

static void *room(struct bench *b, int64_t elements)
{
    void *memory;
    struct error err;
    if (device_alloc(b->device, MEMORY_ACTIVATION, (size_t)elements * sizeof(float), "bench",
                     &memory, &err) < 0) {
        fprintf(stderr, "language_bench: %s\n", err.msg);
        exit(1);
    }
    b->ops->uniform(b->s, memory, elements, 1, 0, 0.01f, 0.02f);
    return memory;
}

/* Gives what is of dtype b->t values of an ordinary size: others may be denormal, which is slow. */
static void refill(struct bench *b, int64_t x_count)
{
    void *typed[] = {b->x[0], b->x[1], b->x[2], b->w, b->state[0], b->state[2], b->state[3]};
    b->ops->uniform(b->s, b->logits, b->rows * b->m->V, 2, 0, 0.01f, 0.02f);
    for (size_t i = 0; i < array_length(typed); i++)
        b->ops->cast(b->s, b->t, typed[i], DTYPE_F32, b->logits,
                     i < 3    ? x_count
                     : i == 3 ? b->m->V * b->m->D
                              : b->m->parameters);
}

static void run(struct bench *b)
{
    const struct model *m = b->m;
    int64_t widest = 2 * m->I > 3 * m->D ? 2 * m->I : 3 * m->D;
    b->rows = m->B * m->T;
    for (size_t i = 0; i < array_length(b->x); i++)
        b->x[i] = room(b, b->rows * widest);
    for (size_t i = 0; i < array_length(b->state); i++)
        b->state[i] = room(b, m->parameters > b->rows * m->V ? m->parameters : b->rows * m->V);
    b->w = room(b, m->V * m->D);
    b->dw = room(b, m->V * m->D);
    b->saved = room(b, b->rows * m->H * 2);
    b->logits = room(b, m->parameters > b->rows * m->V ? m->parameters : b->rows * m->V);
    b->sums = xcalloc(3, sizeof *b->sums);
    b->ids = xcalloc((size_t)b->rows, sizeof *b->ids);
    for (int64_t i = 0; i < b->rows; i++)
        b->ids[i] = (int32_t)(i * 7919 % m->V);
    for (b->t = DTYPE_F32; b->t <= DTYPE_BF16; b->t++) {
        refill(b, b->rows * widest);
        measure(b);
    }
    void *all[] = {b->x[0],     b->x[1], b->x[2], b->state[0], b->state[1], b->state[2],
                   b->state[3], b->w,    b->dw,   b->saved,    b->logits};
    for (size_t i = 0; i < array_length(all); i++)
        device_free(b->device, all[i]);
    free(b->sums);
    free(b->ids);
}

int main(int argc, char **argv)
{
    int64_t threads = 1;
    if ((argc > 1 && !str_to_i64(argv[1], 1, 64, &threads)) || argc > 2) {
        fprintf(stderr, "usage: language_bench [THREADS]\n");
        return 2;
    }
    struct error err;
    for (size_t i = 0; i < array_length(models); i++) {
        struct bench b = {.m = &models[i]};
        if (device_open("cpu", (int)threads, &b.device, &err) < 0 ||
            stream_open(b.device, "bench", &b.s, &err) < 0) {
            fprintf(stderr, "language_bench: %s\n", err.msg);
            return 1;
        }
        b.ops = device_ops(b.device);
        run(&b);
        stream_close(b.s);
        device_close(b.device);
    }
    return 0;
}
