#include "agent/plan/time_step_internal.h"

/* The efficiencies of passes over memory are [fitted] to what SASS and occupancy say of each
 * kernel: 16-byte accesses and full occupancy make 0.9 to 0.95 of what the device sustains; norms'
 * backward at half occupancy 0.8; sums of bf16 columns, 64 bytes a warp, 0.6. */

void time_add(struct time_walk *w, enum time_kind kind, double seconds, int64_t count,
              int64_t launches)
{
    w->step->s[kind] += seconds * (double)count;
    w->step->launches += count * launches;
}

/* Each further launch of a pass takes 2 us: [guess] small kernels that end in one wave. */
void time_pass_of(struct time_walk *w, enum time_kind kind, double bytes, int64_t count,
                  int64_t launches, double efficiency)
{
    double t = time_of_pass(w->device, bytes, efficiency);
    t += launches > 1 ? (double)(launches - 1) * 2e-6 : 0;
    time_add(w, kind, t, count, launches);
}

void time_pass(struct time_walk *w, double bytes, int64_t count, int64_t launches,
               double efficiency)
{
    time_pass_of(w, TIME_PASSES, bytes * w->ways->passes, count, launches, efficiency);
}

/* What fp8 costs beside a product (agent/nn/nn_fp8.c), of bf16: forward, values and the weight are
 * read for their scales, then cast; backward, so is dy, twice written, and both are cast again. The
 * weights' product counts the values, the values' one the rest. A weight that is gathered in fp8 is
 * read and written once, for the values' product. */
static void add_casts(struct time_walk *w, enum time_linear kind, int64_t rows, int64_t out,
                      int64_t in, int64_t count)
{
    const double scan = 2, cast = 3, both = 4, transpose = 2;
    /* bytes of an element; both: two are written */
    const bool gathered = w->ways->fp8_gathers;
    double x = (double)(rows * in), y = (double)(rows * out), weight = (double)(in * out);
    double bytes = kind == TIME_LINEAR_FORWARD ? (scan + cast) * (gathered ? x : x + weight)
                   : kind == TIME_LINEAR_WEIGHTS
                       ? cast * x
                       : (scan + both) * y + (gathered ? transpose : cast) * weight;
    int64_t launches = kind == TIME_LINEAR_FORWARD   ? (gathered ? 3 : 6)
                       : kind == TIME_LINEAR_WEIGHTS ? 1
                                                     : 4;
    time_pass_of(w, TIME_PASSES, bytes, count, launches, 0.9);
}

/* What a linear layer of `out` by `in` does for rows; TIME_LINEAR_DATA: the input's gradient. */
void time_linear(struct time_walk *w, enum time_linear kind, int64_t rows, int64_t out, int64_t in,
                 int64_t count)
{
    struct time_product p = {.M = rows,
                             .N = out,
                             .K = in,
                             .value_bytes = w->shape->value_bytes,
                             .out_bytes = w->shape->value_bytes,
                             .speed = w->ways->products};
    if (kind == TIME_LINEAR_WEIGHTS)
        p.M = out, p.N = in, p.K = rows, p.out_bytes = w->ways->gradient_bytes, p.adds = w->adds;
    else if (kind != TIME_LINEAR_FORWARD)
        p.N = in, p.K = out, p.adds = kind == TIME_LINEAR_DATA_ADDS;
    time_add(w, TIME_PRODUCTS, time_of_product(w->device, &p), count, 1);
    if (w->ways->fp8_casts)
        add_casts(w, kind, rows, out, in, count);
}

/* ---- one block ---- */

static bool has_matrix_units(const struct time_shape *s)
{
    return s->value_bytes == 2 && (s->hd == 64 || s->hd == 128);
}

/* Of a block's own tokens, or of them over the encoder's. */
static void attention(struct time_walk *w, const struct time_block *b, bool is_cross, bool backward)
{
    const struct time_shape *s = w->shape;
    const struct time_attention_call call = {
        .rows = s->rows,
        .heads = s->heads,
        .hd = s->hd,
        .queries = b->T,
        .keys = is_cross ? b->source_T : b->T,
        .causal = b->causal && !is_cross,
        .backward = backward,
        .kernel = !has_matrix_units(s)             ? TIME_ATTENTION_GENERAL
                  : s->dropout || s->distance_bias ? TIME_ATTENTION_EXTRAS
                                                   : TIME_ATTENTION_MATRIX,
    };
    /* cuDNN knows neither */
    const struct time_attention *rates = call.kernel == TIME_ATTENTION_EXTRAS ? &w->device->ours
                                         : backward ? &w->ways->backward_of
                                                    : &w->ways->forward_of;
    bool has_bias = s->distance_bias && !is_cross; /* rows of it; and its gradient */
    time_add(w, backward ? TIME_ATTENTION_BACKWARD : TIME_ATTENTION_FORWARD,
             time_of_attention(w->device, rates, &call), 1,
             (backward ? 2 : 1) * (has_bias ? 2 : 1));
}

static void dropout(struct time_walk *w, double R, int64_t width)
{
    if (w->shape->dropout)
        time_pass(w, R * (double)width * w->shape->value_bytes * 2, 1, 1, 0.9);
}

static void project_forward(struct time_walk *w, int64_t R)
{
    const struct time_shape *s = w->shape;
    int64_t q = s->heads * s->hd, kv = s->kv_heads * s->hd, v = s->value_bytes;
    if (w->ways->packed || s->packed_qkv) {
        time_linear(w, TIME_LINEAR_FORWARD, R, q + 2 * kv, s->D, 1);
    } else {
        time_linear(w, TIME_LINEAR_FORWARD, R, q, s->D, 1);
        time_linear(w, TIME_LINEAR_FORWARD, R, kv, s->D, 2);
    }
    if (s->rope && !w->ways->fused_rope)
        time_pass(w, (double)(R * (q + kv) * v * 2), 1, 1, 0.88);
}

static void cross_forward(struct time_walk *w, const struct time_block *b)
{
    const struct time_shape *s = w->shape;
    int64_t R = s->rows * b->T, q = s->heads * s->hd, source = s->rows * b->source_T;
    time_linear(w, TIME_LINEAR_FORWARD, R, q, s->D, 1);
    int64_t kv = s->kv_heads * s->hd, products = w->ways->packed ? 1 : 2;
    time_linear(w, TIME_LINEAR_FORWARD, source, 2 * kv / products, s->D, products);
    attention(w, b, true, false);
    time_linear(w, TIME_LINEAR_FORWARD, R, s->D, q, 1);
    dropout(w, (double)R, s->D);
    time_pass(w, (double)(R * s->D * s->value_bytes * 4), 1, 1, 0.9);
}

/* All but the sum at the block's end. */
static void run_forward(struct time_walk *w, const struct time_block *b)
{
    const struct time_shape *s = w->shape;
    int64_t R = s->rows * b->T, v = s->value_bytes, q = s->heads * s->hd;
    double wide = (double)(R * s->D * v), middle = (double)(R * s->I * v);
    if (!s->post_norm)
        time_pass(w, wide * 2, 1, 1, 0.9); /* norm */
    project_forward(w, R);
    attention(w, b, false, false);
    time_linear(w, TIME_LINEAR_FORWARD, R, s->D, q, 1);
    dropout(w, (double)R, s->D);
    time_pass(w, wide * 4, 1, 1, 0.9); /* residual and norm */
    if (b->source_T > 0)
        cross_forward(w, b);
    if (s->gated && w->ways->packed)
        time_linear(w, TIME_LINEAR_FORWARD, R, 2 * s->I, s->D, 1);
    else
        time_linear(w, TIME_LINEAR_FORWARD, R, s->I, s->D, s->gated ? 2 : 1);
    if (w->ways->fused_activation) /* backward's input is written all the same */
        time_pass(w, middle, 1, 0, 0.95);
    else
        time_pass(w, middle * (s->gated ? 3 : 2), 1, 1, 0.95);
    if (s->distance_bias) /* T5 drops in the middle, too */
        dropout(w, (double)R, s->I);
    time_linear(w, TIME_LINEAR_FORWARD, R, s->D, s->I, 1);
    dropout(w, (double)R, s->D);
    if (s->post_norm)
        time_pass(w, wide * 4, 1, 1, 0.9);
}

static double residual_bytes(const struct time_walk *w, const struct time_block *b)
{
    return (double)(w->shape->rows * b->T * w->shape->D * w->shape->value_bytes);
}

void time_block_forward(struct time_walk *w, const struct time_block *b)
{
    run_forward(w, b);
    if (w->shape->post_norm)
        return;
    if (w->ways->fused_residual) /* the next norm reads the addend, too, and writes the sum */
        time_pass(w, residual_bytes(w, b) * 2, 1, 0, 0.9);
    else
        time_pass(w, residual_bytes(w, b) * 3, 1, 1, 0.9);
}

/* [rows, out] = [rows, in] W: both gradients, and that of a bias. */
static void linear_backward(struct time_walk *w, int64_t R, int64_t out, int64_t in, bool adds)
{
    time_linear(w, TIME_LINEAR_WEIGHTS, R, out, in, 1);
    time_linear(w, adds ? TIME_LINEAR_DATA_ADDS : TIME_LINEAR_DATA, R, out, in, 1);
    if (w->shape->biases && (!w->ways->fused_bias || w->adds)) /* which no epilogue does */
        time_pass(w, (double)(R * out * w->shape->value_bytes), 1, 1, 0.6);
}

static void project_backward(struct time_walk *w, int64_t R)
{
    const struct time_shape *s = w->shape;
    int64_t q = s->heads * s->hd, kv = s->kv_heads * s->hd;
    if (s->rope && !w->ways->fused_rope)
        time_pass(w, (double)(R * (q + kv) * s->value_bytes * 2), 1, 1, 0.88);
    if (w->ways->packed || s->packed_qkv) {
        linear_backward(w, R, q + 2 * kv, s->D, false);
        return;
    }
    linear_backward(w, R, kv, s->D, false);
    linear_backward(w, R, kv, s->D, true);
    linear_backward(w, R, q, s->D, true);
}

/* Partial sums of the weights' gradients, of so many blocks of threads. */
void time_norm_backward(struct time_walk *w, int64_t R, int passes)
{
    enum { BLOCKS = 528 };
    int64_t D = w->shape->D, sums = w->shape->biases ? 2 : 1;
    double bytes = (double)(R * D * w->shape->value_bytes * passes);
    time_pass(w, bytes + 2.0 * BLOCKS * (double)(sums * D) * sizeof(float), 1, 1 + (int)sums, 0.8);
}

static void cross_backward(struct time_walk *w, const struct time_block *b)
{
    const struct time_shape *s = w->shape;
    int64_t R = s->rows * b->T, q = s->heads * s->hd, source = s->rows * b->source_T;
    double wide = (double)(R * s->D * s->value_bytes);
    if (!w->ways->fused_residual)
        time_pass(w, wide * 2, 1, 1, 0.9); /* a copy */
    time_norm_backward(w, R, 4);
    linear_backward(w, R, s->D, q, false);
    time_pass(w, wide * 3, 2, 1, 0.9); /* sums of gradients that two layers give */
    attention(w, b, true, true);
    int64_t kv = s->kv_heads * s->hd, products = w->ways->packed ? 1 : 2;
    for (int64_t i = 0; i < products; i++)
        linear_backward(w, source, 2 * kv / products, s->D, true);
    linear_backward(w, R, q, s->D, false);
    dropout(w, (double)R, s->D);
}

void time_block_backward(struct time_walk *w, const struct time_block *b)
{
    const struct time_shape *s = w->shape;
    int64_t R = s->rows * b->T, v = s->value_bytes, q = s->heads * s->hd;
    double wide = (double)(R * s->D * v), middle = (double)(R * s->I * v);
    if (!w->ways->fused_residual)
        time_pass(w, wide * 2, 2, 1, 0.9); /* copies */
    dropout(w, (double)R, s->D);
    linear_backward(w, R, s->D, s->I, false);
    if (s->distance_bias)
        dropout(w, (double)R, s->I);
    if (w->ways->fused_activation_gradient) /* forward's input is read all the same */
        time_pass(w, middle, 1, 0, 0.92);
    else
        time_pass(w, middle * (s->gated ? 5 : 3), 1, 1, 0.92);
    if (s->gated && w->ways->packed) {
        linear_backward(w, R, 2 * s->I, s->D, false);
    } else {
        linear_backward(w, R, s->I, s->D, false);
        if (s->gated)
            linear_backward(w, R, s->I, s->D, true);
    }
    time_norm_backward(w, R, 4);
    if (b->source_T > 0)
        cross_backward(w, b);
    dropout(w, (double)R, s->D);
    linear_backward(w, R, s->D, q, false);
    attention(w, b, false, true);
    project_backward(w, R);
    time_norm_backward(w, R, 4);
}

/* What backward makes again: all, or what takes no product: norms and the activation. */
void time_block_again(struct time_walk *w, const struct time_block *b)
{
    const struct time_shape *s = w->shape;
    double R = (double)(s->rows * b->T * s->value_bytes);
    if (w->ways->checkpointing == TAPE_CHECKPOINTING_FULL) {
        /* its input is whole already, and nobody reads its sum again */
        if (w->ways->fused_residual)
            run_forward(w, b);
        else
            time_block_forward(w, b);
        return;
    }
    if (w->ways->checkpointing == TAPE_CHECKPOINTING_SELECTIVE) {
        time_pass(w, R * (double)s->D * 2, 2, 1, 0.9);
        time_pass(w, R * (double)s->I * (s->gated ? 3 : 2), 1, 1, 0.95);
    }
    if (w->ways->recomputed_products > 0) {
        struct time_step forward = {0};
        struct time_walk once = {w->device, s, w->ways, &forward, false};
        time_block_forward(&once, b);
        time_add(w, TIME_PRODUCTS, forward.s[TIME_PRODUCTS] * w->ways->recomputed_products, 1, 0);
        time_add(w, TIME_PASSES, forward.s[TIME_PASSES], 1, forward.launches);
    }
}
