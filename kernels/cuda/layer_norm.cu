/* Layer normalisation (Ba, Kiros and Hinton 2016), as torch.nn.LayerNorm, fused with the residual's
 * addition before it (rms_norm.cu says why). The variance is that of x - mean, in a second pass:
 * mean(x^2)
 * - mean^2 loses all digits where the mean is large. Only the first pass reads beyond
 * the L1 cache. */
#include "kernels/cuda/norm.h"
#include "kernels/cuda/ops.h"

/* The group's sum of x - shift, or of its square; of x after the residual was added (norm_load). */
template <int N, bool SQUARE, class T>
static __device__ inline float row_sum(T *__restrict__ x, const T *__restrict__ residual,
                                       int length, float shift, int lanes, int half,
                                       struct group_room<1> *room)
{
    float sum[1] = {0}, a[N];
#pragma unroll 4
    for (int i = (int)threadIdx.x % lanes * N; i < length; i += lanes * N) {
        norm_load(a, x, residual, i);
#pragma unroll
        for (int j = 0; j < N; j++)
            sum[0] += SQUARE ? (a[j] - shift) * (a[j] - shift) : a[j] - shift;
    }
    group_sums(sum, lanes, half, room);
    return sum[0];
}

template <class T, int N>
static __global__ void layer_norm_forward(T *__restrict__ y, float *stats, T *__restrict__ x,
                                          const T *__restrict__ residual, const T *__restrict__ w,
                                          const T *__restrict__ bias, int64_t rows, int D,
                                          float eps, int lanes)
{
    CUDA_BLOCK(struct group_room<1>, room);
    int64_t row = row_of(lanes), at = row * D;
    int lane = (int)threadIdx.x % lanes, length = row < rows ? D : 0;
    const T *none = nullptr, *added = residual ? residual + at : none;
    float mean = row_sum<N, false>(x + at, added, length, 0, lanes, 0, &room) / (float)D;
    float variance = row_sum<N, true>(x + at, none, length, mean, lanes, 1, &room) / (float)D;
    float rstd = 1 / sqrtf(variance + eps), a[N], b[N], c[N];
    if (lane == 0 && row < rows) {
        stats[2 * row] = mean;
        stats[2 * row + 1] = rstd;
    }
#pragma unroll 4
    for (int i = lane * N; i < length; i += lanes * N) {
        load(a, x + at + i);
        load(b, w + i);
        load(c, bias + i);
#pragma unroll
        for (int j = 0; j < N; j++)
            a[j] = b[j] * ((a[j] - mean) * rstd) + c[j];
        store(y + at + i, a);
    }
}

void cuda_layer_norm_forward(struct stream *s, enum dtype t, void *y, float *stats, void *x,
                             const void *residual, const void *w, const void *bias, int64_t rows,
                             int64_t D, float eps)
{
    assert(D >= 1 && D <= INT32_MAX / 2);
    bool wide = norm_is_wide(t, D, x, y, w) && is_aligned(bias) && is_aligned(residual);
    for_dtype(t, wide, [&](auto element, auto count) {
        using T = decltype(element);
        constexpr int N = decltype(count)::value;
        int lanes = row_lanes(D / N);
        CUDA_LAUNCH(s, (layer_norm_forward<T, N>),
                    cuda_blocks(rows, ROW_THREADS / lanes, INT32_MAX), ROW_THREADS, 0, (T *)y,
                    stats, (T *)x, (const T *)residual, (const T *)w, (const T *)bias, rows, (int)D,
                    eps, lanes);
    });
}

/* A row's dx = rstd * (w dy - mean(w dy) - z * mean(w dy z)), z = (x - mean) * rstd, and its shares
 * of dw and, D elements behind, dbias. */
template <class T, int N>
static __device__ inline void backward_row(T *dx, bool add_dx, const T *dy, const T *__restrict__ x,
                                           const T *__restrict__ w, float mean, float rstd,
                                           int length, int lanes, int half,
                                           struct group_room<2> *room, float *dw)
{
    float sums[2] = {0, 0}, a[N], b[N], c[N]; /* of w dy and of w dy z */
    int start = (int)threadIdx.x % lanes * N;
#pragma unroll 4
    for (int i = start; i < length; i += lanes * N) {
        load(a, x + i);
        load(b, w + i);
        load(c, dy + i);
#pragma unroll
        for (int j = 0; j < N; j++) {
            sums[0] += b[j] * c[j];
            sums[1] += b[j] * c[j] * ((a[j] - mean) * rstd);
        }
    }
    group_sums(sums, lanes, half, room);
    float plain = sums[0] / (float)length, with_z = sums[1] / (float)length;
#pragma unroll 2
    for (int i = start; i < length; i += lanes * N) {
        load(a, x + i);
        load(b, w + i);
        load(c, dy + i);
        float share[N];
#pragma unroll
        for (int j = 0; j < N; j++) {
            float z = (a[j] - mean) * rstd;
            share[j] = c[j] * z;
            a[j] = rstd * (b[j] * c[j] - plain - z * with_z);
        }
        norm_store(dx + i, a, add_dx);
        add_to(dw + i, share);
        add_to(dw + length + i, c);
    }
}

template <class T, int N>
static __global__ void layer_norm_backward(T *dx, bool add_dx, const T *dy, const T *__restrict__ x,
                                           const T *__restrict__ w, const float *stats,
                                           int64_t rows, int D, struct norm_plan plan)
{
    CUDA_SHARED(float, shared);
    CUDA_BLOCK(struct group_room<2>, room);
    int lanes = plan.lanes, groups = ROW_THREADS / lanes, half = 0;
    float *dw = norm_sums<N>(&plan, shared, D);
    for (int64_t first = (int64_t)blockIdx.x * groups; first < rows;
         first += (int64_t)gridDim.x * groups, half ^= 1) {
        int64_t row = first + (int)threadIdx.x / lanes, at = row * D;
        bool mine = row < rows;
        backward_row<T, N>(dx + at, add_dx, dy + at, x + at, w, mine ? stats[2 * row] : 0,
                           mine ? stats[2 * row + 1] : 0, mine ? D : 0, lanes, half, &room, dw);
    }
    norm_finish(&plan, shared);
}

void cuda_layer_norm_backward(struct stream *s, enum dtype t, void *dx, bool add_dx, float *dw,
                              float *dbias, const void *dy, const void *x, const void *w,
                              const float *stats, int64_t rows, int64_t D, bool accumulate)
{
    assert(D >= 1 && D <= INT32_MAX / 2);
    struct norm_plan plan = {};
    for_dtype(t, norm_is_wide(t, D, x, dx, w) && is_aligned(dy), [&](auto element, auto count) {
        using T = decltype(element);
        constexpr int N = decltype(count)::value;
        plan = norm_plan_of(s, rows, D / N, 2 * D);
        if (plan.partials)
            CUDA_LAUNCH(s, (layer_norm_backward<T, N>), plan.blocks, ROW_THREADS, plan.shared_bytes,
                        (T *)dx, add_dx, (const T *)dy, (const T *)x, (const T *)w, stats, rows,
                        (int)D, plan);
    });
    if (!plan.partials)
        return;
    cuda_sum_rows(s, dw, DTYPE_F32, plan.partials, plan.blocks, D, 2 * D, accumulate);
    cuda_sum_rows(s, dbias, DTYPE_F32, plan.partials + D, plan.blocks, D, 2 * D, accumulate);
}
