/* Sums that are the same however gradients are cut into slices, and batches dealt to ranks. For the
 * norm each thread adds blocks of neighbours to a long whole number of its own, and these add up
 * exactly in any order. */
#include "kernels/cuda/ops.h"
#include "kernels/cuda/wide.h"
#include "kernels/exact_sum.h"

enum { THREADS = 128, MOST_BLOCKS = 512 };
static_assert(MOST_BLOCKS * (EXACT_CUTS + 1LL) <= 1LL << 21, "doubles hold what all cuts add");

static __global__ void exact_squares(double *digits, const float *__restrict__ x, int64_t blocks)
{
    CUDA_BLOCK(unsigned long long, sums, [EXACT_DIGITS]);
    uint64_t mine[EXACT_DIGITS] = {0};
    for (int64_t i = grid_thread(); i < blocks; i += grid_threads())
        exact_add(mine, exact_block(x + i * EXACT_BLOCK));
    exact_carry(mine);
    if (threadIdx.x < EXACT_DIGITS)
        sums[threadIdx.x] = 0;
    __syncthreads();
    for (int d = 0; d < EXACT_DIGITS; d++)
        if (mine[d] > 0)
            atomicAdd(&sums[d], (unsigned long long)mine[d]);
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    /* Digits below 2^32 again: so the blocks of a launch add less than EXACT_CUTS allows. */
    for (int d = 0; d < EXACT_DIGITS; d++)
        mine[d] = sums[d];
    exact_carry(mine);
    for (int d = 0; d < EXACT_DIGITS; d++)
        if (mine[d] > 0)
            atomicAdd(&digits[d], (double)mine[d]);
}

void cuda_exact_squares(struct stream *s, double *digits, const float *x, int64_t count)
{
    int64_t blocks = count / EXACT_BLOCK;
    CUDA_LAUNCH(s, exact_squares, cuda_blocks(blocks, THREADS, MOST_BLOCKS), THREADS, 0, digits, x,
                blocks);
}

static __global__ void exact_carry_digits(double *digits)
{
    uint64_t whole[EXACT_DIGITS];
    for (int d = 0; d < EXACT_DIGITS; d++)
        whole[d] = (uint64_t)digits[d];
    exact_carry(whole);
    for (int d = 0; d < EXACT_DIGITS; d++)
        digits[d] = (double)whole[d];
}

void cuda_exact_carry(struct stream *s, double *digits)
{
    CUDA_LAUNCH(s, exact_carry_digits, 1, 1, 0, digits);
}

static __global__ void exact_sum(double *sum, const double *digits)
{
    uint64_t whole[EXACT_DIGITS];
    for (int d = 0; d < EXACT_DIGITS; d++)
        whole[d] = (uint64_t)digits[d];
    *sum = exact_value(whole);
}

void cuda_exact_sum(struct stream *s, double *sum, const double *digits)
{
    CUDA_LAUNCH(s, exact_sum, 1, 1, 0, sum, digits);
}

static __global__ void add_parts(double *sums, double *parts, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += exact_part(parts[i]);
        parts[i] = 0;
    }
}

void cuda_exact_add(struct stream *s, double *sums, double *parts, int64_t count)
{
    CUDA_LAUNCH(s, add_parts, 1, 1, 0, sums, parts, count);
}
