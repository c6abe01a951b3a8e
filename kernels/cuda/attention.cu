/* Attention's entries: whose kernels a call gets, cuDNN's or which of ours, and what is done before
 * and after ours for a bias. */
#include "base/log.h"
#include "kernels/attention_shape.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_check.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/slow_path.h"

static void check(const struct attention_shape *z)
{
    attention_shape_check(z);
    assert(z->scale > 0); /* the largest product is the largest score */
}

static bool aligned(const void *x, int64_t stride)
{
    return (uintptr_t)x % 16 == 0 && stride % 8 == 0;
}

/* Whether matrix units can do it: copies and stores are of 16 bytes. */
static bool fits_matrix(const struct stream *s, enum dtype t, const struct attention_args *a)
{
    const struct attention_shape *z = &a->shape;
    return cuda_has_matrix_units(s) && t == DTYPE_BF16 && (z->hd == 64 || z->hd == 128) &&
           aligned(a->q, z->q_stride) && aligned(a->k, z->k_stride) && aligned(a->v, z->v_stride) &&
           aligned(a->y, 0) && aligned(a->dy, 0) && aligned(a->dq, 0) && aligned(a->dk, 0) &&
           aligned(a->dv, 0);
}

/* Whether the kernels for compute capability 9.0 are asked for and can do it. */
static bool is_for_hopper(struct stream *s, enum dtype t, enum attention_direction direction,
                          const struct attention_args *a)
{
    const struct attention_choice *choice = cuda_attention_choice(s);
    if (choice->mode != ATTENTION_HOPPER)
        return false;
    if (fits_matrix(s, t, a) &&
        attention_choose(choice, direction, t, &a->shape) == ATTENTION_BY_HOPPER)
        return true;
    slow_path_not_hopper(t, &a->shape);
    return false;
}

/* y: [heads, distances] = x: [distances, heads] times log2 e. */
template <typename T>
__global__ void attention_bias_rows(float *y, const T *x, int64_t distances, int64_t heads)
{
    int64_t i = grid_thread();
    if (i < distances * heads)
        y[i] = number_load(x + i % distances * heads + i / distances) * LOG2_E;
}

/* dbias of a distance and a head: the sums of its diagonal from every sequence and every `queries`
 * queries, in order: eight threads' partial sums first. */
enum { DISTANCES = 32, PARTS = 8 };
__global__ void attention_dbias(float *dbias, struct attention_args a, int queries)
{
    CUDA_BLOCK(float, partials, [PARTS][DISTANCES]);
    const struct attention_shape &z = a.shape;
    int64_t distances = z.T_q + z.T_k - 1, h = blockIdx.y;
    int64_t distance = (int64_t)blockIdx.x * DISTANCES + threadIdx.x;
    float sum = 0;
    for (int64_t i = threadIdx.y; i < z.B * a.diagonal_rows; i += PARTS) {
        int64_t b = i / a.diagonal_rows, row = i % a.diagonal_rows;
        /* key - query = distance - (T_q - 1), see attention_diagonals */
        int64_t index = distance - z.T_q + (row + 1) * queries;
        if (index >= 0 && index < a.diagonal_length)
            sum += a.diagonals[((b * z.heads + h) * a.diagonal_rows + row) * a.diagonal_length +
                               index];
    }
    partials[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || distance >= distances)
        return;
    for (int i = 1; i < PARTS; i++)
        sum += partials[i][threadIdx.x];
    dbias[distance * z.heads + h] = sum;
}

/* What our kernels make of the shape. */
static void complete(struct attention_args *a)
{
    const struct attention_shape *z = &a->shape;
    a->dropout = attention_dropout_of(z);
    if (z->B == 0)
        return;
    a->query_heads = attention_heads_of(z, z->heads);
    a->key_heads = attention_heads_of(z, z->kv_heads);
}

/* Makes the rows of biases at `rows`. */
static void transpose_bias(struct stream *s, enum dtype t, struct attention_args *a, float *rows)
{
    const struct attention_shape *z = &a->shape;
    int64_t distances = z->T_q + z->T_k - 1;
    unsigned blocks = cuda_blocks(distances * z->heads, 256, INT32_MAX);
    CUDA_FOR_DTYPE(t, T,
                   CUDA_LAUNCH(s, attention_bias_rows<T>, blocks, 256, 0, rows, (const T *)z->bias,
                               distances, z->heads));
    a->bias = rows;
}

static void forward_ours(struct stream *s, enum dtype t, struct attention_args *a)
{
    const struct attention_shape *shape = &a->shape;
    complete(a);
    if (shape->bias) {
        int64_t distances = shape->T_q + shape->T_k - 1;
        float *rows = (float *)cuda_scratch(s, (size_t)(distances * shape->heads) * sizeof *rows);
        if (!rows)
            return;
        transpose_bias(s, t, a, rows);
    }
    if (is_for_hopper(s, t, ATTENTION_FORWARD, a)) {
        attention_hopper_forward(s, a);
    } else if (fits_matrix(s, t, a)) {
        attention_matrix_forward(s, a);
    } else {
        slow_path_attention(t, shape);
        attention_general_forward(s, t, a);
    }
}

/* What is to be done after a plan of cuDNN's has run for the first time, and before and after ours
 * does the same. */
static bool begin_check(struct attention_check *check, struct stream *s, bool backward,
                        const struct attention_shape *shape, const struct attention_result *results,
                        int count)
{
    if (attention_check_open(check, s, results, count))
        return true;
    log_warning("attention: %zu bytes of GPU memory are not there to compare cuDNN's %s with our "
                "own kernels' once: it is taken as it is",
                check->room, backward ? "backward" : "forward");
    cudnn_attention_compared(s, backward, shape);
    return false;
}

static void end_check(struct attention_check *check, bool backward,
                      const struct attention_shape *shape)
{
    char what[ATTENTION_CHECK_TEXT] = "";
    enum attention_verdict verdict = attention_check_close(check, what);
    if (verdict == ATTENTION_NEAR)
        cudnn_attention_compared(check->stream, backward, shape);
    else if (verdict == ATTENTION_FAR)
        cudnn_attention_refuse(check->stream, backward, shape, what);
}

void cuda_attention_forward(struct stream *s, enum dtype t, void *y, float *lse, const void *q,
                            const void *k, const void *v, const struct attention_shape *shape)
{
    check(shape);
    if (shape->B * shape->T_q == 0)
        return;
    struct attention_args a = {};
    a.shape = *shape;
    a.q = q, a.k = k, a.v = v, a.y = y, a.lse = lse;
    enum cudnn_result by_cudnn = cudnn_attention_forward(s, t, y, lse, q, k, v, shape);
    if (by_cudnn == CUDNN_LEFT)
        forward_ours(s, t, &a);
    if (by_cudnn != CUDNN_FIRST)
        return;
    const int64_t rows = shape->B * shape->T_q, width = shape->heads * shape->hd;
    const struct attention_result results[] = {
        {"y", t, y, rows, width, width},
        {"lse", DTYPE_F32, lse, shape->B * shape->heads, shape->T_q, shape->T_q}};
    struct attention_check check;
    if (!begin_check(&check, s, false, shape, results, 2))
        return;
    forward_ours(s, t, &a);
    end_check(&check, false, shape);
}

/* Floats of a backward's scratch: rows of biases, delta, diagonals. */
struct room {
    int64_t bias, delta, diagonals;
};

static struct room room_of(struct attention_args *a, int64_t queries, int64_t keys)
{
    const struct attention_shape *z = &a->shape;
    struct room room = {0, z->B * z->heads * z->T_q, 0};
    if (!z->bias)
        return room;
    a->diagonal_rows = (z->T_q + queries - 1) / queries;
    a->diagonal_length = (z->T_k + keys - 1) / keys * keys + 32;
    room.bias = (z->T_q + z->T_k - 1) * z->heads;
    room.diagonals = z->B * z->heads * a->diagonal_rows * a->diagonal_length;
    return room;
}

static void backward_for_hopper(struct stream *s, struct attention_args *a)
{
    const struct attention_shape *z = &a->shape;
    int64_t stats = z->B * z->heads * attention_stats_count(z->T_q);
    a->stats = (struct attention_stats *)cuda_scratch(s, (size_t)stats * sizeof *a->stats);
    if (!a->stats)
        return;
    attention_hopper_queries_backward(s, a);
    attention_hopper_keys_backward(s, a);
}

static void backward_ours(struct stream *s, enum dtype t, struct attention_args *a, float *dbias)
{
    const struct attention_shape *shape = &a->shape;
    complete(a);
    if (shape->B * shape->T_q > 0 && is_for_hopper(s, t, ATTENTION_BACKWARD, a)) {
        backward_for_hopper(s, a);
        return;
    }
    bool matrix = fits_matrix(s, t, a) && aligned(a->kept_y, 0);
    int queries = matrix ? attention_matrix_queries(shape->hd) : ATTENTION_GENERAL_QUERIES;
    int keys = matrix ? attention_matrix_keys(shape->hd) : ATTENTION_GENERAL_KEYS;
    struct room room = room_of(a, queries, keys);
    float *scratch = (float *)cuda_scratch(s, (size_t)(room.bias + room.delta + room.diagonals) *
                                                  sizeof *scratch);
    if (!scratch)
        return;
    /* delta is a query's sum of dy * y (D in FlashAttention-2, Dao 2023): dx = p * (dp - delta). */
    a->delta = scratch + room.bias;
    if (shape->bias) {
        transpose_bias(s, t, a, scratch);
        a->diagonals = a->delta + room.delta;
    }
    if (matrix) {
        attention_matrix_queries_backward(s, a);
        attention_matrix_keys_backward(s, a);
    } else {
        attention_general_backward(s, t, a);
    }
    if (dbias)
        CUDA_LAUNCH(s, attention_dbias,
                    dim3((unsigned)((shape->T_q + shape->T_k - 1 + DISTANCES - 1) / DISTANCES),
                         (unsigned)shape->heads),
                    dim3(DISTANCES, PARTS), 0, dbias, *a, queries);
}

void cuda_attention_backward(struct stream *s, enum dtype t, void *dq, void *dk, void *dv,
                             float *dbias, const void *dy, const void *y, const float *lse,
                             const void *q, const void *k, const void *v,
                             const struct attention_shape *shape)
{
    check(shape);
    assert(!dbias == !shape->bias);
    enum cudnn_result by_cudnn = CUDNN_LEFT;
    if (shape->B * shape->T_q > 0)
        by_cudnn = cudnn_attention_backward(s, t, dq, dk, dv, dy, y, lse, q, k, v, shape);
    struct attention_args a = {};
    a.shape = *shape;
    a.q = q, a.k = k, a.v = v, a.dy = dy, a.kept_y = y, a.kept_lse = lse;
    a.dq = dq, a.dk = dk, a.dv = dv;
    if (by_cudnn == CUDNN_LEFT)
        backward_ours(s, t, &a, dbias);
    if (by_cudnn != CUDNN_FIRST)
        return;
    const int64_t keys = shape->B * shape->T_k, width = shape->kv_heads * shape->hd;
    const struct attention_result results[] = {
        {"dq", t, dq, shape->B * shape->T_q, shape->heads * shape->hd, shape->q_stride},
        {"dk", t, dk, keys, width, shape->k_stride},
        {"dv", t, dv, keys, width, shape->v_stride}};
    struct attention_check check;
    if (!begin_check(&check, s, true, shape, results, 3))
        return;
    backward_ours(s, t, &a, NULL);
    end_check(&check, true, shape);
}
