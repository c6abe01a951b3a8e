/* Functions that the compiler turns into vector code when they are called in a loop: libm's are
 * calls, one element at a time. A NaN gives a NaN. */
#ifndef SHOAL_KERNELS_CPU_VECTOR_MATH_H
#define SHOAL_KERNELS_CPU_VECTOR_MATH_H

#include <stdint.h>
#include <string.h>

/* exp(x), off by less than 2 units in the last place; 0 below -86.9 (where the result is nearly
 * denormal), infinity above 88.7. x = n log 2 + r, exp(r) by its Taylor polynomial on
 * |r| <= log(2) / 2. */
static inline float vector_exp(float x)
{
    const float shift = 0x1.8p23f; /* adding it rounds to an integer, in the lowest bits */
    float clamped = x > 88.8f ? 88.8f : x;
    float shifted = clamped * 0x1.715476p0f + shift;
    float n = shifted - shift;
    float r = clamped - n * 0x1.62e4p-1f; /* log 2, upper bits: n times it is exact */
    r -= n * 0x1.7f7d1cp-20f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t bits; /* 2^(n - 1) first: 2^128 is no float */
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + (126u << 23);
    float power;
    memcpy(&power, &bits, sizeof power);
    float result = p * power * 2;
    return x < -86.9f ? 0 : result;
}

/* 1 / (1 + exp(-x)). */
static inline float vector_sigmoid(float x)
{
    return 1 / (1 + vector_exp(-x));
}

#endif
