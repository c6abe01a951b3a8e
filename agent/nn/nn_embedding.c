#include "agent/nn/nn_embedding.h"

#include "agent/nn/nn_internal.h"

struct module *nn_embedding_new(struct arena *arena, struct module *parent, const char *name,
                                uint64_t *next_index, int64_t V, int64_t D, float stddev)
{
    const char *text = arena_printf(arena, "Embedding(%lld, %lld)", (long long)V, (long long)D);
    struct module *m = module_add(arena, parent, module_new(arena, name, "Embedding", text));
    module_add_param(arena, m, "weight", (*next_index)++, 2, (int64_t[]){V, D},
                     (struct param_init){INIT_NORMAL, 0, stddev});
    return m;
}

struct module *nn_padded_embedding_new(struct arena *arena, struct module *parent, const char *name,
                                       uint64_t *next_index, int64_t V, int64_t D, float stddev,
                                       int64_t padding)
{
    struct module *m = nn_embedding_new(arena, parent, name, next_index, V, D, stddev);
    if (padding < 0)
        return m;
    m->description = arena_printf(arena, "Embedding(%lld, %lld, padding_idx=%lld)", (long long)V,
                                  (long long)D, (long long)padding);
    /* torch's padding_idx: the row begins as 0 and gets no gradient, so that it stays 0. */
    m->params[NN_WEIGHT]->zero_first = padding * D;
    m->params[NN_WEIGHT]->zero_count = D;
    return m;
}

/* `times` look-ups of the same `rows` ids, one after the other. */
struct embedding_args {
    const int32_t *ids;
    int64_t rows, times;
};

/* The gradient of the row for padding is another user's of the table (a tied head's), or 0: kept
 * aside meanwhile. */
static float *keep_padding(struct tape *tape, const struct param *w, bool written)
{
    if (w->zero_count == 0 || !written)
        return NULL;
    size_t bytes = (size_t)w->zero_count * sizeof(float);
    float *kept = tape_alloc(tape, bytes, "gradient of the padding's embedding");
    if (kept)
        stream_copy(tape_stream(tape), kept, w->gradient + w->zero_first, bytes);
    return kept;
}

static void restore_padding(struct tape *tape, const struct param *w, float *kept)
{
    float *row = w->gradient + w->zero_first;
    if (kept)
        stream_copy(tape_stream(tape), row, kept, (size_t)w->zero_count * sizeof *row);
    else if (w->zero_count > 0)
        nn_ops(tape)->fill(tape_stream(tape), row, 0, w->zero_count);
    device_free(stream_device(tape_stream(tape)), kept);
}

static void embedding_backward(struct tape *tape, struct tape_op *op)
{
    struct embedding_args a;
    NN_GET_ARGS(op, a);
    struct tensor *y = op->output;
    struct param *p = op->module->params[NN_WEIGHT];
    const int64_t *w = p->shape;
    float *kept = keep_padding(tape, p, p->gradient_written);
    for (int64_t i = 0; i < a.times; i++) {
        bool add;
        float *dw = tape_param_gradient(p, &add);
        nn_ops(tape)->embedding_backward(tape_stream(tape), y->dtype, dw,
                                         nn_at(y->gradient, y->dtype, i * a.rows * w[1]), a.ids,
                                         a.rows, w[0], w[1], add);
    }
    restore_padding(tape, p, kept);
}

/* Token t of every sample has row t: samples are added up one by one, without sorting any ids. */
static void positions_backward(struct tape *tape, struct tape_op *op)
{
    struct embedding_args a;
    NN_GET_ARGS(op, a);
    const struct tensor *y = op->output;
    struct param *p = op->module->params[NN_WEIGHT];
    int64_t count = a.rows * p->shape[1];
    bool add;
    float *dw = tape_param_gradient(p, &add);
    if (!add)
        nn_ops(tape)->fill(tape_stream(tape), dw, 0, p->count);
    for (int64_t i = 0; i < a.times; i++)
        nn_ops(tape)->add(tape_stream(tape), DTYPE_F32, dw, y->dtype,
                          nn_at(y->gradient, y->dtype, i * count), count);
}

typedef void backward_of(struct tape *tape, struct tape_op *op);

static struct tensor *look_up(struct tape *tape, struct module *m, const struct embedding_args *a,
                              int64_t B, int64_t T, backward_of *backward)
{
    tape_enter(tape, m);
    const int64_t *w = m->params[NN_WEIGHT]->shape;
    struct tensor *y = tape_tensor(tape, 3, (int64_t[]){B, T, w[1]}, m->path);
    for (int64_t i = 0; y && i < a->times; i++)
        nn_ops(tape)->embedding_forward(tape_stream(tape), y->dtype,
                                        nn_at(y->data, y->dtype, i * a->rows * w[1]),
                                        m->params[NN_WEIGHT]->value, a->ids, a->rows, w[0], w[1]);
    struct tape_op op = {.backward = backward, .module = m, .output = y};
    NN_SET_ARGS(op, *a);
    tape_record(tape, &op);
    tape_leave(tape, m);
    return y;
}

struct tensor *nn_embedding(struct tape *tape, struct module *m, const int32_t *ids, int64_t B,
                            int64_t T)
{
    return look_up(tape, m, &(struct embedding_args){ids, B * T, 1}, B, T, embedding_backward);
}

struct tensor *nn_positions(struct tape *tape, struct module *m, const int32_t *positions,
                            int64_t B, int64_t T)
{
    return look_up(tape, m, &(struct embedding_args){positions, T, B}, B, T, positions_backward);
}

struct tensor *nn_embedding_of_each(struct tape *tape, struct module *m, const int32_t *ids,
                                    int64_t B, int64_t T)
{
    return look_up(tape, m, &(struct embedding_args){ids, T, B}, B, T, embedding_backward);
}
