/* Linear layers: three matrix products by cuBLASLt, the bias in the product's epilogue. Not so
 * relu: cuBLASLt does not say what its own makes of a NaN, and ours keeps it. The gradient of the
 * bias is a sum of our own, in order. cuBLASLt's cannot be added to, and its order may be any: it
 * is for shapes that may be nondeterministic. */
#include "kernels/cuda/blas.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/sum_rows.h"

enum { TILE = 16 };

/* The product for which cuBLASLt has no algorithm, in tiles; c's columns go with blockIdx.y. */
template <class T, class C>
static __global__ void product_kernel(struct matmul p, const T *a, const T *b, const C *bias, C *c)
{
    /* One column more than needed: threads that read a column then meet different banks of shared
     * memory. */
    CUDA_BLOCK(float, part_a, [TILE][TILE + 1]);
    CUDA_BLOCK(float, part_b, [TILE][TILE + 1]);
    const int x = threadIdx.x, y = threadIdx.y;
    const int64_t row = (int64_t)blockIdx.x * TILE + y, col = (int64_t)blockIdx.y * TILE + x;
    float sum = 0;
    for (int64_t k = 0; k < p.k; k += TILE) {
        bool in_a = row < p.m && k + x < p.k, in_b = col < p.n && k + y < p.k;
        part_a[y][x] = in_a ? number_load(a + (p.trans_a ? (k + x) * p.a_stride + row
                                                         : row * p.a_stride + k + x))
                            : 0;
        part_b[y][x] = in_b ? number_load(b + (p.trans_b ? col * p.b_stride + k + y
                                                         : (k + y) * p.b_stride + col))
                            : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += part_a[y][i] * part_b[i][x];
        __syncthreads();
    }
    if (row >= p.m || col >= p.n)
        return;
    C *to = c + row * p.c_stride + col;
    if (bias)
        sum += number_load(bias + col);
    if (p.accumulate)
        sum += number_load(to);
    number_store(to, sum);
}

template <class T, class C>
static void own_product(struct stream *s, const struct matmul *p, const void *a, const void *b,
                        const void *bias, void *c)
{
    const dim3 grid((unsigned)((p->m + TILE - 1) / TILE), (unsigned)((p->n + TILE - 1) / TILE));
    CUDA_LAUNCH(s, (product_kernel<T, C>), grid, dim3(TILE, TILE), 0, *p, (const T *)a,
                (const T *)b, (const C *)bias, (C *)c);
}

/* bias: of c's dtype. */
static void product(struct stream *s, enum dtype t, const struct matmul *p, const void *a,
                    const void *b, const void *bias, void *c)
{
    if (p->m == 0 || (p->k == 0 && p->accumulate))
        return;
    if (p->k == 0) { /* a batch without rows: the gradient of weights, which is dense */
        assert(p->c_stride == p->n && p->t_c == DTYPE_F32);
        cuda_check(s,
                   cudaMemsetAsync(c, 0, (size_t)(p->m * p->n) * sizeof(float), cuda_captured(s)),
                   "linear: no rows");
        return;
    }
    if (blas_matmul(s, t, p, a, b, bias, c))
        return;
    if (t == DTYPE_F32)
        own_product<float, float>(s, p, a, b, bias, c);
    else if (p->t_c == DTYPE_F32)
        own_product<bf16, float>(s, p, a, b, bias, c);
    else
        own_product<bf16, bf16>(s, p, a, b, bias, c);
}

/* What the product leaves to be done: y = y + bias, if there is one, then max(0, y) if relu. A
 * block a row, a thread N neighbours at a time. */
template <int N, class Y, class T>
static __global__ void finish_kernel(Y *y, const T *bias, bool relu, int64_t out, int64_t y_stride)
{
    Y *row = y + (int64_t)blockIdx.x * y_stride;
    for (int64_t i = (int64_t)threadIdx.x * N; i < out; i += (int64_t)blockDim.x * N) {
        float x[N];
        if constexpr (N == 1)
            x[0] = number_load(row + i);
        else
            numbers_load(x, row + i);
        for (int j = 0; j < N; j++) {
            x[j] += bias ? number_load(bias + i + j) : 0;
            x[j] = relu && x[j] < 0 ? 0 : x[j];
        }
        if constexpr (N == 1)
            number_store(row + i, x[0]);
        else
            numbers_store(row + i, x);
    }
}

template <int N, class Y, class T>
static void finish_by(struct stream *s, Y *y, const T *bias, bool relu,
                      const struct linear_shape *z)
{
    const int64_t vectors = (z->out + N - 1) / N;
    const int threads = vectors >= 256 ? 256 : (int)((vectors + 31) / 32 * 32);
    CUDA_LAUNCH(s, (finish_kernel<N, Y, T>), (unsigned)z->rows, threads, 0, y, bias, relu, z->out,
                z->y_stride);
}

template <class Y, class T>
static void finish(struct stream *s, Y *y, const T *bias, bool relu, const struct linear_shape *z)
{
    constexpr int N = NUMBERS<Y>;
    if (z->out % N == 0 && z->y_stride % N == 0 && (uintptr_t)y % 16 == 0)
        finish_by<N>(s, y, bias, relu, z);
    else
        finish_by<1>(s, y, bias, relu, z);
}

void cuda_linear_forward(struct stream *s, enum dtype t, enum dtype t_y, void *y, const void *x,
                         const void *w, const void *bias, bool relu,
                         const struct linear_shape *shape)
{
    assert(t_y == t || t_y == DTYPE_F32);
    const struct matmul p = matmul_forward(shape, t_y);
    const void *in_product = t == t_y ? bias : NULL; /* its bias is of y's dtype */
    const void *left = t == t_y ? NULL : bias;
    product(s, t, &p, x, w, in_product, y);
    if (shape->rows == 0 || (!left && !relu))
        return;
    if (t_y == DTYPE_BF16)
        finish(s, (bf16 *)y, (const bf16 *)left, relu, shape);
    else if (t == DTYPE_BF16)
        finish(s, (float *)y, (const bf16 *)left, relu, shape);
    else
        finish(s, (float *)y, (const float *)left, relu, shape);
}

void cuda_linear_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                               const void *w, const struct linear_shape *shape, bool accumulate)
{
    const struct matmul p = matmul_backward_data(shape, t, accumulate);
    product(s, t, &p, dy, w, NULL, dx);
}

void cuda_linear_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                  const void *x, const void *dy, const struct linear_shape *shape,
                                  bool accumulate)
{
    const struct matmul p = matmul_backward_weights(shape, accumulate);
    const struct blas_finish finish = {shape->in_out ? BLAS_SUMS_OF_B : BLAS_SUMS_OF_A, dbias, NULL,
                                       0};
    if (dbias && shape->nondeterministic && !accumulate && shape->rows > 0 &&
        blas_matmul_finished(s, t, &p, shape->in_out ? x : dy, shape->in_out ? dy : x, &finish, dw))
        return;
    product(s, t, &p, shape->in_out ? x : dy, shape->in_out ? dy : x, NULL, dw);
    if (dbias)
        cuda_sum_rows(s, dbias, t, dy, shape->rows, shape->out, shape->y_stride, accumulate);
}

void cuda_linear_backward_bias(struct stream *s, enum dtype t, float *dbias, const void *dy,
                               const struct linear_shape *shape, bool accumulate)
{
    cuda_sum_rows(s, dbias, t, dy, shape->rows, shape->out, shape->y_stride, accumulate);
}
