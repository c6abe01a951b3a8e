/* The number formats of tensors. Arithmetic is fp32 inside an op whatever the format it reads and
 * writes; what is stored is rounded to nearest even. Pure. */
#ifndef SHOAL_KERNELS_DTYPE_H
#define SHOAL_KERNELS_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Before a function of this header and random.h: nvcc compiles it for GPUs too. */
#ifdef __CUDACC__
#define ON_ANY_DEVICE __host__ __device__
#else
#define ON_ANY_DEVICE
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum dtype {
    DTYPE_F32,
    DTYPE_BF16, /* the upper half of an fp32 */
    DTYPE_E4M3, /* a byte, kernels/fp8.h: it is moved between ranks, and no op's dtype */
};

typedef uint16_t bf16;

ON_ANY_DEVICE static inline size_t dtype_bytes(enum dtype t)
{
    return t == DTYPE_F32 ? sizeof(float) : t == DTYPE_BF16 ? sizeof(bf16) : sizeof(uint8_t);
}

ON_ANY_DEVICE static inline const char *dtype_name(enum dtype t)
{
    return t == DTYPE_F32 ? "fp32" : t == DTYPE_BF16 ? "bf16" : "e4m3";
}

ON_ANY_DEVICE static inline float bf16_to_float(bf16 x)
{
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* To nearest, ties to even; a NaN stays one. */
ON_ANY_DEVICE static inline bf16 bf16_from_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (bf16)((bits >> 16) | 0x40);
    return (bf16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* Away from 0 with the probability of the distance, by a uniform u in [0, 1): right on average,
 * where a small step would always be rounded back. A NaN stays one. */
ON_ANY_DEVICE static inline bf16 bf16_stochastic(float x, float u)
{
    uint32_t bits, down = (uint32_t)(int32_t)(u * 0x1p16f);
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (bf16)((bits >> 16) | 0x40);
    return (bf16)((bits + 0xffff - down) >> 16);
}

/* Rounds floats to numbers of dtype t where they are: each lies before the one it came from. */
static inline void dtype_narrow(enum dtype t, float *values, int64_t count)
{
    for (int64_t i = 0; t == DTYPE_BF16 && i < count; i++) {
        bf16 x = bf16_from_float(values[i]);
        memcpy((char *)values + i * (int64_t)sizeof x, &x, sizeof x);
    }
}

#ifdef __cplusplus
}
#endif
#endif
