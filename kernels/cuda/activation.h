/* The functions that activations are made of, with their slopes. Device code. */
#ifndef SHOAL_KERNELS_CUDA_ACTIVATION_H
#define SHOAL_KERNELS_CUDA_ACTIVATION_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus

/* By the special function units, off by a few units in the last place where it is not nearly 0 or
 * 1: what is stored in bf16 would otherwise wait for arithmetic, not for memory. */
static __device__ inline float sigmoid(float x)
{
    return __fdividef(1, 1 + __expf(-x));
}

/* x sigmoid(x). */
struct silu {
    static __device__ float value(float x)
    {
        return x * sigmoid(x);
    }
    static __device__ float slope(float x)
    {
        float gate = sigmoid(x);
        return gate * (1 + x * (1 - gate));
    }
};

/* x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3). */
struct gelu_tanh {
    static __device__ float cdf(float x)
    {
        return sigmoid(1.5957691f * (x + 0.044715f * x * x * x));
    }
    static __device__ float value(float x)
    {
        return x * cdf(x);
    }
    static __device__ float slope(float x)
    {
        float p = cdf(x);
        return p + x * p * (1 - p) * 1.5957691f * (1 + 0.134145f * x * x);
    }
};

/* x times the normal distribution's cumulative function. */
struct gelu_erf {
    static __device__ float cdf(float x)
    {
        return 0.5f * (1 + erff(x * 0.70710678f));
    }
    static __device__ float value(float x)
    {
        return x * cdf(x);
    }
    static __device__ float slope(float x)
    {
        return cdf(x) + x * 0.39894228f * expf(-0.5f * x * x);
    }
};

#endif
#endif
