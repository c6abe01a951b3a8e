/* The Gaussian error linear unit's approximation by a tanh (Hendrycks and Gimpel 2016), which gates
 * too. */
#ifndef SHOAL_KERNELS_CPU_GELU_H
#define SHOAL_KERNELS_CPU_GELU_H

#include "kernels/cpu/vector_math.h"

/* The normal distribution's cumulative function, nearly: (1 + tanh(u)) / 2 = sigmoid(2 u), u =
 * sqrt(2 / pi) (x + 0.044715 x^3). */
static inline float gelu_tanh_cdf(float x)
{
    return vector_sigmoid(1.5957691f * (x + 0.044715f * x * x * x));
}

/* The slope of x * gelu_tanh_cdf(x). */
static inline float gelu_tanh_slope(float x)
{
    float cdf = gelu_tanh_cdf(x);
    return cdf + x * cdf * (1 - cdf) * 1.5957691f * (1 + 0.134145f * x * x);
}

#endif
