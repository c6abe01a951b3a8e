#include "agent/telemetry/event_record.h"

#include "agent/telemetry/crc32c.h"

#include <string.h>

/* Field numbers of tensorflow/core/util/event.proto and framework/summary.proto. */
enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_SUMMARY = 5,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
};
/* How protobuf puts a field on the wire. */
enum { WIRE_VARINT = 0, WIRE_8_BYTES = 1, WIRE_LENGTH = 2, WIRE_4_BYTES = 5 };

static void add_little_endian(struct str *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        str_add_bytes(out, &(char){(char)(value >> 8 * i)}, 1);
}

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

static void add_double(struct str *out, int field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(out, field, WIRE_8_BYTES);
    add_little_endian(out, bits, 8);
}

static void add_float(struct str *out, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_key(out, field, WIRE_4_BYTES);
    add_little_endian(out, bits, 4);
}

static void add_bytes(struct str *out, int field, const char *bytes, size_t count)
{
    add_key(out, field, WIRE_LENGTH);
    add_varint(out, count);
    str_add_bytes(out, bytes, count);
}

/* The mask keeps a CRC of data that holds CRCs from being one of the easy values. */
static uint32_t masked_crc(const char *data, size_t bytes)
{
    uint32_t crc = crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void add_record(struct str *out, const struct str *data)
{
    auto_str struct str length;
    str_init(&length, sizeof(uint64_t));
    add_little_endian(&length, data->length, 8);
    str_add_bytes(out, length.text, length.length);
    add_little_endian(out, masked_crc(length.text, length.length), 4);
    str_add_bytes(out, data->text, data->length);
    add_little_endian(out, masked_crc(data->text, data->length), 4);
}

void event_version_record(double wall_s, struct str *out)
{
    static const char version[] = "brain.Event:2";
    auto_str struct str event;
    str_init(&event, EVENT_MAX_BYTES);
    add_double(&event, EVENT_WALL_TIME, wall_s);
    add_bytes(&event, EVENT_FILE_VERSION, version, sizeof version - 1);
    add_record(out, &event);
}

void event_scalars_record(double wall_s, int64_t step, const struct event_scalar *scalars,
                          int count, struct str *out)
{
    auto_str struct str event, summary, value;
    str_init(&event, EVENT_MAX_BYTES);
    str_init(&summary, EVENT_MAX_BYTES);
    str_init(&value, EVENT_MAX_BYTES);
    for (int i = 0; i < count; i++) {
        str_clear(&value);
        add_bytes(&value, VALUE_TAG, scalars[i].tag, strlen(scalars[i].tag));
        add_float(&value, VALUE_SIMPLE, scalars[i].value);
        add_bytes(&summary, SUMMARY_VALUE, value.text, value.length);
    }
    add_double(&event, EVENT_WALL_TIME, wall_s);
    add_key(&event, EVENT_STEP, WIRE_VARINT);
    add_varint(&event, (uint64_t)step);
    add_bytes(&event, EVENT_SUMMARY, str_text(&summary), summary.length);
    add_record(out, &event);
}
