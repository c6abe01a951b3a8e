#include "agent/nn/nn_loss.h"

#include "agent/nn/nn_internal.h"

#include <assert.h>

/* ---- loss ---- */

struct cross_entropy_args {
    const int32_t *target;
    float scale;
};

/* The log-probabilities, which are fp32, turn into the gradient where they are if it
 * is fp32 too. */
static void cross_entropy_backward(struct tape *tape, struct tape_op *op)
{
    struct cross_entropy_args a;
    NN_GET_ARGS(op, a);
    struct tensor *x = op->inputs[0];
    const float *y = op->memory;
    void *gradient = x->dtype == DTYPE_F32 ? op->memory : tape_gradient(tape, x);
    if (gradient)
        nn_ops(tape)->nll_log_softmax_backward(tape_stream(tape), x->dtype, gradient, y, a.target,
                                               a.scale, x->shape[0], x->shape[1]);
    if (gradient == op->memory)
        op->memory = NULL;
    tape_accumulate_gradient(tape, x, gradient);
}

void nn_cross_entropy(struct tape *tape, struct tensor *x, const int32_t *target, float scale,
                      double *sums)
{
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return;
    }
    assert(x->dims == 2);
    int64_t rows = x->shape[0], cols = x->shape[1];
    float *y = tape_alloc(tape, (size_t)x->count * sizeof(float), "log-probabilities");
    if (y) {
        nn_ops(tape)->log_softmax(tape_stream(tape), x->dtype, y, x->data, rows, cols);
        nn_ops(tape)->nll_loss(tape_stream(tape), sums, y, target, rows, cols);
    }
    struct cross_entropy_args a = {target, scale};
    struct tape_op op = {.backward = cross_entropy_backward, .inputs = {x}, .memory = y};
    NN_SET_ARGS(op, a);
    tape_record(tape, &op);
}

/* ---- language loss ---- */

struct language_args {
    struct param *weight, *bias; /* bias: NULL for none */
    const int32_t *target;
    double *sums;
    int64_t chunk_rows;
    float scale;
};

/* Memory of one chunk. */
struct chunk {
    int64_t rows, V, stride; /* rows: the most of a chunk */
    void *logits; /* [rows, stride] of the tape's dtype, V of each row used; in training they become
                     their gradients */
};

int64_t nn_logit_stride(int64_t V, bool is_host)
{
    enum { ALIGN = 64 }; /* 128 bytes of bf16, a line of a GPU's caches */
    return is_host ? V : (V + ALIGN - 1) / ALIGN * ALIGN;
}

static bool chunk_alloc(struct tape *tape, const struct language_args *a, const struct tensor *x,
                        struct chunk *chunk)
{
    int64_t rows = x->count / a->weight->shape[1];
    chunk->V = a->weight->shape[0];
    chunk->stride = nn_logit_stride(chunk->V, device_is_host(stream_device(tape_stream(tape))));
    chunk->rows = rows < a->chunk_rows ? rows : a->chunk_rows;
    chunk->logits =
        tape_alloc(tape, (size_t)(chunk->rows * chunk->stride) * dtype_bytes(x->dtype), "logits");
    return !tape_failed(tape);
}

static void chunk_free(struct tape *tape, struct chunk *chunk)
{
    device_free(stream_device(tape_stream(tape)), chunk->logits);
}

static struct linear_shape chunk_shape(const struct chunk *chunk, int64_t rows, int64_t D)
{
    return (struct linear_shape){.rows = rows, .in = D, .out = chunk->V, .y_stride = chunk->stride};
}

/* Logits and loss of rows first .. first + shape->rows - 1; gradient: NULL, or the chunk's logits,
 * which it then is. */
static void chunk_forward(struct tape *tape, const struct language_args *a, const struct tensor *x,
                          int64_t first, const struct linear_shape *shape,
                          const struct chunk *chunk, void *gradient)
{
    nn_ops(tape)->linear_forward(tape_stream(tape), x->dtype, x->dtype, chunk->logits,
                                 nn_at(x->data, x->dtype, first * shape->in), a->weight->value,
                                 a->bias ? a->bias->value : NULL, false, shape);
    nn_ops(tape)->cross_entropy(tape_stream(tape), x->dtype, gradient, a->sums, chunk->logits,
                                a->target + first, a->scale, shape->rows, chunk->V, chunk->stride);
}

static void language_backward(struct tape *tape, struct tape_op *op)
{
    struct language_args a;
    NN_GET_ARGS(op, a);
    struct tensor *x = op->inputs[0];
    int64_t D = a.weight->shape[1], rows = x->count / D;
    struct chunk chunk;
    void *dx = tape_gradient(tape, x);
    bool ready = chunk_alloc(tape, &a, x, &chunk) && dx;
    for (int64_t first = 0; ready && first < rows; first += chunk.rows) {
        int64_t count = rows - first < chunk.rows ? rows - first : chunk.rows;
        const struct linear_shape shape = chunk_shape(&chunk, count, D);
        chunk_forward(tape, &a, x, first, &shape, &chunk, chunk.logits);
        bool add, add_bias;
        float *dw = tape_param_gradient(a.weight, &add);
        float *dbias = a.bias ? tape_param_gradient(a.bias, &add_bias) : NULL;
        assert(!dbias || add_bias == add); /* no other op writes either before */
        nn_ops(tape)->linear_backward_weights(tape_stream(tape), x->dtype, dw, dbias,
                                              nn_at(x->data, x->dtype, first * D), chunk.logits,
                                              &shape, add);
        nn_ops(tape)->linear_backward_data(tape_stream(tape), x->dtype,
                                           nn_at(dx, x->dtype, first * D), chunk.logits,
                                           a.weight->value, &shape, false);
    }
    chunk_free(tape, &chunk);
    tape_accumulate_gradient(tape, x, dx);
}

static void evaluate(struct tape *tape, const struct language_args *a, const struct tensor *x)
{
    int64_t D = a->weight->shape[1], rows = x->count / D;
    struct chunk chunk;
    bool ready = chunk_alloc(tape, a, x, &chunk);
    for (int64_t first = 0; ready && first < rows; first += chunk.rows) {
        int64_t count = rows - first < chunk.rows ? rows - first : chunk.rows;
        const struct linear_shape shape = chunk_shape(&chunk, count, D);
        chunk_forward(tape, a, x, first, &shape, &chunk, NULL);
    }
    chunk_free(tape, &chunk);
}

void nn_language_loss(struct tape *tape, struct module *head, struct param *weight,
                      struct param *bias, struct tensor *x, const int32_t *target,
                      int64_t chunk_rows, float scale, double *sums)
{
    tape_enter(tape, head);
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return;
    }
    assert(chunk_rows > 0 && x->shape[x->dims - 1] == weight->shape[1]);
    struct language_args a = {weight, bias, target, sums, chunk_rows, scale};
    /* In training backward computes the loss, too: a chunk's logits are used at once, and never all
     * are there. */
    if (!tape_current(tape)->training)
        evaluate(tape, &a, x);
    struct tape_op op = {
        .backward = language_backward, .module = head, .inputs = {x}, .reads_inputs = true};
    NN_SET_ARGS(op, a);
    tape_record(tape, &op);
    tape_leave(tape, head);
}

void nn_language_logits(struct tape *tape, struct module *head, struct param *weight,
                        struct param *bias, struct tensor *x, float *logits)
{
    assert(!tape_current(tape)->training);
    tape_enter(tape, head);
    if (!tape_failed(tape)) {
        int64_t D = weight->shape[1];
        const struct linear_shape shape = linear_dense(x->count / D, D, weight->shape[0]);
        nn_ops(tape)->linear_forward(tape_stream(tape), x->dtype, DTYPE_F32, logits, x->data,
                                     weight->value, bias ? bias->value : NULL, false, &shape);
    }
    tape_release(tape, x);
    tape_leave(tape, head);
}
