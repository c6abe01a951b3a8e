/* Division by a number that the host knows, in three instructions instead of twenty (Granlund and
 * Montgomery 1994). Index arithmetic of images needs many. */
#ifndef SHOAL_KERNELS_CUDA_DIVIDER_H
#define SHOAL_KERNELS_CUDA_DIVIDER_H

#include "kernels/cuda/cuda.h"

struct divider {
    uint32_t divisor, multiplier, shift;
};

/* divisor: 1 .. 2^31 - 1. */
static inline struct divider divider_of(int64_t divisor)
{
    assert(divisor >= 1 && divisor <= INT32_MAX);
    uint32_t shift = 0;
    while ((INT64_C(1) << shift) < divisor)
        shift++;
    uint64_t multiplier =
        ((UINT64_C(1) << 32) * ((UINT64_C(1) << shift) - (uint64_t)divisor)) / (uint64_t)divisor +
        1;
    struct divider d = {(uint32_t)divisor, (uint32_t)multiplier, shift};
    return d;
}

#ifdef __cplusplus
/* n / divisor for n < 2^31, and the remainder. */
static __device__ inline uint32_t divide(uint32_t n, const struct divider &d,
                                         uint32_t *ret_remainder)
{
    uint32_t high = (uint32_t)(((uint64_t)n * d.multiplier) >> 32);
    uint32_t quotient = (high + n) >> d.shift;
    *ret_remainder = n - quotient * d.divisor;
    return quotient;
}
#endif

#endif
