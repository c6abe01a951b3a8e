#include "tests/bench/head.h"

static struct linear_shape shape_of(const struct head *h)
{
    return (struct linear_shape){.rows = h->rows, .in = h->D, .out = h->V, .y_stride = h->stride};
}

void head_run(const struct head *h, enum head_op op)
{
    const struct ops *ops = h->timing->ops;
    struct stream *s = h->timing->s;
    const struct linear_shape shape = shape_of(h);
    switch (op) {
    case HEAD_FORWARD:
        ops->linear_forward(s, h->t, h->t, h->logits, h->x, h->w, NULL, false, &shape);
        return;
    case HEAD_LOSS:
        ops->cross_entropy(s, h->t, h->logits, h->sums, h->logits, h->ids, 1, h->rows, h->V,
                           h->stride);
        return;
    case HEAD_DATA:
        ops->linear_backward_data(s, h->t, h->dx, h->logits, h->w, &shape, false);
        return;
    default:
        ops->linear_backward_weights(s, h->t, h->dw, NULL, h->x, h->logits, &shape, true);
    }
}

struct work head_work(const struct head *h, enum head_op op)
{
    if (op == HEAD_LOSS) /* read, and written as their gradients */
        return (struct work){.bytes = 2.0 * (double)(h->rows * h->V) * (double)dtype_bytes(h->t)};
    return (struct work){.flops = 2.0 * (double)(h->rows * h->D * h->V)};
}

double head_predicted_ms(const struct head *h, enum head_op op)
{
    static const int products[HEAD_OPS] = {[HEAD_FORWARD] = PREDICT_FORWARD,
                                           [HEAD_DATA] = PREDICT_DATA,
                                           [HEAD_WEIGHTS] = PREDICT_WEIGHTS};
    const struct time_device *d = h->timing->predicted;
    const struct linear_shape shape = shape_of(h);
    if (op != HEAD_LOSS)
        return predicted_linear_ms(d, h->t, &shape, products[op]);
    bool aligned = h->stride * (int64_t)dtype_bytes(h->t) % 16 == 0;
    return d ? 1e3 * time_of_pass(d, head_work(h, op).bytes, time_loss_efficiency(aligned)) : 0;
}
