/* torch.nn.utils.clip_grad_norm_ with a norm that stays on the device. */
#include "kernels/cuda/map.h"
#include "kernels/cuda/ops.h"

template <int N>
static __global__ void clip(float *y, const double *sum_of_squares, float max_norm, int64_t count)
{
    float factor = (float)(max_norm / (sqrt(*sum_of_squares) + 1e-6)), x[N];
    if (factor >= 1)
        return; /* and a NaN goes on */
    int64_t whole = count / N * N;
    for (int64_t i = grid_thread() * N; i < whole; i += grid_threads() * N) {
        load(x, y + i);
#pragma unroll
        for (int j = 0; j < N; j++)
            x[j] *= factor;
        store(y + i, x);
    }
    if (grid_thread() < count - whole)
        y[whole + grid_thread()] *= factor;
}

void cuda_clip(struct stream *s, float *y, const double *sum_of_squares, float max_norm,
               int64_t count)
{
    unsigned blocks = map_blocks(s, count, 4);
    if (is_aligned(y))
        CUDA_LAUNCH(s, clip<4>, blocks, MAP_THREADS, 0, y, sum_of_squares, max_norm, count);
    else
        CUDA_LAUNCH(s, clip<1>, blocks, MAP_THREADS, 0, y, sum_of_squares, max_norm, count);
}
