#include "kernels/cuda/cudnn_attention.h"

#include <assert.h>
#include <stddef.h>

/* What graphs of one shape are made of. */
struct shapes {
    struct cudnn_layout q, k, v, y; /* as they lie in memory */
    struct cudnn_layout scores;     /* [B, heads, T_q, T_k] */
    struct cudnn_layout rows;       /* [B, heads, T_q, 1] */
    struct cudnn_layout keys;       /* [B, heads, T_k, hd]: gradients before groups are added up */
    bool grouped;
};

static struct cudnn_layout in_tokens(int64_t B, int64_t T, int64_t heads, int64_t hd,
                                     int64_t stride)
{
    return (struct cudnn_layout){{B, heads, T, hd}, {T * stride, hd, stride, 1}};
}

static struct shapes shapes_of(const struct attention_shape *z)
{
    return (struct shapes){
        .q = in_tokens(z->B, z->T_q, z->heads, z->hd, z->q_stride),
        .k = in_tokens(z->B, z->T_k, z->kv_heads, z->hd, z->k_stride),
        .v = in_tokens(z->B, z->T_k, z->kv_heads, z->hd, z->v_stride),
        .y = in_tokens(z->B, z->T_q, z->heads, z->hd, z->heads * z->hd),
        .scores = cudnn_dense(z->B, z->heads, z->T_q, z->T_k),
        .rows = cudnn_dense(z->B, z->heads, z->T_q, 1),
        .keys = cudnn_dense(z->B, z->heads, z->T_k, z->hd),
        .grouped = z->heads != z->kv_heads,
    };
}

/* A virtual fp32 tensor. */
static cudnn_descriptor between(struct cudnn_graph *graph, const struct cudnn_layout *layout)
{
    return cudnn_virtual(graph, CUDNN_DATA_FLOAT, layout);
}

/* A virtual tensor that is mode(x, b). */
static cudnn_descriptor apply(struct cudnn_graph *graph, enum cudnn_pointwise mode,
                              const struct cudnn_layout *layout, cudnn_descriptor x,
                              cudnn_descriptor b)
{
    cudnn_descriptor y = between(graph, layout);
    cudnn_pointwise(graph, mode, x, b, y);
    return y;
}

static cudnn_descriptor mask_causally(struct cudnn_graph *graph, const struct shapes *s,
                                      cudnn_descriptor scores)
{
    cudnn_descriptor row = cudnn_virtual(graph, CUDNN_DATA_INT32, &s->scores);
    cudnn_descriptor col = cudnn_virtual(graph, CUDNN_DATA_INT32, &s->scores);
    cudnn_descriptor seen = cudnn_virtual(graph, CUDNN_DATA_BOOLEAN, &s->scores);
    cudnn_descriptor masked = between(graph, &s->scores);
    cudnn_index(graph, 2, scores, row);
    cudnn_index(graph, 3, scores, col);
    cudnn_pointwise(graph, CUDNN_POINTWISE_CMP_GE, row, col, seen);
    cudnn_select(graph, seen, scores, cudnn_number(graph, CUDNN_MASKED), masked);
    return masked;
}

/* scale * q k^T; k: transposed. */
static cudnn_descriptor score(struct cudnn_graph *graph, const struct shapes *s, cudnn_descriptor q,
                              cudnn_descriptor k, cudnn_descriptor scale)
{
    cudnn_descriptor products = between(graph, &s->scores);
    cudnn_matmul(graph, q, k, products);
    return apply(graph, CUDNN_POINTWISE_MUL, &s->scores, products, scale);
}

static void build_forward(struct cudnn_graph *graph, const struct attention_shape *z)
{
    const struct shapes s = shapes_of(z);
    const struct cudnn_layout k_transposed = cudnn_transposed(&s.k);
    cudnn_descriptor q = cudnn_memory(graph, CUDNN_Q, CUDNN_DATA_BFLOAT16, &s.q);
    cudnn_descriptor k = cudnn_memory(graph, CUDNN_K, CUDNN_DATA_BFLOAT16, &k_transposed);
    cudnn_descriptor v = cudnn_memory(graph, CUDNN_V, CUDNN_DATA_BFLOAT16, &s.v);
    cudnn_descriptor y = cudnn_memory(graph, CUDNN_Y, CUDNN_DATA_BFLOAT16, &s.y);
    cudnn_descriptor lse = cudnn_memory(graph, CUDNN_LSE, CUDNN_DATA_FLOAT, &s.rows);
    cudnn_descriptor scores = score(graph, &s, q, k, cudnn_number(graph, CUDNN_SCALE));
    if (z->causal)
        scores = mask_causally(graph, &s, scores);
    cudnn_descriptor largest = between(graph, &s.rows), sum = between(graph, &s.rows);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_MAX, scores, largest);
    cudnn_descriptor shifted = apply(graph, CUDNN_POINTWISE_SUB, &s.scores, scores, largest);
    cudnn_descriptor powers = apply(graph, CUDNN_POINTWISE_EXP, &s.scores, shifted, NULL);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, powers, sum);
    cudnn_descriptor log_sum = apply(graph, CUDNN_POINTWISE_LOG, &s.rows, sum, NULL);
    cudnn_pointwise(graph, CUDNN_POINTWISE_ADD, largest, log_sum, lse);
    cudnn_descriptor probabilities = cudnn_virtual(graph, CUDNN_DATA_BFLOAT16, &s.scores);
    cudnn_pointwise(graph, CUDNN_POINTWISE_DIV, powers, sum, probabilities);
    cudnn_matmul(graph, probabilities, v, y);
}

/* dy * y summed along a head, into memory. */
static cudnn_descriptor make_delta(struct cudnn_graph *graph, const struct attention_shape *z,
                                   const struct shapes *s, cudnn_descriptor dy, cudnn_descriptor y)
{
    const struct cudnn_layout head = cudnn_dense(z->B, z->heads, z->T_q, z->hd);
    cudnn_descriptor products = apply(graph, CUDNN_POINTWISE_MUL, &head, dy, y);
    cudnn_descriptor sum = between(graph, &s->rows);
    cudnn_descriptor delta = cudnn_memory(graph, CUDNN_DELTA, CUDNN_DATA_FLOAT, &s->rows);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, products, sum);
    /* the pattern has a factor here, which dropout would use */
    cudnn_pointwise(graph, CUDNN_POINTWISE_MUL, sum, cudnn_number(graph, CUDNN_ONE), delta);
    return delta;
}

/* The gradient of keys or values: `scores` transposed and rounded, times `with`, into memory. */
static void gradient_of_keys(struct cudnn_graph *graph, const struct shapes *s,
                             cudnn_descriptor scores, cudnn_descriptor with,
                             cudnn_descriptor gradient)
{
    const struct cudnn_layout transposed = cudnn_transposed(&s->scores);
    cudnn_descriptor columns = cudnn_virtual(graph, CUDNN_DATA_BFLOAT16, &transposed);
    cudnn_reshape(graph, scores, columns);
    if (!s->grouped) {
        cudnn_matmul(graph, columns, with, gradient);
        return;
    }
    cudnn_descriptor every_head = cudnn_virtual(graph, CUDNN_DATA_BFLOAT16, &s->keys);
    cudnn_matmul(graph, columns, with, every_head);
    cudnn_reduce(graph, CUDNN_REDUCE_TENSOR_ADD, every_head, gradient);
}

/* dscores k, into memory: at once, or added up in fp32 there. */
static void gradient_of_queries(struct cudnn_graph *graph, const struct attention_shape *z,
                                cudnn_descriptor dscores, cudnn_descriptor k, cudnn_descriptor dq)
{
    if (!z->nondeterministic) {
        cudnn_matmul(graph, dscores, k, dq);
        return;
    }
    const struct cudnn_layout dense = cudnn_dense(z->B, z->heads, z->T_q, z->hd);
    cudnn_descriptor sums = cudnn_memory(graph, CUDNN_DQ_SUMS, CUDNN_DATA_FLOAT, &dense);
    cudnn_matmul(graph, dscores, k, sums);
    cudnn_pointwise(graph, CUDNN_POINTWISE_IDENTITY, sums, NULL, dq);
}

static void build_backward(struct cudnn_graph *graph, const struct attention_shape *z)
{
    const struct shapes s = shapes_of(z);
    const struct cudnn_layout k_transposed = cudnn_transposed(&s.k),
                              v_transposed = cudnn_transposed(&s.v);
    cudnn_descriptor q = cudnn_memory(graph, CUDNN_Q, CUDNN_DATA_BFLOAT16, &s.q);
    cudnn_descriptor k = cudnn_memory(graph, CUDNN_K, CUDNN_DATA_BFLOAT16, &k_transposed);
    cudnn_descriptor v = cudnn_memory(graph, CUDNN_V, CUDNN_DATA_BFLOAT16, &v_transposed);
    cudnn_descriptor y = cudnn_memory(graph, CUDNN_Y, CUDNN_DATA_BFLOAT16, &s.y);
    cudnn_descriptor dy = cudnn_memory(graph, CUDNN_DY, CUDNN_DATA_BFLOAT16, &s.y);
    cudnn_descriptor lse = cudnn_memory(graph, CUDNN_LSE, CUDNN_DATA_FLOAT, &s.rows);
    cudnn_descriptor dq = cudnn_memory(graph, CUDNN_DQ, CUDNN_DATA_BFLOAT16, &s.q);
    cudnn_descriptor dk = cudnn_memory(graph, CUDNN_DK, CUDNN_DATA_BFLOAT16, &s.k);
    cudnn_descriptor dv = cudnn_memory(graph, CUDNN_DV, CUDNN_DATA_BFLOAT16, &s.v);
    cudnn_descriptor scale = cudnn_number(graph, CUDNN_SCALE);
    cudnn_descriptor delta = make_delta(graph, z, &s, dy, y);
    /* probabilities, and with them the gradient of v */
    cudnn_descriptor scores = score(graph, &s, q, k, scale);
    scores = apply(graph, CUDNN_POINTWISE_SUB, &s.scores, scores, lse);
    if (z->causal)
        scores = mask_causally(graph, &s, scores);
    cudnn_descriptor powers = apply(graph, CUDNN_POINTWISE_EXP, &s.scores, scores, NULL);
    gradient_of_keys(graph, &s, powers, dy, dv);
    /* the gradient of the scores, and with it those of k and q */
    cudnn_descriptor dp = between(graph, &s.scores);
    cudnn_matmul(graph, dy, v, dp);
    dp = apply(graph, CUDNN_POINTWISE_SUB, &s.scores, dp, delta);
    dp = apply(graph, CUDNN_POINTWISE_MUL, &s.scores, dp, powers);
    cudnn_descriptor dscores = apply(graph, CUDNN_POINTWISE_MUL, &s.scores, dp, scale);
    gradient_of_keys(graph, &s, dscores, q, dk);
    cudnn_descriptor k_rows = cudnn_virtual(graph, CUDNN_DATA_FLOAT, &s.k);
    cudnn_reshape(graph, k, k_rows);
    gradient_of_queries(graph, z, dscores, k_rows, dq);
}

void cudnn_attention_open(struct cudnn_attention *a, const struct cudnn_api *api,
                          cudnn_descriptor device, const struct attention_shape *shape,
                          bool backward, int64_t most_workspace)
{
    assert(!shape->bias && shape->dropout <= 0 && !shape->key_counts);
    cudnn_graph_open(&a->graph, api);
    a->workspace = 0;
    if (backward)
        build_backward(&a->graph, shape);
    else
        build_forward(&a->graph, shape);
    a->plan = cudnn_graph_plan(&a->graph, device, backward && shape->nondeterministic,
                               most_workspace, &a->workspace);
}
