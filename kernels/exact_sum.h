/* A sum of numbers >= 0 whose bits do not depend on their order, nor on how they are shared out to
 * threads or ranks. A double with a 53-bit mantissa m is m 2^p: a whole number of 2^-224. So the
 * sum is kept as one long whole number of 2^-224, in base 2^32: digit i weighs 2^(32 i - 224). What
 * is smaller than 2^-224 is dropped from each number by itself. Whole numbers add up exactly, so
 *
 *   sum = 2^-224 (d[0] + 2^32 d[1] + ... + 2^480 d[15]),
 *
 * and rounding happens once, when the sum is read. Digits may grow beyond 2^32 meanwhile. Two more
 * count the numbers that are infinite, and those that are NaN. Pure. */
#ifndef SHOAL_KERNELS_EXACT_SUM_H
#define SHOAL_KERNELS_EXACT_SUM_H

#include "kernels/dtype.h"
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many digits are the sum's, and the places of both counts. */
enum { EXACT_PLACES = EXACT_DIGITS - 2, EXACT_INFINITE = EXACT_PLACES, EXACT_NAN };

/* Adds x, 0 .. 2^260 or no number. Up to 2^31 times between two exact_carry(). */
ON_ANY_DEVICE static inline void exact_add(uint64_t digits[EXACT_DIGITS], double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 0x7ff) {
        digits[mantissa ? EXACT_NAN : EXACT_INFINITE]++;
        return;
    }
    mantissa |= (uint64_t)(exponent != 0) << 52;
    int place = exponent - 1075 + 224; /* of the mantissa's lowest bit */
    if (place < 0) {
        mantissa = place > -64 ? mantissa >> -place : 0;
        place = 0;
    }
    int digit = place / 32, shift = place % 32;
    uint64_t low = (mantissa & UINT32_MAX) << shift, high = (mantissa >> 32) << shift;
    digits[digit] += low & UINT32_MAX;
    digits[digit + 1] += (low >> 32) + (high & UINT32_MAX);
    digits[digit + 2] += high >> 32;
}

/* Makes all digits but the highest smaller than 2^32. The sum stays. */
ON_ANY_DEVICE static inline void exact_carry(uint64_t digits[EXACT_DIGITS])
{
    for (int i = 0; i + 1 < EXACT_PLACES; i++) {
        digits[i + 1] += digits[i] >> 32;
        digits[i] &= UINT32_MAX;
    }
}

/* The sum as a double: as doubles have it, infinite if a number was, and NaN if one was that.
 * Carries. */
ON_ANY_DEVICE static inline double exact_value(uint64_t digits[EXACT_DIGITS])
{
    double sum = 0;
    exact_carry(digits);
    if (digits[EXACT_NAN] > 0)
        return (double)NAN;
    if (digits[EXACT_INFINITE] > 0)
        return (double)INFINITY;
    for (int i = EXACT_PLACES - 1; i >= 0; i--)
        sum = sum * 0x1p32 + (double)digits[i];
    return sum * 0x1p-224;
}

/* x to the nearest whole number of 2^-20: below 2^33 doubles add up such numbers exactly. */
ON_ANY_DEVICE static inline double exact_part(double x)
{
    return rint(x * 0x1p20) * 0x1p-20;
}

/* The sum of the squares of EXACT_BLOCK numbers, in order. */
ON_ANY_DEVICE static inline double exact_block(const float *x)
{
    double sum = 0;
    for (int i = 0; i < EXACT_BLOCK; i++)
        sum += (double)x[i] * (double)x[i]; /* the product is exact, so an fma gives the same */
    return sum;
}

#ifdef __cplusplus
}
#endif
#endif
