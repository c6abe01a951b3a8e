/* Convolutions as matrix products whose left operand is never written: row m is a place of the
 * output, column k a place of the kernel and a channel (channel last, as in memory), and the
 * element is found in the image when a tile is loaded. Weights are brought into that order first,
 * and the gradient of weights is brought back when its partial sums are added up.
 *
 *   forward          y[m, o]  = sum over k of x at m + place(k)     * w[k, o]
 *   backward data    dx[m, i] = sum over k of dy at m - place(k)    * w[k, i], 0 outside of dy
 *   backward weights dw[o, k] = sum over m of dy[m, o]              * x at m + place(k)
 *
 * Images are of either dtype, T; tiles are fp32, and so are weights once they
 * are in order. */
#include "kernels/cuda/divider.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/sum_rows.h"

/* A block makes a tile of TILE_M x TILE_N, TILE_K terms at a time; a thread ROWS x COLS of it. */
enum { TILE_M = 64, TILE_K = 16, THREADS = 128, COLS = 4 };
enum { A_LOADS = TILE_M * TILE_K / THREADS };
enum { SPLIT_PLACES = 512, MOST_SPLITS = 128 }; /* of the sum over places */

template <int TILE_N> struct tile {
    static const int ROWS = TILE_M * TILE_N / (THREADS * COLS);
    static const int B_LOADS = TILE_N * TILE_K / THREADS;
    /* one pair is multiplied while the other is filled; the rows of a keep off each
     * other's banks */
    alignas(16) float a[2][TILE_K][TILE_M + 4];
    alignas(16) float b[2][TILE_K][TILE_N];
};

/* How (m, k) leads into an image. */
template <typename T> struct patches {
    const T *image; /* [B, H, W, C] */
    uint32_t H, W;
    struct divider places, width; /* of the output, and its rows */
    struct divider channels;      /* C */
    struct divider kernel_width;
    int step; /* 1: place(k) is added, -1: subtracted */
};

/* Where in the image a row m begins, and how far from there a column k lies. */
struct corner {
    uint32_t pixel, h, w;
};
struct offset {
    uint32_t h, w, channel;
};

template <typename T>
static __device__ inline struct corner corner_of(const patches<T> &p, uint32_t m)
{
    struct corner c;
    uint32_t pixel, image = divide(m, p.places, &pixel);
    c.h = divide(pixel, p.width, &c.w);
    c.pixel = (image * p.H + c.h) * p.W + c.w;
    return c;
}

template <typename T>
static __device__ inline struct offset offset_of(const patches<T> &p, uint32_t k)
{
    struct offset o;
    uint32_t tap = divide(k, p.channels, &o.channel);
    o.h = divide(tap, p.kernel_width, &o.w);
    return o;
}

template <typename T>
static __device__ inline float patch_at(const patches<T> &p, const struct corner &c,
                                        const struct offset &o)
{
    /* below 0 is far above H as well */
    if (c.h + p.step * o.h >= p.H || c.w + p.step * o.w >= p.W)
        return 0;
    uint32_t pixel = c.pixel + p.step * (o.h * p.W + o.w);
    return number_load(p.image + (uint64_t)pixel * p.channels.divisor + o.channel);
}

/* The operands of forward and backward data, for one thread. weights: [k_count, n_count]. */
template <typename T, int TILE_N> struct image_product {
    const patches<T> &p;
    const float *weights;
    uint32_t m_count, n_count, k_count, m_first, n_first;
    struct corner corners[A_LOADS];

    __device__ image_product(const patches<T> &image, const float *w, uint32_t ms, uint32_t ns,
                             uint32_t ks)
        : p(image), weights(w), m_count(ms), n_count(ns), k_count(ks)
    {
        m_first = blockIdx.x * TILE_M;
        n_first = blockIdx.y * TILE_N;
        for (int i = 0; i < A_LOADS; i++)
            corners[i] = corner_of(p, m_first + a_row(i) < m_count ? m_first + a_row(i) : 0);
    }
    static __device__ int a_row(int i)
    {
        return (int)threadIdx.x / TILE_K + i * (THREADS / TILE_K);
    }
    static __device__ int a_k(int)
    {
        return (int)threadIdx.x % TILE_K;
    }
    __device__ void load(uint32_t k, float *a, float *b) const
    {
        const uint32_t a_at = k + a_k(0);
        const struct offset offset = offset_of(p, a_at);
#pragma unroll
        for (int i = 0; i < A_LOADS; i++)
            a[i] = a_at < k_count && m_first + a_row(i) < m_count ? patch_at(p, corners[i], offset)
                                                                  : 0;
#pragma unroll
        for (int i = 0; i < tile<TILE_N>::B_LOADS; i++) {
            const uint32_t b_k = k + threadIdx.x / TILE_N + i * (THREADS / TILE_N);
            const uint32_t n = n_first + threadIdx.x % TILE_N;
            b[i] = b_k < k_count && n < n_count ? weights[(uint64_t)b_k * n_count + n] : 0;
        }
    }
};

/* Those of backward weights: a is dy, [places, out], b the patches. The sum goes over places, up to
 * m_last. */
template <typename T, int TILE_N> struct weights_product {
    const patches<T> &p;
    const T *dy;
    uint32_t m_last, out, out_first;
    bool is_patch; /* the thread's column of b is one */
    struct offset offset;

    __device__ weights_product(const patches<T> &image, const T *gradient, uint32_t last,
                               uint32_t outs, uint32_t k_count)
        : p(image), dy(gradient), m_last(last), out(outs)
    {
        const uint32_t k = blockIdx.y * TILE_N + threadIdx.x % TILE_N;
        out_first = blockIdx.z * TILE_M;
        is_patch = k < k_count;
        offset = offset_of(p, is_patch ? k : 0);
    }
    static __device__ int a_row(int)
    {
        return (int)threadIdx.x % TILE_M;
    }
    static __device__ int a_k(int i)
    {
        return (int)threadIdx.x / TILE_M + i * (THREADS / TILE_M);
    }
    __device__ void load(uint32_t m, float *a, float *b) const
    {
        const uint32_t o = out_first + a_row(0);
#pragma unroll
        for (int i = 0; i < A_LOADS; i++) {
            const uint32_t a_m = m + a_k(i);
            a[i] = a_m < m_last && o < out ? number_load(dy + (uint64_t)a_m * out + o) : 0;
        }
#pragma unroll
        for (int i = 0; i < tile<TILE_N>::B_LOADS; i++) {
            const uint32_t b_m = m + threadIdx.x / TILE_N + i * (THREADS / TILE_N);
            b[i] = is_patch && b_m < m_last ? patch_at(p, corner_of(p, b_m), offset) : 0;
        }
    }
};

template <int TILE_N, class Product>
static __device__ inline void fill(struct tile<TILE_N> &tile, int which, const float *a,
                                   const float *b)
{
#pragma unroll
    for (int i = 0; i < A_LOADS; i++)
        tile.a[which][Product::a_k(i)][Product::a_row(i)] = a[i];
#pragma unroll
    for (int i = 0; i < tile.B_LOADS; i++)
        tile.b[which][threadIdx.x / TILE_N + i * (THREADS / TILE_N)][threadIdx.x % TILE_N] = b[i];
}

/* The thread's place in the tile. */
template <int TILE_N> static __device__ inline int first_row()
{
    return (int)threadIdx.x / (TILE_N / COLS) * tile<TILE_N>::ROWS;
}
template <int TILE_N> static __device__ inline int first_col()
{
    return (int)threadIdx.x % (TILE_N / COLS) * COLS;
}

/* sum = the thread's part of a tile's product, over terms first .. last. */
template <int TILE_N, class Product>
static __device__ inline void multiply(float (&sum)[tile<TILE_N>::ROWS][COLS],
                                       struct tile<TILE_N> &tile, const Product &product,
                                       uint32_t first, uint32_t last)
{
    float a[A_LOADS], b[::tile<TILE_N>::B_LOADS];
    const int row = first_row<TILE_N>(), col = first_col<TILE_N>();
    for (int i = 0; i < tile.ROWS; i++)
        for (int j = 0; j < COLS; j++)
            sum[i][j] = 0;
    product.load(first, a, b);
    fill<TILE_N, Product>(tile, 0, a, b);
    __syncthreads();
    for (uint32_t at = first, which = 0; at < last; at += TILE_K, which ^= 1) {
        const bool more = at + TILE_K < last;
        if (more)
            product.load(at + TILE_K, a, b);
#pragma unroll
        for (int k = 0; k < TILE_K; k++)
#pragma unroll
            for (int i = 0; i < tile.ROWS; i++)
#pragma unroll
                for (int j = 0; j < COLS; j++)
                    sum[i][j] += tile.a[which][k][row + i] * tile.b[which][k][col + j];
        if (more)
            fill<TILE_N, Product>(tile, (int)which ^ 1, a, b);
        __syncthreads();
    }
}

/* y: [m_count, n_count] = patches times weights, + bias if there is one, then max(0, .) if relu. */
template <typename T, int TILE_N>
static __global__ void __launch_bounds__(THREADS)
    image_kernel(T *y, const patches<T> image, const float *weights, const T *bias, bool relu,
                 uint32_t m_count, uint32_t n_count, uint32_t k_count)
{
    CUDA_BLOCK(struct tile<TILE_N>, tile);
    float sum[tile.ROWS][COLS];
    const image_product<T, TILE_N> product(image, weights, m_count, n_count, k_count);
    multiply<TILE_N>(sum, tile, product, 0, k_count);
    const uint32_t m = product.m_first + first_row<TILE_N>();
    const uint32_t n = product.n_first + first_col<TILE_N>();
    for (int i = 0; i < tile.ROWS; i++)
        for (int j = 0; j < COLS; j++)
            if (m + i < m_count && n + j < n_count) {
                float value = sum[i][j] + (bias ? number_load(bias + n + j) : 0);
                number_store(y + (uint64_t)(m + i) * n_count + n + j,
                             relu && value < 0 ? 0 : value);
            }
}

/* partials: [gridDim.x, out, k_count]: each the sum over split_places places. */
template <typename T, int TILE_N>
static __global__ void __launch_bounds__(THREADS)
    weights_kernel(float *partials, const patches<T> image, const T *dy, uint32_t m_count,
                   uint32_t split_places, uint32_t out, uint32_t k_count)
{
    CUDA_BLOCK(struct tile<TILE_N>, tile);
    float sum[tile.ROWS][COLS];
    const uint32_t first = blockIdx.x * split_places;
    const uint32_t last = first + split_places < m_count ? first + split_places : m_count;
    const weights_product<T, TILE_N> product(image, dy, last, out, k_count);
    multiply<TILE_N>(sum, tile, product, first, last);
    const uint32_t o = product.out_first + first_row<TILE_N>();
    const uint32_t k = blockIdx.y * TILE_N + first_col<TILE_N>();
    for (int i = 0; i < tile.ROWS; i++)
        for (int j = 0; j < COLS; j++)
            if (o + i < out && k + j < k_count)
                partials[((uint64_t)blockIdx.x * out + o + i) * k_count + k + j] = sum[i][j];
}

/* PyTorch's order of weights, [C_out, C_in, KH, KW]. */
struct weights_order {
    struct divider C_in, C_out, kernel; /* kernel: KH * KW */
};

/* packed: [KH * KW, C_in, C_out] (forward) or [KH * KW, C_out, C_in]. */
template <typename T>
static __global__ void pack_kernel(float *packed, const T *w, struct weights_order z, bool forward,
                                   uint32_t count)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const struct divider &inner = forward ? z.C_out : z.C_in, &outer = forward ? z.C_in : z.C_out;
    uint32_t fast, slow, tap = divide(divide(i, inner, &fast), outer, &slow);
    const uint32_t from = forward ? fast : slow, to = forward ? slow : fast;
    packed[i] = number_load(w + (from * z.C_in.divisor + to) * z.kernel.divisor + tap);
}

/* dw (+)= the partials, in order. partials: [count, C_out, KH * KW, C_in]. */
static __global__ void unpack_kernel(float *dw, const float *partials, uint32_t split_count,
                                     struct weights_order z, uint32_t count, bool accumulate)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; /* in partials' order */
    if (i >= count)
        return;
    float sum = 0;
    for (uint32_t split = 0; split < split_count; split++)
        sum += partials[(uint64_t)split * count + i];
    uint32_t in, tap, out = divide(divide(i, z.C_in, &in), z.kernel, &tap);
    float *to = dw + (out * z.C_in.divisor + in) * z.kernel.divisor + tap;
    *to = accumulate ? *to + sum : sum;
}

enum { PACK_THREADS = 256 };

static unsigned blocks_for(uint32_t count, uint32_t each)
{
    return (count + each - 1) / each;
}

static struct weights_order order_of(const struct conv2d_shape *z)
{
    struct weights_order order = {divider_of(z->C_in), divider_of(z->C_out),
                                  divider_of(z->KH * z->KW)};
    return order;
}

static uint32_t weights_count(const struct conv2d_shape *z)
{
    return (uint32_t)(z->C_in * z->C_out * z->KH * z->KW);
}

static void check(const struct conv2d_shape *z)
{
    assert(z->KH >= 1 && z->KW >= 1 && z->H >= z->KH && z->W >= z->KW);
    assert(z->B >= 0 && z->C_in >= 1 && z->C_out >= 1);
    assert(z->B * z->H * z->W <= INT32_MAX && z->C_in * z->C_out * z->KH * z->KW <= INT32_MAX);
}

/* Of an x, for each place of y (forward), or of a dy, for each place of x. */
template <typename T>
static patches<T> patches_of(const void *image, bool forward, const struct conv2d_shape *z)
{
    const int64_t H_out = z->H - z->KH + 1, W_out = z->W - z->KW + 1;
    const int64_t H = forward ? z->H : H_out, W = forward ? z->W : W_out;
    const int64_t rows = forward ? H_out : z->H, width = forward ? W_out : z->W;
    patches<T> p = {(const T *)image,  (uint32_t)H,
                    (uint32_t)W,       divider_of(rows * width),
                    divider_of(width), divider_of(forward ? z->C_in : z->C_out),
                    divider_of(z->KW), forward ? 1 : -1};
    return p;
}

template <typename T>
static void run_image_kernel(struct stream *s, void *y, const void *x, const void *w,
                             const void *bias, bool relu, bool forward,
                             const struct conv2d_shape *z)
{
    const patches<T> image = patches_of<T>(x, forward, z);
    const uint32_t m = (uint32_t)z->B * image.places.divisor, weights = weights_count(z);
    const uint32_t n = (uint32_t)(forward ? z->C_out : z->C_in), k = weights / n;
    float *packed = (float *)cuda_scratch(s, weights * sizeof *packed);
    if (!packed || m == 0)
        return;
    CUDA_LAUNCH(s, pack_kernel<T>, blocks_for(weights, PACK_THREADS), PACK_THREADS, 0, packed,
                (const T *)w, order_of(z), forward, weights);
    if (n <= 32)
        CUDA_LAUNCH(s, (image_kernel<T, 32>), dim3(blocks_for(m, TILE_M), 1), THREADS, 0, (T *)y,
                    image, packed, (const T *)bias, relu, m, n, k);
    else
        CUDA_LAUNCH(s, (image_kernel<T, 64>), dim3(blocks_for(m, TILE_M), blocks_for(n, 64)),
                    THREADS, 0, (T *)y, image, packed, (const T *)bias, relu, m, n, k);
}

void cuda_conv2d_forward(struct stream *s, enum dtype t, void *y, const void *x, const void *w,
                         const void *bias, bool relu, const struct conv2d_shape *shape)
{
    check(shape);
    CUDA_FOR_DTYPE(t, T, run_image_kernel<T>(s, y, x, w, bias, relu, true, shape));
}

void cuda_conv2d_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                               const void *w, const struct conv2d_shape *shape)
{
    check(shape);
    CUDA_FOR_DTYPE(t, T, run_image_kernel<T>(s, dx, dy, w, NULL, false, false, shape));
}

template <typename T>
static void backward_weights(struct stream *s, float *dw, const void *x, const T *dy,
                             const struct conv2d_shape *z, bool accumulate)
{
    const patches<T> image = patches_of<T>(x, true, z);
    const uint32_t m = (uint32_t)z->B * image.places.divisor, weights = weights_count(z);
    const uint32_t out = (uint32_t)z->C_out, k = weights / out, most = MOST_SPLITS;
    const uint32_t wanted = blocks_for(m, SPLIT_PLACES), count = wanted < most ? wanted : most;
    const uint32_t split_places = blocks_for(m, count);
    float *partials = (float *)cuda_scratch(s, (size_t)count * weights * sizeof *partials);
    if (!partials)
        return;
    const unsigned out_tiles = blocks_for(out, TILE_M);
    if (k <= 32)
        CUDA_LAUNCH(s, (weights_kernel<T, 32>), dim3(count, 1, out_tiles), THREADS, 0, partials,
                    image, dy, m, split_places, out, k);
    else
        CUDA_LAUNCH(s, (weights_kernel<T, 64>), dim3(count, blocks_for(k, 64), out_tiles), THREADS,
                    0, partials, image, dy, m, split_places, out, k);
    CUDA_LAUNCH(s, unpack_kernel, blocks_for(weights, PACK_THREADS), PACK_THREADS, 0, dw, partials,
                count, order_of(z), weights, accumulate);
}

void cuda_conv2d_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                  const void *x, const void *dy, const struct conv2d_shape *shape,
                                  bool accumulate)
{
    const struct conv2d_shape *z = shape;
    check(z);
    assert(z->B >= 1);
    if (dbias)
        cuda_sum_rows(s, dbias, t, dy, z->B * (z->H - z->KH + 1) * (z->W - z->KW + 1), z->C_out,
                      z->C_out, accumulate);
    CUDA_FOR_DTYPE(t, T, backward_weights<T>(s, dw, x, (const T *)dy, z, accumulate));
}
