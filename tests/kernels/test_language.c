/* The ops of language models that are neither products, attention nor norms, in both dtypes. */
#include "tests/kernels/op_check.h"

#include <math.h>

/* ---- activations ---- */

enum { X };

struct activation_row {
    const char *name;
    int64_t rows, I;
    bool in_place;
    float size;
    bool tanh;
};

static const struct activation_row activation_rows[] = {
    {"one", 1, 1, false, 1, false},           {"one, tanh", 1, 1, true, 1, true},
    {"none", 0, 3, false, 1, false},          {"in place", 5, 33, true, 3, false},
    {"in place, tanh", 5, 33, true, 3, true}, {"over a strip", 2, 513, false, 1, false},
    {"long, tanh", 3, 4000, false, 6, true},  {"large values", 7, 64, true, 30, false},
    {"large, tanh", 7, 64, false, 30, true},  {"many rows", 4100, 2, true, 1, false},
};

static double tanh_gelu(double x)
{
    return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static void swiglu_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    for (int64_t i = 0; i < r->rows; i++)
        for (int64_t c = 0; c < r->I; c++) {
            double gate = in[X][2 * i * r->I + c], up = in[X][(2 * i + 1) * r->I + c];
            *y++ = gate / (1 + exp(-gate)) * up;
        }
}

static void swiglu_forward(struct world *world, enum dtype t, const void *shape, void *y,
                           float *saved, void *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    (void)saved;
    world->ops->swiglu_forward(world->stream, t, y, in[X], r->rows, r->I);
}

static void swiglu_backward(struct world *world, enum dtype t, const void *shape,
                            void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                            const float *saved, void *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    (void)y, (void)saved;
    world->ops->swiglu_backward(world->stream, t, gradient[X], dy, in[X], r->rows, r->I);
}

static void geglu_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    for (int64_t i = 0; i < r->rows; i++)
        for (int64_t c = 0; c < r->I; c++)
            *y++ = tanh_gelu(in[X][2 * i * r->I + c]) * in[X][(2 * i + 1) * r->I + c];
}

static void geglu_forward(struct world *world, enum dtype t, const void *shape, void *y,
                          float *saved, void *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    (void)saved;
    world->ops->geglu_forward(world->stream, t, y, in[X], r->rows, r->I);
}

static void geglu_backward(struct world *world, enum dtype t, const void *shape,
                           void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                           const float *saved, void *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    (void)y, (void)saved;
    world->ops->geglu_backward(world->stream, t, gradient[X], dy, in[X], r->rows, r->I);
}

static void tanh_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    for (int64_t i = 0; i < r->rows * r->I; i++)
        y[i] = tanh(in[X][i]);
}

static void tanh_forward(struct world *world, enum dtype t, const void *shape, void *y,
                         float *saved, void *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    (void)saved;
    world->ops->tanh_forward(world->stream, t, y, in[X], r->rows * r->I);
}

static void tanh_backward(struct world *world, enum dtype t, const void *shape,
                          void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                          const float *saved, void *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    (void)in, (void)saved;
    world->ops->tanh_backward(world->stream, t, gradient[X], dy, y, r->rows * r->I);
}

static void gelu_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    for (int64_t i = 0; i < r->rows * r->I; i++) {
        double x = in[X][i];
        y[i] = r->tanh ? tanh_gelu(x) : x / 2 * (1 + erf(x / sqrt(2)));
    }
}

static void gelu_forward(struct world *world, enum dtype t, const void *shape, void *y,
                         float *saved, void *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    (void)saved;
    world->ops->gelu_forward(world->stream, t, y, in[X], r->rows * r->I, r->tanh);
}

static void gelu_backward(struct world *world, enum dtype t, const void *shape,
                          void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                          const float *saved, void *const in[MAX_INPUTS])
{
    const struct activation_row *r = shape;
    (void)y, (void)saved;
    world->ops->gelu_backward(world->stream, t, gradient[X], dy, in[X], r->rows * r->I, r->tanh);
}

static void test_activations(void **state)
{
    for (size_t i = 0; i < array_length(activation_rows); i++) {
        const struct activation_row *r = &activation_rows[i];
        struct op_row row = {
            .name = r->name,
            .shape = r,
            .inputs = 1,
            .in_count = {2 * r->rows * r->I},
            .y_count = r->rows * r->I,
            .dx_is_x = r->in_place,
            .size = r->size,
            .reference = swiglu_reference,
            .forward = swiglu_forward,
            .backward = swiglu_backward,
        };
        check_op(*state, &row);
        row.reference = geglu_reference;
        row.forward = geglu_forward;
        row.backward = geglu_backward;
        check_op(*state, &row);
        row.in_count[0] = row.y_count;
        row.dx_is_x = false;
        row.dx_is_dy = row.y_is_x = r->in_place;
        row.reference = gelu_reference;
        row.forward = gelu_forward;
        row.backward = gelu_backward;
        check_op(*state, &row);
        row.reference = tanh_reference;
        row.forward = tanh_forward;
        row.backward = tanh_backward;
        row.floor = 1; /* backward sees y rounded, and takes 1 - y^2 */
        check_op(*state, &row);
    }
}

/* ---- rotary positions: in place, so y is a copy of x that is rotated ---- */

struct rope_row {
    const char *name;
    int64_t B, T, heads, hd, stride;
};

static const struct rope_row rope_rows[] = {
    {"one pair", 1, 1, 1, 2, 2},      {"no sequence", 0, 3, 2, 4, 8},
    {"odd heads", 2, 5, 3, 6, 18},    {"wide rows", 2, 7, 2, 8, 27},
    {"a model's", 1, 65, 6, 64, 640}, {"long heads", 1, 2, 1, 1100, 1100},
};

static bool rope_used(const void *shape, int which, int64_t i)
{
    const struct rope_row *r = shape;
    return which == 1 || which == 2 || i % r->stride < r->heads * r->hd;
}

/* in[1], in[2]: cosines and sines; any numbers will do. */
static void rope_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct rope_row *r = shape;
    int64_t half = r->hd / 2;
    for (int64_t i = 0; i < r->B * r->T * r->stride; i++) {
        int64_t token = i / r->stride, t = token % r->T, at = i % r->stride;
        int64_t pair = at % r->hd % half;
        double cosine = in[1][t * half + pair], sine = in[2][t * half + pair];
        if (at >= r->heads * r->hd)
            y[i] = 0;
        else if (at % r->hd < half)
            y[i] = in[X][i] * cosine - in[X][i + half] * sine;
        else
            y[i] = in[X][i] * cosine + in[X][i - half] * sine;
    }
}

static void rope_either(struct world *world, enum dtype t, const struct rope_row *r, void *to,
                        const void *from, void *const in[MAX_INPUTS], bool inverse)
{
    stream_copy(world->stream, to, from, (size_t)(r->B * r->T * r->stride) * dtype_bytes(t));
    world->ops->rope(world->stream, t, to, in[1], in[2], r->B, r->T, r->heads, r->hd, r->stride,
                     inverse);
}

static void rope_forward(struct world *world, enum dtype t, const void *shape, void *y,
                         float *saved, void *const in[MAX_INPUTS])
{
    (void)saved;
    rope_either(world, t, shape, y, in[X], in, false);
}

static void rope_backward(struct world *world, enum dtype t, const void *shape,
                          void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                          const float *saved, void *const in[MAX_INPUTS])
{
    (void)y, (void)saved;
    rope_either(world, t, shape, gradient[X], dy, in, true);
}

static void test_rope(void **state)
{
    for (size_t i = 0; i < array_length(rope_rows); i++) {
        const struct rope_row *r = &rope_rows[i];
        int64_t count = r->B * r->T * r->stride, angles = r->T * r->hd / 2;
        struct op_row row = {
            .name = r->name,
            .shape = r,
            .inputs = 3,
            .in_count = {count, angles, angles},
            .y_count = count,
            .fp32 = {false, true, true},
            .reference = rope_reference,
            .used = rope_used,
            .forward = rope_forward,
            .backward = rope_backward,
        };
        check_op(*state, &row);
    }
}

/* ---- embedding ---- */

struct embedding_row {
    const char *name;
    int64_t rows, V, D;
    bool accumulate;
};

static const struct embedding_row embedding_rows[] = {
    {"one of everything", 1, 1, 1, false},
    {"no rows", 0, 3, 5, false},
    {"same ids", 9, 2, 33, true},
    {"over a strip", 40, 50, 600, false},
    {"narrow", 300, 7, 3, true},
    {"one id", 200, 1, 8, true},
    {"more than a GPU's block sorts", 9000, 5000, 1, false},
};

/* The id of row r: some often, some never. */
static int32_t id_of(const struct embedding_row *e, int64_t r)
{
    return (int32_t)(r * r % e->V);
}

static void embedding_reference(const void *shape, double *y, double *const in[MAX_INPUTS])
{
    const struct embedding_row *e = shape;
    for (int64_t r = 0; r < e->rows; r++)
        for (int64_t c = 0; c < e->D; c++)
            *y++ = in[0][id_of(e, r) * e->D + c];
}

static int32_t *ids_to_device(struct world *world, const struct embedding_row *e)
{
    int32_t *ids = arena_array(world->arena, int32_t, e->rows);
    for (int64_t r = 0; r < e->rows; r++)
        ids[r] = id_of(e, r);
    return to_device_bytes(world, ids, (size_t)e->rows * sizeof *ids);
}

static void ids_from_device(struct world *world, const struct embedding_row *e, int32_t *ids)
{
    from_device_bytes(world, arena_array(world->arena, int32_t, e->rows), ids,
                      (size_t)e->rows * sizeof *ids);
}

static void embedding_forward(struct world *world, enum dtype t, const void *shape, void *y,
                              float *saved, void *const in[MAX_INPUTS])
{
    const struct embedding_row *e = shape;
    int32_t *ids = ids_to_device(world, e);
    (void)saved;
    world->ops->embedding_forward(world->stream, t, y, in[0], ids, e->rows, e->V, e->D);
    ids_from_device(world, e, ids);
}

static void embedding_backward(struct world *world, enum dtype t, const void *shape,
                               void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                               const float *saved, void *const in[MAX_INPUTS])
{
    const struct embedding_row *e = shape;
    int32_t *ids = ids_to_device(world, e);
    (void)y, (void)saved, (void)in;
    world->ops->embedding_backward(world->stream, t, gradient[0], dy, ids, e->rows, e->V, e->D,
                                   e->accumulate);
    ids_from_device(world, e, ids);
}

static void test_embedding(void **state)
{
    for (size_t i = 0; i < array_length(embedding_rows); i++) {
        const struct embedding_row *e = &embedding_rows[i];
        struct op_row row = {
            .name = e->name,
            .shape = e,
            .inputs = 1,
            .in_count = {e->V * e->D},
            .y_count = e->rows * e->D,
            .parameter = {true},
            .accumulate = e->accumulate,
            .reference = embedding_reference,
            .forward = embedding_forward,
            .backward = embedding_backward,
        };
        check_op(*state, &row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_activations, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_rope, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_embedding, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_embedding, world_setup_two_threads, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
