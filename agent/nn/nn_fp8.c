#include "agent/nn/nn_fp8.h"

#include "agent/nn/nn_internal.h"

#include <assert.h>

/* ---- which layers ---- */

static int check(const struct module *m, struct error *err)
{
    const int64_t *w = m->params[NN_WEIGHT]->shape;
    if (w[0] % FP8_ALIGN == 0 && w[1] % FP8_ALIGN == 0)
        return 0;
    return error_set(err, ERR_CONFIG,
                     "precision.fp8: %s has a weight of %lld x %lld, and products in fp8 need "
                     "multiples of %d: choose such sizes, or precision.fp8=false",
                     m->path, (long long)w[0], (long long)w[1], FP8_ALIGN);
}

struct param *nn_fp8_weight(const struct module *m, bool in_block)
{
    return (in_block || m->is_block) && m->is_linear ? m->params[NN_WEIGHT] : NULL;
}

/* Looks at the linear layers of m and below; begins: they become fp8. */
static int walk(const struct module *m, bool in_block, bool begins, int *count, struct error *err)
{
    struct param *weight = nn_fp8_weight(m, in_block);
    if (weight) {
        if (check(m, err) < 0)
            return -1;
        weight->fp8 |= begins;
        (*count)++;
    }
    for (int i = 0; i < m->child_count; i++)
        if (walk(m->children[i], in_block || m->is_block, begins, count, err) < 0)
            return -1;
    return 0;
}

int nn_fp8_check(const struct module *root, struct error *err)
{
    int count = 0;
    if (walk(root, false, false, &count, err) < 0)
        return -1;
    if (count > 0)
        return 0;
    return error_set(err, ERR_CONFIG,
                     "precision.fp8: the model has no transformer blocks, whose linear layers "
                     "it is for");
}

int nn_fp8_begin(struct module *root, struct error *err)
{
    int count = 0;
    return nn_fp8_check(root, err) < 0 ? -1 : walk(root, false, true, &count, err);
}

/* ---- the products ---- */

enum { X, W, SCALES };

/* A matrix in fp8, with the sum of a product along its rows. NULL: the tape has failed. */
struct operand {
    const uint8_t *codes;
    uint8_t *memory; /* the same, to be written and freed; NULL: a weight that was gathered so */
    const struct fp8_scale *scale;
    enum fp8 format;
};

static struct operand alloc(struct tape *tape, enum fp8 format, const struct fp8_scale *scale,
                            int64_t rows, int64_t cols, const char *what)
{
    uint8_t *memory = tape_alloc(tape, (size_t)(rows * fp8_padded(cols)), what);
    return (struct operand){memory, memory, scale, format};
}

static void release(struct tape *tape, const struct operand *o)
{
    device_free(stream_device(tape_stream(tape)), o->memory);
}

/* The weight as [out, in] for forward; as [in, out] for x's gradient. own: its scale, where it is
 * gathered in bf16. */
static struct operand weight(struct tape *tape, const struct param *w, const struct fp8_scale *own,
                             const struct linear_shape *z, bool forward)
{
    const struct ops *ops = nn_ops(tape);
    struct stream *s = tape_stream(tape);
    const int64_t rows = z->in_out ? z->in : z->out, cols = z->in_out ? z->out : z->in;
    const bool transposes = forward == z->in_out;
    if (w->scale && !transposes)
        return (struct operand){.codes = w->value, .scale = w->scale, .format = FP8_E4M3};
    struct operand o = alloc(tape, FP8_E4M3, w->scale ? w->scale : own, forward ? z->out : z->in,
                             forward ? z->in : z->out, "a weight in fp8");
    if (o.memory && w->scale)
        ops->fp8_transpose(s, o.memory, w->value, rows, cols);
    else if (o.memory)
        ops->fp8_cast(s, FP8_E4M3, transposes ? NULL : o.memory, transposes ? o.memory : NULL, own,
                      w->value, rows, cols, cols);
    return o;
}

/* p: c's size and kind; the operands say the rest. */
static void multiply(struct tape *tape, struct fp8_matmul p, void *c, const struct operand *a,
                     const struct operand *b, const void *bias)
{
    if (tape_failed(tape))
        return;
    p.a_format = a->format;
    p.b_format = b->format;
    nn_ops(tape)->fp8_matmul(tape_stream(tape), &p, c, a->codes, a->scale, b->codes, b->scale,
                             bias);
}

void *nn_fp8_forward(struct tape *tape, void *y, const struct tensor *x, const struct param *w,
                     const void *bias, bool relu, const struct linear_shape *z)
{
    struct fp8_scale *scales = tape_alloc(tape, SCALES * sizeof *scales, "scales of fp8");
    struct operand a = alloc(tape, FP8_E4M3, scales + X, z->rows, z->in, "activations in fp8");
    if (scales && a.codes) {
        struct stream *s = tape_stream(tape);
        const struct ops *ops = nn_ops(tape);
        int64_t w_rows = z->in_out ? z->in : z->out, w_cols = z->in_out ? z->out : z->in;
        ops->fp8_scale(s, FP8_E4M3, scales + X, x->data, z->rows, z->in, z->in);
        if (!w->scale)
            ops->fp8_scale(s, FP8_E4M3, scales + W, w->value, w_rows, w_cols, w_cols);
        ops->fp8_cast(s, FP8_E4M3, a.memory, NULL, scales + X, x->data, z->rows, z->in, z->in);
        struct operand b = weight(tape, w, scales + W, z, true);
        const struct fp8_matmul p = {.m = z->rows,
                                     .n = z->out,
                                     .k = z->in,
                                     .c_stride = z->y_stride,
                                     .t_c = DTYPE_BF16,
                                     .relu = relu};
        multiply(tape, p, y, &a, &b, bias);
        release(tape, &b);
    }
    release(tape, &a);
    return scales;
}

/* Of the rows whose gradient is in_out's [in, out] or else [out, in]: a's rows are dw's. */
static void multiply_weights(struct tape *tape, const struct operand *x, const struct operand *dy,
                             const struct linear_shape *z, const struct nn_fp8_part *parts,
                             int part_count)
{
    const int64_t k = fp8_padded(z->rows);
    struct operand part = *dy;
    assert(part_count == 1 || !z->in_out);
    for (int i = 0; i < part_count; part.codes += parts[i++].out * k) {
        const int64_t m = z->in_out ? z->in : parts[i].out, n = z->in_out ? parts[i].out : z->in;
        const struct fp8_matmul p = {
            .m = m, .n = n, .k = k, .c_stride = n, .t_c = DTYPE_F32, .accumulate = parts[i].add};
        multiply(tape, p, parts[i].dw, z->in_out ? x : &part, z->in_out ? &part : x, NULL);
    }
}

/* x's gradient, of dy: [rows, out]. */
static void backward_data(struct tape *tape, struct tensor *x, const struct param *w,
                          const struct operand *dy, const struct fp8_scale *scale,
                          const struct linear_shape *z)
{
    bool add;
    void *dx = tape_gradient_in_place(tape, x, &add);
    if (!dx)
        return;
    struct operand b = weight(tape, w, scale, z, false);
    const struct fp8_matmul p = {.m = z->rows,
                                 .n = z->in,
                                 .k = z->out,
                                 .c_stride = z->in,
                                 .t_c = DTYPE_BF16,
                                 .accumulate = add};
    multiply(tape, p, dx, dy, &b, NULL);
    release(tape, &b);
}

void nn_fp8_backward(struct tape *tape, struct tensor *x, const struct param *w, const void *dy,
                     const void *memory, const struct linear_shape *z,
                     const struct nn_fp8_part *parts, int part_count)
{
    const struct fp8_scale *scales = memory;
    struct stream *s = tape_stream(tape);
    const struct ops *ops = nn_ops(tape);
    struct fp8_scale *scale = tape_alloc(tape, sizeof *scale, "the scale of a gradient");
    struct operand rows = alloc(tape, FP8_E5M2, scale, z->rows, z->out, "gradients in fp8");
    struct operand cols = alloc(tape, FP8_E5M2, scale, z->out, z->rows, "gradients in fp8");
    struct operand values = alloc(tape, FP8_E4M3, scales + X, z->in, z->rows, "activations in fp8");
    if (!tape_failed(tape)) {
        ops->fp8_scale(s, FP8_E5M2, scale, dy, z->rows, z->out, z->y_stride);
        ops->fp8_cast(s, FP8_E5M2, rows.memory, cols.memory, scale, dy, z->rows, z->out,
                      z->y_stride);
        ops->fp8_cast(s, FP8_E4M3, NULL, values.memory, scales + X, x->data, z->rows, z->in, z->in);
        multiply_weights(tape, &values, &cols, z, parts, part_count);
    }
    release(tape, &values);
    release(tape, &cols);
    backward_data(tape, x, w, &rows, scales + W, z);
    release(tape, &rows);
    device_free(stream_device(s), scale);
}
