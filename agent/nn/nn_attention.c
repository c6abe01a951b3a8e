#include "agent/nn/nn_attention.h"

#include "agent/nn/nn_internal.h"
#include "kernels/random.h"

#include <assert.h>
#include <math.h>

static int64_t packed_width(const struct nn_heads *h)
{
    return (h->heads + 2 * h->kv_heads) * h->hd;
}

/* ---- rope ---- */

struct rope_args {
    struct nn_heads heads;
    const float *cos, *sin;
};

/* Key heads lie right behind the query heads: one call rotates both. */
static void rope_queue(struct tape *tape, const struct rope_args *a, struct tensor *qkv, void *x,
                       bool inverse)
{
    nn_ops(tape)->rope(tape_stream(tape), qkv->dtype, x, a->cos, a->sin, qkv->shape[0],
                       qkv->shape[1], a->heads.heads + a->heads.kv_heads, a->heads.hd,
                       qkv->shape[2], inverse);
}

/* A rotation's inverse is its transpose: the gradient rotates by the angle backwards. */
static void rope_backward(struct tape *tape, struct tape_op *op)
{
    struct rope_args a;
    NN_GET_ARGS(op, a);
    void *gradient = tape_own_gradient(tape, op->output);
    if (gradient)
        rope_queue(tape, &a, op->output, gradient, true);
}

/* The tensor is the op's output only: its gradient rotates back in place. */
struct tensor *nn_rope(struct tape *tape, struct tensor *qkv, const struct nn_heads *heads,
                       const float *cos, const float *sin)
{
    if (tape_failed(tape)) {
        tape_release(tape, qkv);
        return NULL;
    }
    assert(qkv->dims == 3 && qkv->shape[2] == packed_width(heads) && qkv->readers == 1);
    struct rope_args a = {*heads, cos, sin};
    rope_queue(tape, &a, qkv, qkv->data, false);
    struct tape_op op = {.backward = rope_backward, .output = qkv};
    NN_SET_ARGS(op, a);
    tape_record(tape, &op);
    return qkv;
}

/* ---- attention ---- */

struct nn_attention_how nn_attention_causal(const struct nn_heads *heads)
{
    return (struct nn_attention_how){.scale = 1.0f / sqrtf((float)heads->hd), .causal = true};
}

enum { QUERIES, KEYS_AND_VALUES, ATTENTION_BIAS }; /* inputs; packed: the first has all three */

/* Where the op finds, in data or gradients, what it multiplies. */
struct qkv {
    void *q, *k, *v;
};

static struct qkv qkv_of(const struct tape_op *op, const struct attention_shape *s, void *first,
                         void *second)
{
    const struct tensor *x = op->inputs[QUERIES];
    bool packed = !op->inputs[KEYS_AND_VALUES];
    int64_t k = packed ? s->heads * s->hd : 0, v = k + s->kv_heads * s->hd;
    void *kv = packed ? first : second;
    return (struct qkv){first, nn_at(kv, x->dtype, k), nn_at(kv, x->dtype, v)};
}

static struct qkv values_of(const struct tape_op *op, const struct attention_shape *s)
{
    const struct tensor *kv = op->inputs[KEYS_AND_VALUES];
    return qkv_of(op, s, op->inputs[QUERIES]->data, kv ? kv->data : NULL);
}

/* The bias's gradient is summed in fp32 whatever its dtype is. */
static float *dbias_alloc(struct tape *tape, struct tensor *bias)
{
    if (!bias || bias->dtype == DTYPE_F32)
        return bias ? tape_gradient(tape, bias) : NULL;
    return tape_alloc(tape, (size_t)bias->count * sizeof(float), "gradient of the position bias");
}

static void dbias_accumulate(struct tape *tape, struct tensor *bias, float *dbias)
{
    if (!bias)
        return;
    void *gradient = dbias;
    if (bias->dtype != DTYPE_F32) {
        gradient = tape_gradient(tape, bias);
        if (gradient)
            nn_ops(tape)->cast(tape_stream(tape), bias->dtype, gradient, DTYPE_F32, dbias,
                               bias->count);
        device_free(stream_device(tape_stream(tape)), dbias);
    }
    tape_accumulate_gradient(tape, bias, gradient);
}

static void attention_backward(struct tape *tape, struct tape_op *op)
{
    struct attention_shape s;
    NN_GET_ARGS(op, s);
    struct tensor *x = op->inputs[QUERIES], *kv = op->inputs[KEYS_AND_VALUES];
    struct tensor *bias = op->inputs[ATTENTION_BIAS], *y = op->output;
    s.bias = bias ? bias->data : NULL;
    void *dx = tape_gradient(tape, x), *dkv = kv ? tape_gradient(tape, kv) : NULL;
    float *dbias = dbias_alloc(tape, bias);
    if (!tape_failed(tape)) {
        struct qkv in = values_of(op, &s), d = qkv_of(op, &s, dx, dkv);
        /* The probabilities are computed again from q, k and op->memory, the rows' log-sum-exp: T x
         * T are never kept (FlashAttention). */
        nn_ops(tape)->attention_backward(tape_stream(tape), x->dtype, d.q, d.k, d.v, dbias,
                                         y->gradient, y->data, op->memory, in.q, in.k, in.v, &s);
    }
    tape_accumulate_gradient(tape, x, dx);
    if (kv)
        tape_accumulate_gradient(tape, kv, dkv);
    dbias_accumulate(tape, bias, dbias);
}

/* Everything but the bias's address, which may be another one in backward. */
static struct attention_shape shape_of(const struct tape *tape, const struct tensor *x,
                                       const struct tensor *kv, const struct nn_heads *heads,
                                       const struct nn_attention_how *how)
{
    const struct tape_pass *pass = tape_current(tape);
    int64_t stride = x->shape[2], kv_stride = kv ? kv->shape[2] : stride;
    return (struct attention_shape){
        .B = x->shape[0],
        .T_q = x->shape[1],
        .T_k = kv ? kv->shape[1] : x->shape[1],
        .heads = heads->heads,
        .kv_heads = heads->kv_heads,
        .hd = heads->hd,
        .q_stride = stride,
        .k_stride = kv_stride,
        .v_stride = kv_stride,
        .causal = how->causal,
        .scale = how->scale,
        .dropout = pass->training ? how->dropout : 0,
        .key = random_key(pass->seed, pass->step, how->layer, 0),
        .first_row = pass->first_row,
        .row_stride = pass->row_stride,
        .nondeterministic = pass->nondeterministic,
        .key_counts = how->key_counts,
    };
}

/* Consumes the op's inputs; kv and bias may be NULL. */
static struct tensor *attend(struct tape *tape, struct tape_op *op, const struct nn_heads *heads,
                             const struct nn_attention_how *how)
{
    const struct tensor *x = op->inputs[QUERIES], *bias = op->inputs[ATTENTION_BIAS];
    struct attention_shape s = shape_of(tape, x, op->inputs[KEYS_AND_VALUES], heads, how);
    assert(!bias || bias->count == (s.T_q + s.T_k - 1) * s.heads);
    op->output = tape_tensor(tape, 3, (int64_t[]){s.B, s.T_q, s.heads * s.hd}, "attention output");
    op->memory =
        /* One log-sum-exp a query: backward makes the probabilities again from it, instead of T x T
         * of them being kept. */
        tape_alloc(tape, (size_t)(s.B * s.heads * s.T_q) * sizeof(float), "attention statistics");
    NN_SET_ARGS(*op, s);
    s.bias = bias ? bias->data : NULL;
    if (op->memory) {
        struct qkv in = values_of(op, &s);
        nn_ops(tape)->attention_forward(tape_stream(tape), x->dtype, op->output->data, op->memory,
                                        in.q, in.k, in.v, &s);
    }
    tape_record(tape, op);
    return op->output;
}

struct tensor *nn_attention(struct tape *tape, struct tensor *qkv, struct tensor *bias,
                            const struct nn_heads *heads, const struct nn_attention_how *how)
{
    if (tape_failed(tape)) {
        tape_release(tape, qkv);
        tape_release(tape, bias);
        return NULL;
    }
    assert(qkv->dims == 3 && qkv->shape[2] == packed_width(heads));
    struct tape_op op = {.backward = attention_backward,
                         .inputs = {[QUERIES] = qkv, [ATTENTION_BIAS] = bias},
                         .reads_inputs = true,
                         .reads_output = true};
    return attend(tape, &op, heads, how);
}

struct tensor *nn_cross_attention(struct tape *tape, struct tensor *q, struct tensor *kv,
                                  const struct nn_heads *heads, const struct nn_attention_how *how)
{
    if (tape_failed(tape)) {
        tape_release(tape, q);
        tape_release(tape, kv);
        return NULL;
    }
    assert(q->dims == 3 && q->shape[2] == heads->heads * heads->hd);
    assert(kv->dims == 3 && kv->shape[2] == 2 * heads->kv_heads * heads->hd && !how->causal);
    struct tape_op op = {.backward = attention_backward,
                         .inputs = {[QUERIES] = q, [KEYS_AND_VALUES] = kv},
                         .reads_inputs = true,
                         .reads_output = true};
    return attend(tape, &op, heads, how);
}
