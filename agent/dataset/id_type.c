#include "agent/dataset/id_type.h"

#include <assert.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are read as they are");

int id_type_bytes(enum id_type type)
{
    return 1 << (type / 2);
}

/* Cut to 32 bits, a damaged id could become a valid one; saturated, it is beyond every
 * vocabulary. */
static int32_t saturate(int64_t value)
{
    if (value > INT32_MAX)
        return INT32_MAX;
    return value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

#define COPY(number)                                                                               \
    for (int64_t i = 0; i < count; i++) {                                                          \
        number value;                                                                              \
        memcpy(&value, bytes + i * (int64_t)sizeof value, sizeof value);                           \
        out[i] = saturate((int64_t)value);                                                         \
    }                                                                                              \
    break

void id_type_copy(enum id_type type, const uint8_t *bytes, int64_t count, int32_t *out)
{
    switch (type) {
    case ID_U8:
        COPY(uint8_t);
    case ID_I8:
        COPY(int8_t);
    case ID_U16:
        COPY(uint16_t);
    case ID_I16:
        COPY(int16_t);
    case ID_U32:
        COPY(uint32_t);
    case ID_I32:
        COPY(int32_t);
    case ID_U64: /* beyond int64 it becomes negative: in no vocabulary either */
        COPY(uint64_t);
    case ID_I64:
        COPY(int64_t);
    }
}
