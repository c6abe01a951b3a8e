/* Max pooling over 2x2 windows of channels-last images. */
#include "kernels/cuda/divider.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/ops.h"

enum { THREADS = 256 };

struct image {
    struct divider C, W, H; /* of the tensor a thread is named by, last dimension first */
};

/* What is no number is larger than all, as in torch's max_pool2d. */
static __device__ bool is_larger(float b, float a)
{
    return b > a || b != b;
}

/* A thread an element of y: [B, H/2, W/2, C]. W_in: of x, whose images have H_in rows. */
template <typename T>
static __global__ void forward_kernel(T *y, uint8_t *index, const T *x, struct image z,
                                      uint32_t H_in, uint32_t W_in, uint32_t count)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    uint32_t c, w, h, b = divide(divide(divide(i, z.C, &c), z.W, &w), z.H, &h);
    const uint32_t C = z.C.divisor;
    const T *top = x + ((uint64_t)(b * H_in + 2 * h) * W_in + 2 * w) * C + c;
    const T *bottom = top + (uint64_t)W_in * C;
    float x0 = number_load(top), x1 = number_load(top + C);
    float x2 = number_load(bottom), x3 = number_load(bottom + C);
    const bool is_right = is_larger(x1, x0), is_lower_right = is_larger(x3, x2);
    const float upper = is_right ? x1 : x0, lower = is_lower_right ? x3 : x2;
    const bool is_lower = is_larger(lower, upper);
    number_store(y + i, is_lower ? lower : upper);
    index[i] = (uint8_t)(is_lower ? 2 + is_lower_right : is_right);
}

/* A thread an element of dx: [B, H, W, C]; those in an odd last row or column are in no window. */
template <typename T>
static __global__ void backward_kernel(T *dx, const uint8_t *index, const T *dy, struct image z,
                                       uint32_t H_out, uint32_t W_out, uint32_t count)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    uint32_t c, w, h, b = divide(divide(divide(i, z.C, &c), z.W, &w), z.H, &h);
    float d = 0;
    if (h / 2 < H_out && w / 2 < W_out) {
        const uint64_t out = ((uint64_t)(b * H_out + h / 2) * W_out + w / 2) * z.C.divisor + c;
        d = index[out] == h % 2 * 2 + w % 2 ? number_load(dy + out) : 0;
    }
    number_store(dx + i, d);
}

/* A launch counts elements in 32 bits: so many images at once. */
static int64_t images_at_once(int64_t H, int64_t W, int64_t C)
{
    const int64_t elements = H * W * C;
    assert(elements <= INT32_MAX);
    return elements > 0 ? INT32_MAX / elements : INT32_MAX;
}

static struct image image_of(int64_t H, int64_t W, int64_t C)
{
    struct image z = {divider_of(C), divider_of(W), divider_of(H)};
    return z;
}

static unsigned blocks_of(uint32_t count)
{
    return (count + THREADS - 1) / THREADS;
}

void cuda_max_pool2d_forward(struct stream *s, enum dtype t, void *y, uint8_t *index, const void *x,
                             int64_t B, int64_t H, int64_t W, int64_t C)
{
    const int64_t out = (H / 2) * (W / 2) * C, in = H * W * C, most = images_at_once(H, W, C);
    for (int64_t b = 0, n; b < B && out > 0; b += n) {
        n = B - b < most ? B - b : most;
        const uint32_t count = (uint32_t)(n * out);
        CUDA_FOR_DTYPE(t, T,
                       CUDA_LAUNCH(s, forward_kernel<T>, blocks_of(count), THREADS, 0,
                                   (T *)y + b * out, index + b * out, (const T *)x + b * in,
                                   image_of(H / 2, W / 2, C), (uint32_t)H, (uint32_t)W, count));
    }
}

void cuda_max_pool2d_backward(struct stream *s, enum dtype t, void *dx, const uint8_t *index,
                              const void *dy, int64_t B, int64_t H, int64_t W, int64_t C)
{
    const int64_t out = (H / 2) * (W / 2) * C, in = H * W * C, most = images_at_once(H, W, C);
    for (int64_t b = 0, n; b < B && in > 0; b += n) {
        n = B - b < most ? B - b : most;
        const uint32_t count = (uint32_t)(n * in);
        CUDA_FOR_DTYPE(t, T,
                       CUDA_LAUNCH(s, backward_kernel<T>, blocks_of(count), THREADS, 0,
                                   (T *)dx + b * in, index + b * out, (const T *)dy + b * out,
                                   image_of(H, W, C), (uint32_t)(H / 2), (uint32_t)(W / 2), count));
    }
}
