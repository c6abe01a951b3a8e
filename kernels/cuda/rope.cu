/* Rotary position embedding (Su et al. 2021; kernels/cpu/rope.c says which pairs). A thread has N
 * neighbouring pairs of a token in HEADS of its heads: the op is bound by memory, and so it reads
 * the angles once for all of them. */
#include "kernels/cuda/ops.h"
#include "kernels/cuda/wide.h"

enum { THREADS = 128, HEADS = 8 /* of a thread */ };

template <class T, int N>
static __global__ void rope(T *x, const float *__restrict__ cos, const float *__restrict__ sin,
                            int64_t tokens, int64_t period, int heads, int hd, int64_t stride,
                            float direction)
{
    int half = hd / 2, columns = half / N, groups = (heads + HEADS - 1) / HEADS;
    int64_t thread = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t token = thread / (columns * groups);
    if (token >= tokens)
        return;
    int index = (int)(thread - token * columns * groups);
    int column = index % columns * N, first = index / columns * HEADS;
    int last = first + HEADS < heads ? first + HEADS : heads;
    float c[N], s[N], low[N], high[N];
    load(c, cos + token % period * half + column);
    load(s, sin + token % period * half + column);
#pragma unroll 4
    for (int head = first; head < last; head++) {
        T *at = x + token * stride + (int64_t)head * hd + column;
        load(low, at);
        load(high, at + half);
#pragma unroll
        for (int i = 0; i < N; i++) {
            /* A rotation's inverse is its transpose: backward is the same with the sine's sign
             * turned. */
            float a = low[i], b = high[i], signed_sin = direction * s[i];
            low[i] = a * c[i] - b * signed_sin;
            high[i] = b * c[i] + a * signed_sin;
        }
        store(at, low);
        store(at + half, high);
    }
}

void cuda_rope(struct stream *s, enum dtype t, void *x, const float *cos, const float *sin,
               int64_t B, int64_t T, int64_t heads, int64_t hd, int64_t stride, bool inverse)
{
    assert(hd >= 2 && hd % 2 == 0 && heads >= 1 && stride >= heads * hd);
    int64_t bytes = (int64_t)dtype_bytes(t);
    bool wide = is_aligned(x) && is_aligned(cos) && is_aligned(sin) && is_aligned(hd / 2 * bytes) &&
                is_aligned(stride * bytes);
    for_dtype(t, wide, [&](auto element, auto count) {
        using E = decltype(element);
        constexpr int N = decltype(count)::value;
        int64_t threads = B * T * (hd / 2 / N) * ((heads + HEADS - 1) / HEADS);
        CUDA_LAUNCH(s, (rope<E, N>), cuda_blocks(threads, THREADS, INT32_MAX), THREADS, 0, (E *)x,
                    cos, sin, B * T, T, (int)heads, (int)hd, stride, inverse ? -1.0f : 1.0f);
    });
}
