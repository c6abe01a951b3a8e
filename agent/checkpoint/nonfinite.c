#include "agent/checkpoint/nonfinite.h"

#include "agent/checkpoint/checkpoint.h"
#include "agent/checkpoint/tensor_values.h"

#include <stdio.h>
#include <string.h>

/* Read at once, and looked at for its result once: long enough that the compiler's vectors pay. */
enum { BLOCK_WORDS = 512, BLOCK_BYTES = BLOCK_WORDS * 8 };

/* The exponent's bits of each element in a word; 0: the dtype has none. */
static uint64_t exponent_bits(enum safetensors_dtype dtype)
{
    switch (dtype) {
    case SAFETENSORS_F64:
        return 0x7ff0000000000000;
    case SAFETENSORS_F32:
        return 0x7f8000007f800000;
    case SAFETENSORS_F16:
        return 0x7c007c007c007c00;
    case SAFETENSORS_BF16:
        return 0x7f807f807f807f80;
    default:
        return 0;
    }
}

/* NaN and infinity are the numbers whose exponent is all ones (IEEE 754): adding one to it then
 * carries into the sign's place, and in no other case. The sign was masked out, so no element
 * carries into the next one. No branch and no floating point: a signalling NaN stays one. */
static bool block_has(const char *data, uint64_t exponent)
{
    uint64_t one = exponent & ~(exponent << 1), sign = (exponent << 1) & ~exponent, seen = 0;
    for (int i = 0; i < BLOCK_WORDS; i++) {
        uint64_t word;
        memcpy(&word, data + i * 8, sizeof word);
        seen |= (word & exponent) + one;
    }
    return seen & sign;
}

/* The first byte of the block that has the first one; -1: none has. */
static int64_t find_block(const char *data, int64_t bytes, uint64_t exponent)
{
    int64_t at = 0;
    for (; at + BLOCK_BYTES <= bytes; at += BLOCK_BYTES)
        if (block_has(data + at, exponent))
            return at;
    char rest[BLOCK_BYTES] = {0};
    memcpy(rest, data + at, (size_t)(bytes - at));
    return block_has(rest, exponent) ? at : -1;
}

bool nonfinite_find(enum safetensors_dtype dtype, const void *data, int64_t count,
                    struct nonfinite *ret_found)
{
    uint64_t words = exponent_bits(dtype);
    int64_t size = safetensors_dtype_bytes(dtype);
    int64_t block = words && count > 0 ? find_block(data, count * size, words) : -1;
    if (block < 0)
        return false;
    uint64_t exponent = size < 8 ? words & ((1ULL << (8 * size)) - 1) : words;
    uint64_t fraction = (exponent & ~(exponent << 1)) - 1, sign = exponent + fraction + 1;
    uint64_t bits = 0;
    int64_t i = block / size;
    do
        memcpy(&bits, (const char *)data + i++ * size, (size_t)size);
    while ((bits & exponent) != exponent);
    *ret_found = (struct nonfinite){i - 1, bits & fraction ? "NaN" : bits & sign ? "-inf" : "inf"};
    return true;
}

/* As PyTorch writes the element's index: "[3, 5]"; nothing for a scalar. */
static void print_index(int dims, const int64_t *shape, int64_t element, char *text, size_t size)
{
    int64_t stride = 1;
    size_t length = 0;
    text[0] = '\0';
    for (int d = 1; d < dims; d++)
        stride *= shape[d];
    for (int d = 0; d < dims && length < size; d++) {
        length += (size_t)snprintf(text + length, size - length, "%s%lld%s", d ? ", " : "[",
                                   (long long)(element / stride), d + 1 == dims ? "]" : "");
        element %= stride;
        stride /= d + 1 < dims ? shape[d + 1] : 1;
    }
}

int nonfinite_error(enum error_code code, const char *name, int dims, const int64_t *shape,
                    const struct nonfinite *found, struct error *err)
{
    char index[SAFETENSORS_MAX_DIMS * 22];
    print_index(dims, shape, found->element, index, sizeof index);
    return error_set(err, code,
                     "tensor %.150s%s is %s: neither saved nor loaded (--allow-nonfinite insists)",
                     name, index, found->value);
}

int nonfinite_check(const struct tensor_ranges *ranges, struct error *err)
{
    for (int i = 0; i < ranges->count; i++) {
        const struct tensor_range *r = &ranges->items[i];
        struct nonfinite found;
        if (!nonfinite_find(tensor_dtype_of(r->dtype), r->data, r->count, &found))
            continue;
        found.element += r->first;
        return nonfinite_error(ERR_DIVERGED, r->name, r->dims, r->shape, &found, err);
    }
    return 0;
}
