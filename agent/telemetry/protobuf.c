#include "agent/telemetry/protobuf.h"

#include <string.h>

/* How a field is put on the wire. */
enum { WIRE_VARINT = 0, WIRE_8_BYTES = 1, WIRE_LENGTH = 2, WIRE_4_BYTES = 5 };

void protobuf_little_endian(struct str *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        str_add_bytes(out, &(char){(char)(value >> 8 * i)}, 1);
}

/* Seven bits a byte, the low ones first; the high bit says that more follow (protobuf.dev,
 * "Encoding"). */
static void add_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_bytes(out, &(char){(char)(value | 0x80)}, 1);
    str_add_bytes(out, &(char){(char)value}, 1);
}

static void add_key(struct str *out, int field, int wire)
{
    add_varint(out, (uint64_t)(field << 3 | wire));
}

void protobuf_int(struct str *out, int field, int64_t value)
{
    add_key(out, field, WIRE_VARINT);
    add_varint(out, (uint64_t)value);
}

void protobuf_double(struct str *out, int field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(out, field, WIRE_8_BYTES);
    protobuf_little_endian(out, bits, 8);
}

void protobuf_float(struct str *out, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(out, field, WIRE_4_BYTES);
    protobuf_little_endian(out, bits, 4);
}

void protobuf_bytes(struct str *out, int field, const void *bytes, size_t count)
{
    add_key(out, field, WIRE_LENGTH);
    add_varint(out, count);
    str_add_bytes(out, bytes, count);
}

void protobuf_text(struct str *out, int field, const char *text)
{
    /* proto3 leaves out what has its default: a reader sees the same. */
    if (text[0])
        protobuf_bytes(out, field, text, strlen(text));
}

void protobuf_message(struct str *out, int field, const struct str *message)
{
    protobuf_bytes(out, field, str_text(message), message->length);
}
