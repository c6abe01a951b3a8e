/* Loops that compute in fp32 read and write tensors of either dtype a strip at a time. A strip of
 * an fp32 tensor is the tensor itself; a bf16 strip is converted in a buffer that stays in the L1
 * cache. */
#ifndef SHOAL_KERNELS_CPU_STRIP_H
#define SHOAL_KERNELS_CPU_STRIP_H

#include "kernels/dtype.h"

enum { STRIP = 512 }; /* elements */

static inline int64_t strip_length(int64_t left)
{
    const int64_t most = STRIP;
    return left < most ? left : most;
}

/* Elements first .. first + count of x, count <= STRIP, as floats; valid as long as buffer. */
static inline const float *strip_read(enum dtype t, const void *x, int64_t first, int64_t count,
                                      float buffer[STRIP])
{
    if (t == DTYPE_F32)
        return (const float *)x + first;
    const bf16 *from = (const bf16 *)x + first;
    for (int64_t i = 0; i < count; i++)
        buffer[i] = bf16_to_float(from[i]);
    return buffer;
}

/* Where to put the elements from `first` on before strip_write(). */
static inline float *strip_target(enum dtype t, void *y, int64_t first, float buffer[STRIP])
{
    return t == DTYPE_F32 ? (float *)y + first : buffer;
}

/* What lies at strip_target() is now y's, rounded. */
static inline void strip_write(enum dtype t, void *y, int64_t first, int64_t count,
                               const float buffer[STRIP])
{
    if (t == DTYPE_F32)
        return;
    bf16 *to = (bf16 *)y + first;
    for (int64_t i = 0; i < count; i++)
        to[i] = bf16_from_float(buffer[i]);
}

/* Adds values to y's elements from `first` on; they are rounded as y is before that, too.
 * Always inline, as what calls it: only then is it compiled for the machine's vectors (CPU_HOT). */
static inline __attribute__((always_inline)) void strip_add(enum dtype t, void *y, int64_t first,
                                                            int64_t count, const float *values)
{
    float buffer[STRIP];
    const float *old = strip_read(t, y, first, count, buffer);
    float *sum = strip_target(t, y, first, buffer);
    if (t == DTYPE_F32)
        for (int64_t i = 0; i < count; i++)
            sum[i] = old[i] + values[i];
    else
        for (int64_t i = 0; i < count; i++)
            sum[i] = old[i] + bf16_to_float(bf16_from_float(values[i]));
    strip_write(t, y, first, count, sum);
}

#endif
