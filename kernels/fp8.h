/* fp8: numbers of 8 bits for matrix products, and how a tensor of bf16 becomes one of them. Two
 * formats (Micikevicius et al. 2022, "FP8 Formats for Deep Learning"): e4m3 up to 448 with steps of
 * an eighth, for values; e5m2 up to 57344 with steps of a quarter, for gradients. e4m3 has no
 * infinity. Pure.
 *
 * Scaling is current and per tensor. What is cast is x times a power of two, the largest with which
 * all of x fits the format. It follows from the tensor's largest magnitude ("amax") alone: there is
 * no history to keep, to save or to agree on. A largest magnitude is the same in any order, so its
 * bits hang on no device. A weight's is that of the whole tensor, however it is cut: a rank has it,
 * or all slices' largest ones. A power of two scales without rounding, so x and 2 x become the
 * same codes, and undoing it is exact. It wastes at most half of the range, of which e4m3 has 18
 * powers of two.
 *
 * A tensor with an infinity or a NaN becomes NaN as a whole: it must be seen, not be saturated. */
#ifndef SHOAL_KERNELS_FP8_H
#define SHOAL_KERNELS_FP8_H

#include "kernels/dtype.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fp8 { FP8_E4M3, FP8_E5M2 };

/* In device memory; both are powers of two, or NaN. */
struct fp8_scale {
    float scale;   /* what x was multiplied by */
    float inverse; /* what undoes it */
};

/* Rows of a matrix of fp8 are padded with zeros to a multiple of so many elements: cuBLASLt wants
 * operands, and their rows, at multiples of 16 bytes. */
enum { FP8_ALIGN = 16 };

static inline int64_t fp8_padded(int64_t count)
{
    return (count + FP8_ALIGN - 1) / FP8_ALIGN * FP8_ALIGN;
}

/* c = op(a) op(b) + bias as struct matmul means it, of matrices that were cast so that the sum goes
 * along the rows of both: a: [m, k], b: [n, k], k padded. Values are codes times their inverse
 * scales; products are summed in fp32. */
struct fp8_matmul {
    enum fp8 a_format, b_format; /* at least one is e4m3 */
    int64_t m, n, k;             /* n: a multiple of FP8_ALIGN, as k is */
    int64_t c_stride;
    enum dtype t_c;
    bool accumulate, relu; /* relu: max(0, c) in the end, a NaN stays; not with accumulate */
};

/* What a format is made of: bits of the mantissa, the exponent's bias, and the largest finite code.
 * NaN is 0x7f in both; e5m2 has infinities, which no conversion here makes. */
struct fp8_form {
    int mantissa, bias;
    uint8_t largest;
};

ON_ANY_DEVICE static inline struct fp8_form fp8_form(enum fp8 f)
{
    struct fp8_form e4m3 = {3, 7, 0x7e}, e5m2 = {2, 15, 0x7b};
    return f == FP8_E4M3 ? e4m3 : e5m2;
}

ON_ANY_DEVICE static inline float fp8_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^exponent, which a normal float can be. */
ON_ANY_DEVICE static inline float fp8_power(int exponent)
{
    return fp8_float_of_bits((uint32_t)(exponent + 127) << 23);
}

/* To nearest, ties to even. What is too large becomes the largest, as does infinity; a NaN stays
 * one. As PTX's cvt.rn.satfinite. */
ON_ANY_DEVICE static inline uint8_t fp8_from_float(enum fp8 f, float x)
{
    const struct fp8_form form = fp8_form(f);
    const uint32_t shift = 23 - (uint32_t)form.mantissa, largest = form.largest;
    uint32_t bits, small;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = bits >> 24 & 0x80;
    bits &= 0x7fffffff;
    /* below the normal numbers: a count of the smallest step, rounded by the addition */
    float steps = fp8_float_of_bits(bits) * fp8_power(form.bias - 1 + form.mantissa) + 0x1p23f;
    memcpy(&small, &steps, sizeof small);
    const uint32_t rounded = bits + (1u << (shift - 1)) - 1 + (bits >> shift & 1);
    uint32_t code = (rounded >> shift) - ((uint32_t)(127 - form.bias) << form.mantissa);
    /* without branches: a loop of these is vector code */
    code = code < largest ? code : largest;
    code = bits >> 23 < (uint32_t)(128 - form.bias) ? small & 0x7f : code;
    code = bits > 0x7f800000 ? 0x7f : code;
    return (uint8_t)(sign | code);
}

ON_ANY_DEVICE static inline float fp8_to_float(enum fp8 f, uint8_t code)
{
    const struct fp8_form form = fp8_form(f);
    const uint32_t magnitude = code & 0x7f, exponent = magnitude >> form.mantissa;
    float x;
    if (magnitude > form.largest) /* e5m2's infinity is the next one */
        x = fp8_float_of_bits(f == FP8_E5M2 && magnitude == 0x7c ? 0x7f800000 : 0x7fc00000);
    else if (exponent == 0)
        x = (float)magnitude * fp8_power(1 - form.bias - form.mantissa);
    else
        x = fp8_float_of_bits((magnitude << (23 - form.mantissa)) +
                              ((uint32_t)(127 - form.bias) << 23));
    return code & 0x80 ? -x : x;
}

/* Of a tensor's largest magnitude, given as the bits of a float without its sign: floats are in
 * order as their bits are, and a NaN is above all. 0: 1, and so is a tensor without elements. */
ON_ANY_DEVICE static inline struct fp8_scale fp8_scale_of(enum fp8 f, uint32_t largest_bits)
{
    /* both formats end at 1.75 times a power of two */
    const int top = f == FP8_E4M3 ? 8 : 15, most = 126;
    const uint32_t three_quarters = 0x600000;
    const float nan = fp8_float_of_bits(0x7fc00000);
    struct fp8_scale one = {1, 1}, broken = {nan, nan}, scale;
    if (largest_bits >= 0x7f800000)
        return broken;
    if (largest_bits == 0)
        return one;
    int exponent = top + 127 - (int)(largest_bits >> 23);
    exponent -= (largest_bits & 0x7fffff) > three_quarters;
    exponent = exponent < most ? exponent : most; /* of numbers that are nearly 0 */
    scale.scale = fp8_power(exponent);
    scale.inverse = fp8_power(-exponent);
    return scale;
}

#ifdef __cplusplus
}
#endif
#endif
