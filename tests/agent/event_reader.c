#include "tests/agent/event_reader.h"

#include "tests/support.h"

#include <string.h>

/* What is left to read. */
struct cursor {
    const uint8_t *at, *end;
};

static uint64_t read_fixed(struct cursor *c, int bytes)
{
    uint64_t value = 0;
    assert_true(c->end - c->at >= bytes);
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | c->at[i];
    c->at += bytes;
    return value;
}

static uint64_t read_varint(struct cursor *c)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint64_t byte = read_fixed(c, 1);
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    fail_msg("a varint of more than 10 bytes");
    return 0;
}

static struct cursor read_span(struct cursor *c, uint64_t bytes)
{
    assert_true(bytes <= (uint64_t)(c->end - c->at));
    struct cursor span = {c->at, c->at + bytes};
    c->at += bytes;
    return span;
}

static void copy_text(struct cursor span, char out[READ_TAG_BYTES])
{
    size_t bytes = (size_t)(span.end - span.at);
    assert_true(bytes < READ_TAG_BYTES);
    memcpy(out, span.at, bytes);
    out[bytes] = '\0';
}

/* Bit by bit, by the polynomial x^32 + x^28 + x^27 + ... + 1 in its reversed form. */
static uint32_t masked_crc(const uint8_t *at, size_t bytes)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < bytes * 8; i++) {
        uint32_t bit = (crc ^ at[i / 8] >> i % 8) & 1;
        crc = crc >> 1 ^ (bit ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static void read_scalar(struct cursor value, struct read_scalar *out)
{
    while (value.at < value.end) {
        uint64_t key = read_varint(&value);
        if (key == (1 << 3 | 2)) {
            copy_text(read_span(&value, read_varint(&value)), out->tag);
        } else {
            assert_int_equal(key, 2 << 3 | 5);
            uint32_t bits = (uint32_t)read_fixed(&value, 4);
            memcpy(&out->value, &bits, sizeof bits);
        }
    }
}

static void read_event(struct cursor data, struct read_event *out)
{
    while (data.at < data.end) {
        uint64_t key = read_varint(&data);
        if (key == (1 << 3 | 1)) {
            uint64_t bits = read_fixed(&data, 8);
            memcpy(&out->wall_s, &bits, sizeof bits);
        } else if (key == (2 << 3 | 0)) {
            out->step = (int64_t)read_varint(&data);
        } else if (key == (3 << 3 | 2)) {
            copy_text(read_span(&data, read_varint(&data)), out->file_version);
        } else {
            assert_int_equal(key, 5 << 3 | 2);
            struct cursor summary = read_span(&data, read_varint(&data));
            while (summary.at < summary.end) {
                assert_int_equal(read_varint(&summary), 1 << 3 | 2);
                assert_true(out->scalar_count < READ_SCALARS_MAX);
                read_scalar(read_span(&summary, read_varint(&summary)),
                            &out->scalars[out->scalar_count++]);
            }
        }
    }
}

void event_reader_read(const void *bytes, size_t count, struct read_events *ret_events)
{
    struct cursor file = {bytes, (const uint8_t *)bytes + count};
    *ret_events = (struct read_events){0};
    while (file.at < file.end) {
        const uint8_t *head = file.at;
        uint64_t length = read_fixed(&file, 8);
        assert_int_equal(read_fixed(&file, 4), masked_crc(head, 8));
        struct cursor data = read_span(&file, length);
        assert_int_equal(read_fixed(&file, 4), masked_crc(data.at, length));
        assert_true(ret_events->count < READ_EVENTS_MAX);
        read_event(data, &ret_events->items[ret_events->count++]);
    }
}

static const struct read_scalar *find(const struct read_event *event, const char *tag)
{
    for (int i = 0; i < event->scalar_count; i++)
        if (!strcmp(event->scalars[i].tag, tag))
            return &event->scalars[i];
    return NULL;
}

int event_reader_has(const struct read_event *event, const char *tag)
{
    return find(event, tag) != NULL;
}

float event_reader_value(const struct read_event *event, const char *tag)
{
    const struct read_scalar *scalar = find(event, tag);
    if (!scalar)
        fail_msg("no scalar %s", tag);
    return scalar->value;
}
