#include "agent/checkpoint/tensor_values.h"

#include <string.h>

enum safetensors_dtype tensor_dtype_of(enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? SAFETENSORS_BF16 : SAFETENSORS_F32;
}

bool tensor_has_values(enum safetensors_dtype dtype)
{
    return dtype == SAFETENSORS_F32 || dtype == SAFETENSORS_F16 || dtype == SAFETENSORS_BF16;
}

/* IEEE half precision; subnormal numbers and infinities too. */
static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f;
    uint32_t fraction = half & 0x3ff;
    float value;
    if (exponent == 0) {
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    /* 112 = 127 - 15, the difference of the biases of the two formats' exponents. */
    uint32_t bits = sign | fraction << 13 | (exponent == 31 ? 0xff : exponent + 112) << 23;
    memcpy(&value, &bits, sizeof value);
    return value;
}

int tensor_read_values(const struct safetensors *file, const struct safetensors_tensor *tensor,
                       int64_t first, int64_t count, void *raw, float *ret_values,
                       struct error *err)
{
    if (safetensors_read(file, tensor, first, count, raw, err) < 0)
        return -1;
    const uint16_t *halves = raw;
    switch (tensor->dtype) {
    case SAFETENSORS_BF16:
        for (int64_t i = 0; i < count; i++)
            ret_values[i] = bf16_to_float(halves[i]);
        break;
    case SAFETENSORS_F16:
        for (int64_t i = 0; i < count; i++)
            ret_values[i] = float_of_half(halves[i]);
        break;
    default:
        memcpy(ret_values, raw, (size_t)count * sizeof *ret_values);
    }
    return 0;
}
