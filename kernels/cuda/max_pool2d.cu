/* Max pooling over 2x2 windows of channels-last images. */
#include "kernels/cuda/divider.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/ops.h"

enum { THREADS = 256 };

struct image {
    struct divider C, W, H; /* of the tensor a thread is named by, last dimension first */
};

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
    float upper = x1 > x0 ? x1 : x0, lower = x3 > x2 ? x3 : x2;
    int upper_index = x1 > x0 ? 1 : 0, lower_index = x3 > x2 ? 3 : 2;
    number_store(y + i, lower > upper ? lower : upper);
    index[i] = (uint8_t)(lower > upper ? lower_index : upper_index);
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

/* Elements of [B, H, W, C]. */
static uint32_t count_of(int64_t B, int64_t H, int64_t W, int64_t C)
{
    assert(B * H * W * C <= INT32_MAX);
    return (uint32_t)(B * H * W * C);
}

static struct image image_of(int64_t H, int64_t W, int64_t C)
{
    struct image z = {divider_of(C), divider_of(W), divider_of(H)};
    return z;
}

void cuda_max_pool2d_forward(struct stream *s, enum dtype t, void *y, uint8_t *index, const void *x,
                             int64_t B, int64_t H, int64_t W, int64_t C)
{
    const uint32_t count = count_of(B, H / 2, W / 2, C);
    if (count > 0)
        CUDA_FOR_DTYPE(t, T,
                       CUDA_LAUNCH(s, forward_kernel<T>, (count + THREADS - 1) / THREADS, THREADS,
                                   0, (T *)y, index, (const T *)x, image_of(H / 2, W / 2, C),
                                   (uint32_t)H, (uint32_t)W, count));
}

void cuda_max_pool2d_backward(struct stream *s, enum dtype t, void *dx, const uint8_t *index,
                              const void *dy, int64_t B, int64_t H, int64_t W, int64_t C)
{
    const uint32_t count = count_of(B, H, W, C);
    if (count > 0)
        CUDA_FOR_DTYPE(t, T,
                       CUDA_LAUNCH(s, backward_kernel<T>, (count + THREADS - 1) / THREADS, THREADS,
                                   0, (T *)dx, index, (const T *)dy, image_of(H, W, C),
                                   (uint32_t)(H / 2), (uint32_t)(W / 2), count));
}
