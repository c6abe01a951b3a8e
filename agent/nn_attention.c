#include "agent/nn_attention.h"

#include "agent/nn_parts.h"

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

/* Key heads lie right behind the query heads: one call turns both. */
static void rope_queue(struct tape *tape, const struct rope_args *a, struct tensor *qkv, void *x,
                       bool inverse)
{
    nn_ops(tape)->rope(tape_stream(tape), qkv->dtype, x, a->cos, a->sin, qkv->shape[0],
                       qkv->shape[1], a->heads.heads + a->heads.kv_heads, a->heads.hd,
                       qkv->shape[2], inverse);
}

static void rope_backward(struct tape *tape, struct tape_op *op)
{
    struct rope_args a;
    NN_GET_ARGS(op, a);
    rope_queue(tape, &a, op->output, op->output->gradient, true);
}

/* The tensor is the op's output only: its gradient turns back where it is. */
struct tensor *nn_rope(struct tape *tape, struct tensor *qkv, const struct nn_heads *heads,
                       const float *cos, const float *sin)
{
    if (tape_failed(tape)) {
        tape_drop(tape, qkv);
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

/* Where keys and values begin in a packed row. */
static int64_t key_column(const struct attention_shape *s)
{
    return s->heads * s->hd;
}

static int64_t value_column(const struct attention_shape *s)
{
    return (s->heads + s->kv_heads) * s->hd;
}

static void attention_backward(struct tape *tape, struct tape_op *op)
{
    struct attention_shape s;
    NN_GET_ARGS(op, s);
    struct tensor *x = op->inputs[0], *y = op->output;
    enum dtype t = x->dtype;
    void *dx = tape_gradient(tape, x);
    if (dx)
        nn_ops(tape)->attention_backward(tape_stream(tape), t, dx, nn_at(dx, t, key_column(&s)),
                                         nn_at(dx, t, value_column(&s)), NULL, y->gradient, y->data,
                                         op->memory, x->data, nn_at(x->data, t, key_column(&s)),
                                         nn_at(x->data, t, value_column(&s)), &s);
    tape_give_gradient(tape, x, dx);
}

static struct attention_shape shape_of(const struct tape *tape, const struct tensor *qkv,
                                       const struct nn_heads *heads, float dropout, uint64_t layer)
{
    const struct tape_pass *pass = tape_current(tape);
    int64_t B = qkv->shape[0], T = qkv->shape[1], stride = qkv->shape[2];
    return (struct attention_shape){
        .B = B,
        .T_q = T,
        .T_k = T,
        .heads = heads->heads,
        .kv_heads = heads->kv_heads,
        .hd = heads->hd,
        .q_stride = stride,
        .k_stride = stride,
        .v_stride = stride,
        .causal = true,
        .scale = 1.0f / sqrtf((float)heads->hd),
        .dropout = pass->training ? dropout : 0,
        .key = random_key(pass->seed, pass->step, layer, 0),
        .first_row = pass->first_row,
        .row_stride = pass->row_stride,
    };
}

struct tensor *nn_attention(struct tape *tape, struct tensor *qkv, const struct nn_heads *heads,
                            float dropout, uint64_t layer)
{
    if (tape_failed(tape)) {
        tape_drop(tape, qkv);
        return NULL;
    }
    assert(qkv->dims == 3 && qkv->shape[2] == packed_width(heads));
    struct attention_shape s = shape_of(tape, qkv, heads, dropout, layer);
    enum dtype t = qkv->dtype;
    struct tensor *y =
        tape_tensor(tape, 3, (int64_t[]){s.B, s.T_q, s.heads * s.hd}, "attention output");
    float *lse =
        tape_alloc(tape, (size_t)(s.B * s.heads * s.T_q) * sizeof(float), "attention statistics");
    if (lse)
        nn_ops(tape)->attention_forward(tape_stream(tape), t, y->data, lse, qkv->data,
                                        nn_at(qkv->data, t, key_column(&s)),
                                        nn_at(qkv->data, t, value_column(&s)), &s);
    struct tape_op op = {.backward = attention_backward,
                         .output = y,
                         .inputs = {qkv},
                         .reads_inputs = true,
                         .reads_output = true,
                         .memory = lse};
    NN_SET_ARGS(op, s);
    tape_record(tape, &op);
    return y;
}
