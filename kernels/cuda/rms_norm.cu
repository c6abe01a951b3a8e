/* Root mean square normalisation (Zhang and Sennrich 2019), fused with the residual's addition
 * before it: apart, the sum would be written and read again, and both ops are bound by memory. A
 * row is read twice. The second read hits the L1 cache, which holds twice the rows that a
 * multiprocessor's threads work on. */
#include "kernels/cuda/norm.h"
#include "kernels/cuda/ops.h"

template <class T, int N>
static __global__ void rms_norm_forward(T *__restrict__ y, float *rstd, T *__restrict__ x,
                                        const T *__restrict__ residual, const T *__restrict__ w,
                                        int64_t rows, int D, float eps, int lanes)
{
    CUDA_BLOCK(struct group_room<1>, room);
    int64_t row = row_of(lanes);
    int lane = (int)threadIdx.x % lanes, length = row < rows ? D : 0;
    float squares[1] = {0}, a[N], b[N];
#pragma unroll 4
    for (int i = lane * N; i < length; i += lanes * N) {
        norm_load(a, x, residual, row * D + i);
#pragma unroll
        for (int j = 0; j < N; j++)
            squares[0] += a[j] * a[j];
    }
    group_sums(squares, lanes, 0, &room);
    float r = 1 / sqrtf(squares[0] / (float)D + eps);
    if (lane == 0 && row < rows)
        rstd[row] = r;
#pragma unroll 4
    for (int i = lane * N; i < length; i += lanes * N) {
        load(a, x + row * D + i);
        load(b, w + i);
#pragma unroll
        for (int j = 0; j < N; j++)
            /* Rounded before the product with the weight, as transformers' LlamaRMSNorm does. */
            a[j] = number_round<T>(a[j] * r) * b[j];
        store(y + row * D + i, a);
    }
}

void cuda_rms_norm_forward(struct stream *s, enum dtype t, void *y, float *rstd, void *x,
                           const void *residual, const void *w, int64_t rows, int64_t D, float eps)
{
    assert(D >= 1 && D <= INT32_MAX / 2);
    bool wide = norm_is_wide(t, D, x, y, w) && is_aligned(residual);
    for_dtype(t, wide, [&](auto element, auto count) {
        using T = decltype(element);
        constexpr int N = decltype(count)::value;
        int lanes = row_lanes(D / N);
        CUDA_LAUNCH(s, (rms_norm_forward<T, N>), cuda_blocks(rows, ROW_THREADS / lanes, INT32_MAX),
                    ROW_THREADS, 0, (T *)y, rstd, (T *)x, (const T *)residual, (const T *)w, rows,
                    (int)D, eps, lanes);
    });
}

/* A row's dx = rstd * (w dy - z * mean(w dy z)), z = x * rstd, and its share of dw: dy * z. z is
 * rounded for dw as forward rounded it before the product with w. */
template <class T, int N>
static __global__ void rms_norm_backward(T *dx, bool add_dx, const T *dy, const T *__restrict__ x,
                                         const T *__restrict__ w, const float *rstd, int64_t rows,
                                         int D, struct norm_plan plan)
{
    CUDA_SHARED(float, shared);
    CUDA_BLOCK(struct group_room<1>, room);
    int lanes = plan.lanes, lane = (int)threadIdx.x % lanes, groups = ROW_THREADS / lanes, half = 0;
    float *dw = norm_sums<N>(&plan, shared, D), a[N], b[N], c[N];
    for (int64_t first = (int64_t)blockIdx.x * groups; first < rows;
         first += (int64_t)gridDim.x * groups, half ^= 1) {
        int64_t row = first + (int)threadIdx.x / lanes;
        int length = row < rows ? D : 0;
        float sum[1] = {0}, r = row < rows ? rstd[row] : 0;
#pragma unroll 4
        for (int i = lane * N; i < length; i += lanes * N) {
            load(a, x + row * D + i);
            load(b, w + i);
            load(c, dy + row * D + i);
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[0] += b[j] * c[j] * a[j];
        }
        group_sums(sum, lanes, half, &room);
        float mean = sum[0] / (float)D * r;
#pragma unroll 2
        for (int i = lane * N; i < length; i += lanes * N) {
            load(a, x + row * D + i);
            load(b, w + i);
            load(c, dy + row * D + i);
            float share[N];
#pragma unroll
            for (int j = 0; j < N; j++) {
                share[j] = c[j] * number_round<T>(a[j] * r);
                a[j] = r * (b[j] * c[j] - a[j] * r * mean);
            }
            norm_store(dx + row * D + i, a, add_dx);
            add_to(dw + i, share);
        }
    }
    norm_finish(&plan, shared);
}

void cuda_rms_norm_backward(struct stream *s, enum dtype t, void *dx, bool add_dx, float *dw,
                            const void *dy, const void *x, const void *w, const float *rstd,
                            int64_t rows, int64_t D, bool accumulate)
{
    assert(D >= 1 && D <= INT32_MAX / 2);
    struct norm_plan plan = {};
    for_dtype(t, norm_is_wide(t, D, x, dx, w) && is_aligned(dy), [&](auto element, auto count) {
        using T = decltype(element);
        constexpr int N = decltype(count)::value;
        plan = norm_plan_of(s, rows, D / N, D);
        if (plan.partials)
            CUDA_LAUNCH(s, (rms_norm_backward<T, N>), plan.blocks, ROW_THREADS, plan.shared_bytes,
                        (T *)dx, add_dx, (const T *)dy, (const T *)x, (const T *)w, rstd, rows,
                        (int)D, plan);
    });
    if (plan.partials)
        cuda_sum_rows(s, dw, DTYPE_F32, plan.partials, plan.blocks, D, D, accumulate);
}
