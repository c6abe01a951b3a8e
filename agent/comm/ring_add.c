#include "agent/comm/ring_add.h"

static void add_f32(float *sum, const float *x, size_t count, int ranks)
{
    float size = (float)ranks;
    if (ranks > 1)
        for (size_t i = 0; i < count; i++)
            sum[i] = (sum[i] + x[i]) / size;
    else
        for (size_t i = 0; i < count; i++)
            sum[i] += x[i];
}

static void add_bf16(bf16 *sum, const bf16 *x, size_t count, int ranks)
{
    float size = (float)ranks;
    for (size_t i = 0; i < count; i++)
        sum[i] = bf16_from_float((bf16_to_float(sum[i]) + bf16_to_float(x[i])) / size);
}

void ring_add(enum dtype t, void *sum, const void *x, size_t count, int ranks)
{
    if (t == DTYPE_F32)
        add_f32(sum, x, count, ranks);
    else
        add_bf16(sum, x, count, ranks);
}
