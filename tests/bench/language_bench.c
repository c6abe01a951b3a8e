/* Milliseconds of each op at the sizes of language models, and how many multiplications and
 * additions, or bytes, a second that is: `make bench-ops`, `make bench-gpu`.
 *   language_bench [DEVICE [THREADS [TFLOPS GBYTES]]]
 * Every row is the best of several rounds; the last line of a table adds them up, weighted by how
 * often a training step runs them. With what the device can do at most in a second: how near the
 * rows come to it. */
#include "agent/nn/nn_loss.h"
#include "base/mem.h"
#include "tests/bench/head.h"

#include <stdio.h>
#include <stdlib.h>

struct model {
    const char *name;
    bool gpt2; /* else Llama's ops */
    int64_t B, T, D, H, kv_heads, I, V, L;
    int64_t parameters;
    bool on_gpu; /* else on the CPU, and in fp32, too */
};

static const struct model models[] = {
    {"Llama, 25 M parameters", false, 4, 512, 384, 6, 6, 1024, 32000, 8, 38744448, false},
    {"GPT-2, 124 M parameters", true, 1, 1024, 768, 12, 12, 3072, 50257, 12, 124439808, false},
    {"GPT-2, 124 M parameters", true, 8, 1024, 768, 12, 12, 3072, 50257, 12, 124439808, true},
    {"Llama 3.2, 1 B parameters", false, 1, 8192, 2048, 32, 8, 8192, 128256, 16, 1235814400, true},
};

struct bench {
    struct timing timing;
    struct stream *s; /* the timing's */
    const struct ops *ops;
    const struct model *m;
    enum dtype t;
    int64_t rows;      /* B * T */
    void *x[3];        /* activations: each as large as the largest but the logits */
    void *w;           /* as large as the largest weight */
    float *dw, *saved; /* gradients of w; what forward leaves */
    void *logits;      /* [rows, logit_stride()] */
    void *state[4];    /* of `parameters` elements: w, g, m, v */
    double *sums;
    int32_t *ids;
    struct work work; /* of the row that ran */
    double predicted_ms;
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

/* So many elements of b's dtype, and of fp32, are read and written. */
static void moves(struct bench *b, int64_t typed, int64_t fp32)
{
    b->work.bytes = (double)typed * (double)dtype_bytes(b->t) + 4.0 * (double)fp32;
    b->predicted_ms = predicted_op_ms(b->timing.predicted, 0, b->work.bytes);
}

static void linear_step(struct bench *b, int64_t in, int64_t out)
{
    const struct linear_shape shape = layer(b, in, out);
    b->ops->linear_forward(b->s, b->t, b->t, b->x[1], b->x[0], b->w, NULL, false, &shape);
    b->ops->linear_backward_data(b->s, b->t, b->x[2], b->x[1], b->w, &shape, false);
    b->ops->linear_backward_weights(b->s, b->t, b->dw, NULL, b->x[0], b->x[1], &shape, true);
    b->work.flops = 6.0 * (double)(b->rows * in * out);
    b->predicted_ms = predicted_linear_ms(b->timing.predicted, b->t, &shape,
                                          PREDICT_FORWARD | PREDICT_DATA | PREDICT_WEIGHTS);
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

/* Rows of logits as far apart as in training. */
static int64_t logit_stride(const struct bench *b)
{
    return nn_logit_stride(b->m->V, device_is_host(b->timing.device));
}

static void head(struct bench *b, enum head_op first, enum head_op last)
{
    const struct head h = {.timing = &b->timing,
                           .t = b->t,
                           .rows = b->rows,
                           .D = b->m->D,
                           .V = b->m->V,
                           .stride = logit_stride(b),
                           .x = b->x[0],
                           .dx = b->x[1],
                           .w = b->w,
                           .logits = b->logits,
                           .dw = b->dw,
                           .sums = b->sums,
                           .ids = b->ids};
    for (enum head_op op = first; op <= last; op++) {
        const struct work work = head_work(&h, op);
        head_run(&h, op);
        b->work.flops += work.flops;
        b->work.bytes += work.bytes;
        b->predicted_ms += head_predicted_ms(&h, op);
    }
}

static void head_forward(struct bench *b)
{
    head(b, HEAD_FORWARD, HEAD_FORWARD);
}

static void cross_entropy(struct bench *b)
{
    head(b, HEAD_LOSS, HEAD_LOSS);
}

static void head_backward(struct bench *b)
{
    head(b, HEAD_DATA, HEAD_WEIGHTS);
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

static void predict_attention(struct bench *b, const struct attention_shape *shape, bool backward)
{
    const struct time_device *d = b->timing.predicted;
    if (b->t == DTYPE_BF16)
        b->predicted_ms = predicted_attention_ms(d, d ? &d->ours : NULL, shape, backward);
}

static void attention_forward(struct bench *b)
{
    const struct attention_shape shape = attention_of(b);
    int64_t k = b->m->D, v = k + b->m->kv_heads * shape.hd;
    b->ops->attention_forward(b->s, b->t, b->x[1], b->saved, b->x[0], column(b, b->x[0], k),
                              column(b, b->x[0], v), &shape);
    b->work.flops =
        2.0 * (double)(b->rows * b->m->T * b->m->D); /* two products, half of each masked */
    predict_attention(b, &shape, false);
}

static void attention_backward(struct bench *b)
{
    const struct attention_shape shape = attention_of(b);
    int64_t k = b->m->D, v = k + b->m->kv_heads * shape.hd;
    b->ops->attention_backward(b->s, b->t, b->x[2], column(b, b->x[2], k), column(b, b->x[2], v),
                               NULL, b->x[1], b->x[1], b->saved, b->x[0], column(b, b->x[0], k),
                               column(b, b->x[0], v), &shape);
    b->work.flops = 5.0 * (double)(b->rows * b->m->T * b->m->D);
    predict_attention(b, &shape, true);
}

/* residual: NULL, or what is added first. */
static void norm_of(struct bench *b, const void *residual)
{
    int64_t D = b->m->D;
    if (b->m->gpt2)
        b->ops->layer_norm_forward(b->s, b->t, b->x[1], b->saved, b->x[0], residual, b->w, b->w,
                                   b->rows, D, 1e-5f);
    else
        b->ops->rms_norm_forward(b->s, b->t, b->x[1], b->saved, b->x[0], residual, b->w, b->rows, D,
                                 1e-5f);
    moves(b, (residual ? 4 : 2) * b->rows * D, 0);
}

static void norm_forward(struct bench *b)
{
    norm_of(b, NULL);
}

static void norm_forward_of_sum(struct bench *b)
{
    norm_of(b, b->x[2]);
}

static void norm_gradient(struct bench *b, void *dx, bool add_dx)
{
    int64_t D = b->m->D;
    if (b->m->gpt2)
        b->ops->layer_norm_backward(b->s, b->t, dx, add_dx, b->dw, b->dw + D, b->x[1], b->x[0],
                                    b->w, b->saved, b->rows, D, true);
    else
        b->ops->rms_norm_backward(b->s, b->t, dx, add_dx, b->dw, b->x[1], b->x[0], b->w, b->saved,
                                  b->rows, D, true);
    moves(b, (add_dx ? 4 : 3) * b->rows * D, 0);
}

static void norm_backward(struct bench *b)
{
    norm_gradient(b, b->x[1], false);
}

static void norm_backward_added(struct bench *b)
{
    norm_gradient(b, b->x[2], true);
}

static void activation_forward(struct bench *b)
{
    if (b->m->gpt2)
        b->ops->gelu_forward(b->s, b->t, b->x[1], b->x[0], b->rows * b->m->I, true);
    else
        b->ops->swiglu_forward(b->s, b->t, b->x[1], b->x[0], b->rows, b->m->I);
    moves(b, (b->m->gpt2 ? 2 : 3) * b->rows * b->m->I, 0);
}

static void activation_backward(struct bench *b)
{
    if (b->m->gpt2)
        b->ops->gelu_backward(b->s, b->t, b->x[2], b->x[1], b->x[0], b->rows * b->m->I, true);
    else
        b->ops->swiglu_backward(b->s, b->t, b->x[2], b->x[1], b->x[0], b->rows, b->m->I);
    moves(b, (b->m->gpt2 ? 3 : 5) * b->rows * b->m->I, 0);
}

static void gelu_exact(struct bench *b)
{
    b->ops->gelu_forward(b->s, b->t, b->x[1], b->x[0], b->rows * b->m->I, false);
    b->ops->gelu_backward(b->s, b->t, b->x[2], b->x[1], b->x[0], b->rows * b->m->I, false);
    moves(b, 5 * b->rows * b->m->I, 0);
}

static void rope(struct bench *b)
{
    b->ops->rope(b->s, b->t, b->x[0], b->dw, b->dw, b->m->B, b->m->T, b->m->H + b->m->kv_heads,
                 b->m->D / b->m->H, qkv_width(b->m), false);
    moves(b, 2 * b->rows * (b->m->H + b->m->kv_heads) * (b->m->D / b->m->H), 0);
}

static void residual(struct bench *b)
{
    b->ops->add(b->s, b->t, b->x[0], b->t, b->x[1], b->rows * b->m->D);
    moves(b, 3 * b->rows * b->m->D, 0);
}

static void dropout(struct bench *b)
{
    b->ops->dropout(b->s, b->t, b->x[1], b->x[0], b->rows, b->m->D, 0.1f, 1, 0, 1);
    moves(b, 2 * b->rows * b->m->D, 0);
}

static void embedding_forward(struct bench *b)
{
    b->ops->embedding_forward(b->s, b->t, b->x[0], b->w, b->ids, b->rows, b->m->V, b->m->D);
    moves(b, 2 * b->rows * b->m->D, 0);
}

static void embedding_backward(struct bench *b)
{
    b->ops->embedding_backward(b->s, b->t, b->dw, b->x[0], b->ids, b->rows, b->m->V, b->m->D, true);
    moves(b, b->rows * b->m->D, 2 * b->rows * b->m->D);
}

static void sum_of_squares(struct bench *b)
{
    b->ops->sum_of_squares(b->s, b->sums, b->state[1], b->m->parameters);
    moves(b, 0, b->m->parameters);
}

static void cast(struct bench *b)
{
    b->ops->cast(b->s, DTYPE_BF16, b->state[0], DTYPE_F32, b->state[1], b->m->parameters);
    b->work.bytes = 6.0 * (double)b->m->parameters;
}

static void adam(struct bench *b)
{
    const struct adam_step step = {
        .lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .step = 1};
    b->ops->adam(b->s, b->t, b->state[0], b->state[1], b->state[2], b->state[3], b->m->parameters,
                 &step, &(struct update_extras){.sum_of_squares = b->sums, .max_norm = 1e-3f}, 0,
                 0);
    moves(b, 6 * b->m->parameters, b->m->parameters);
}

static void normal(struct bench *b)
{
    b->ops->normal(b->s, b->state[1], b->m->parameters, 1, 0, 0, 0.02f);
    moves(b, 0, b->m->parameters);
}

static const struct {
    const char *name;
    void (*run)(struct bench *b);
    int per_layer, per_step; /* times */
} rows[] = {
    {"embedding forward", embedding_forward, 0, 1},
    {"norm forward", norm_forward, 1, 1},
    {"norm forward of a sum", norm_forward_of_sum, 1, 0},
    {"qkv, forward and back", qkv, 1, 0},
    {"rope (Llama)", rope, 2, 0},
    {"attention forward", attention_forward, 1, 0},
    {"attention backward", attention_backward, 1, 0},
    {"output, forward and back", output, 1, 0},
    {"residual", residual, 1, 0},
    {"mlp up, forward and back", mlp_up, 1, 0},
    {"activation forward", activation_forward, 1, 0},
    {"activation backward", activation_backward, 1, 0},
    {"mlp down, forward and back", mlp_down, 1, 0},
    {"norm backward", norm_backward, 0, 1},
    {"norm backward, added", norm_backward_added, 2, 0},
    {"head forward", head_forward, 0, 1},
    {"cross_entropy", cross_entropy, 0, 1},
    {"head backward", head_backward, 0, 1},
    {"embedding backward", embedding_backward, 0, 1},
    {"sum of squares", sum_of_squares, 0, 1},
    {"adam, which clips", adam, 0, 1},
    {"cast to bf16", cast, 0, 0},
    {"dropout", dropout, 0, 0},
    {"gelu by erf, both ways", gelu_exact, 0, 0},
    {"normal, all parameters", normal, 0, 0},
};

struct row_run {
    struct bench *b;
    void (*run)(struct bench *b);
};

static void run_row(void *ctx)
{
    const struct row_run *row = ctx;
    row->b->work = (struct work){0, 0};
    row->b->predicted_ms = 0;
    row->run(row->b);
}

static void measure(struct bench *b)
{
    double step_ms = 0;
    printf("%s, %s, batch %lld of %lld tokens\n", b->m->name, dtype_name(b->t), (long long)b->m->B,
           (long long)b->m->T);
    for (size_t i = 0; i < array_length(rows); i++) {
        struct row_run row = {b, rows[i].run};
        double ms = timing_ms(&b->timing, run_row, &row);
        int64_t times = rows[i].per_layer * b->m->L + rows[i].per_step;
        printf("  %-28s %9.3f ms x %2lld", rows[i].name, ms, (long long)times);
        timing_print_rate(&b->timing, &b->work, ms, b->predicted_ms);
        printf("\n");
        step_ms += (double)times * ms;
    }
    printf("  %-28s %9.3f ms = %.0f tokens/s\n", "a training step", step_ms,
           (double)b->rows / step_ms * 1e3);
}

static void *room(struct bench *b, int64_t elements)
{
    void *memory = timing_room(&b->timing, (size_t)elements * sizeof(float));
    b->ops->uniform(b->s, memory, elements, 1, 0, 0.01f, 0.02f);
    return memory;
}

/* Gives what is of dtype b->t values of an ordinary size: others may be denormal, which is slow. */
static void refill(struct bench *b, int64_t x_count)
{
    void *typed[] = {b->x[0], b->x[1], b->x[2], b->w, b->state[0], b->state[2], b->state[3]};
    b->ops->uniform(b->s, b->logits, b->rows * logit_stride(b), 2, 0, 0.01f, 0.02f);
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
        b->state[i] = room(b, m->parameters);
    b->w = room(b, m->V * m->D);
    b->dw = room(b, m->V * m->D);
    b->saved = room(b, b->rows * m->H * 2);
    const int64_t logits = b->rows * logit_stride(b);
    b->logits = room(b, m->parameters > logits ? m->parameters : logits);
    const double sums[3] = {0};
    int32_t *ids = xcalloc((size_t)b->rows, sizeof *ids);
    for (int64_t i = 0; i < b->rows; i++)
        ids[i] = (int32_t)(i * 7919 % m->V);
    b->sums = timing_copy(&b->timing, sums, sizeof sums);
    b->ids = timing_copy(&b->timing, ids, (size_t)b->rows * sizeof *ids);
    free(ids);
    for (b->t = m->on_gpu ? DTYPE_BF16 : DTYPE_F32; b->t <= DTYPE_BF16; b->t++) {
        refill(b, b->rows * widest);
        measure(b);
    }
    void *all[] = {b->x[0], b->x[1], b->x[2],  b->state[0], b->state[1], b->state[2], b->state[3],
                   b->w,    b->dw,   b->saved, b->logits,   b->sums,     b->ids};
    for (size_t i = 0; i < array_length(all); i++)
        device_free(b->timing.device, all[i]);
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    timing_open(&b.timing, "language_bench", argc, argv);
    b.s = b.timing.s;
    b.ops = b.timing.ops;
    for (size_t i = 0; i < array_length(models); i++) {
        b.m = &models[i];
        if (b.m->on_gpu != device_is_host(b.timing.device))
            run(&b);
    }
    timing_close(&b.timing);
    return 0;
}
