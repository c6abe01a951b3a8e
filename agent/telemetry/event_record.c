#include "agent/telemetry/event_record.h"

#include "agent/telemetry/crc32c.h"
#include "agent/telemetry/protobuf.h"

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
/* The mask keeps a CRC of data that holds CRCs from being one of the easy values. */
static uint32_t masked_crc(const char *data, size_t bytes)
{
    uint32_t crc = crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* TFRecord: length (8 bytes), masked CRC of it, data, masked CRC of the data; all little-endian. */
static void add_record(struct str *out, const struct str *data)
{
    auto_str struct str length;
    str_init(&length, sizeof(uint64_t));
    protobuf_little_endian(&length, data->length, 8);
    str_add_bytes(out, length.text, length.length);
    protobuf_little_endian(out, masked_crc(length.text, length.length), 4);
    str_add_bytes(out, data->text, data->length);
    protobuf_little_endian(out, masked_crc(data->text, data->length), 4);
}

void event_version_record(double wall_s, struct str *out)
{
    /* The first record of each file: readers take the format's version from it. */
    static const char version[] = "brain.Event:2";
    auto_str struct str event;
    str_init(&event, EVENT_MAX_BYTES);
    protobuf_double(&event, EVENT_WALL_TIME, wall_s);
    protobuf_bytes(&event, EVENT_FILE_VERSION, version, sizeof version - 1);
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
        protobuf_bytes(&value, VALUE_TAG, scalars[i].tag, strlen(scalars[i].tag));
        protobuf_float(&value, VALUE_SIMPLE, scalars[i].value);
        protobuf_message(&summary, SUMMARY_VALUE, &value);
    }
    protobuf_double(&event, EVENT_WALL_TIME, wall_s);
    protobuf_int(&event, EVENT_STEP, step);
    protobuf_message(&event, EVENT_SUMMARY, &summary);
    add_record(out, &event);
}
