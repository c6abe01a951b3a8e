/* Images of bytes to numbers. */
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/ops.h"

enum { THREADS = 256 };

template <typename T>
static __global__ void normalize_kernel(T *y, const uint8_t *x, int64_t count, float mean,
                                        float stddev)
{
    for (int64_t i = grid_thread(); i < count; i += grid_threads())
        number_store(y + i, ((float)x[i] / 255.0f - mean) / stddev);
}

void cuda_normalize(struct stream *s, enum dtype t, void *y, const uint8_t *x, int64_t count,
                    float mean, float stddev)
{
    if (count > 0)
        CUDA_FOR_DTYPE(t, T,
                       CUDA_LAUNCH(s, normalize_kernel<T>,
                                   cuda_blocks(count, THREADS, 16 * cuda_multiprocessors(s)),
                                   THREADS, 0, (T *)y, x, count, mean, stddev));
}
