#include "agent/dataset/arrow_stream.h"

#include "agent/dataset/arrow_schema.h"
#include "agent/dataset/flatbuffer.h"

#include <string.h>

/* Fields of the tables in Arrow's format/Message.fbs, and the kinds of messages. */
enum { MESSAGE_KIND = 1, MESSAGE_HEADER = 2, MESSAGE_BODY_BYTES = 3 };
enum { BATCH_ROWS = 0, BATCH_NODES = 1, BATCH_BUFFERS = 2, BATCH_COMPRESSION = 3 };
enum { KIND_SCHEMA = 1, KIND_DICTIONARY = 2, KIND_BATCH = 3 };
enum { PREFIX_BYTES = 8, STRUCT_BYTES = 16 }; /* nodes and buffers are pairs of int64 */

static const int64_t MAX_ROWS = (int64_t)1 << 40; /* keeps sums from overflowing */

struct decoder {
    struct arena *arena;
    const char *name;
    const uint8_t *bytes;
    size_t size;
    size_t message; /* where the current message begins, for errors */
    const uint8_t *body;
    size_t body_bytes;
    const struct arrow_request *wanted;
    int wanted_count;
    bool has_schema;
    struct arrow_schema schema;
    struct arrow_stream stream;
    int64_t capacity; /* of stream.batches */
    struct error *err;
};

static int damaged(const struct decoder *d, const char *what)
{
    return error_set(d->err, ERR_INPUT, "%s: the message at offset %zu: %s", d->name, d->message,
                     what);
}

static int64_t i64_at(const uint8_t *bytes)
{
    int64_t value;
    memcpy(&value, bytes, 8);
    return value;
}

int64_t arrow_list_offset(const struct arrow_list *list, int64_t row)
{
    if (list->large)
        return i64_at(list->offsets + 8 * row);
    int32_t value;
    memcpy(&value, list->offsets + 4 * row, 4);
    return value;
}

/* A buffer of the body that has at least count items. */
static bool find_buffer(const struct decoder *d, const struct flat_vector *buffers, size_t i,
                        int64_t count, int item_bytes, const uint8_t **ret_items)
{
    int64_t offset = i64_at(buffers->items + STRUCT_BYTES * i);
    int64_t bytes = i64_at(buffers->items + STRUCT_BYTES * i + 8);
    int64_t body = (int64_t)d->body_bytes;
    if (offset < 0 || bytes < 0 || offset > body || bytes > body - offset)
        return false;
    *ret_items = d->body + offset;
    return count <= bytes / item_bytes;
}

/* Checked once when the file is opened: after that rows are read from the mapping without any look
 * at lengths. */
static bool offsets_rise(const struct arrow_list *list, int64_t rows, int64_t values)
{
    int64_t last = arrow_list_offset(list, 0);
    if (last < 0)
        return false;
    for (int64_t row = 1; row <= rows; row++) {
        int64_t offset = arrow_list_offset(list, row);
        if (offset < last)
            return false;
        last = offset;
    }
    return last <= values;
}

static int decode_list(const struct decoder *d, const struct flat_vector *nodes,
                       const struct flat_vector *buffers, int i, int64_t rows,
                       struct arrow_list *list)
{
    static const uint8_t zero[8]; /* a batch of no rows may leave out the one offset */
    const struct arrow_column *c = &d->schema.columns[i];
    const uint8_t *node = nodes->items + STRUCT_BYTES * c->node;
    int64_t values = i64_at(node + STRUCT_BYTES);
    if (i64_at(node) != rows)
        return damaged(d, "a column has another number of rows than the batch");
    if (i64_at(node + 8) != 0 || i64_at(node + STRUCT_BYTES + 8) != 0)
        return error_set(d->err, ERR_INPUT, "%s: column %s has nulls in it", d->name,
                         d->wanted[i].column);
    *list = (struct arrow_list){.type = c->type, .large = c->large};
    /* Of a list: validity (+ 0), offsets (+ 1); of its child, the numbers: validity (+ 2), values
     * (+ 3). */
    if (!find_buffer(d, buffers, c->buffer + 1, rows ? rows + 1 : 0, c->large ? 8 : 4,
                     &list->offsets) ||
        !find_buffer(d, buffers, c->buffer + 3, values, id_type_bytes(c->type), &list->values))
        return damaged(d, "a column's numbers do not lie within the message");
    if (rows == 0)
        list->offsets = zero;
    if (!offsets_rise(list, rows, values))
        return damaged(d, "a column's offsets do not rise");
    return 0;
}

static int decode_batch(struct decoder *d, const struct flat_table *table)
{
    int64_t rows;
    struct flat_vector nodes, buffers;
    struct flat_table compression;
    if (!flat_number(table, BATCH_ROWS, 8, 0, &rows) || rows < 0 || rows > MAX_ROWS ||
        !flat_vector(table, BATCH_NODES, STRUCT_BYTES, &nodes) ||
        !flat_vector(table, BATCH_BUFFERS, STRUCT_BYTES, &buffers) ||
        !flat_table(table, BATCH_COMPRESSION, &compression))
        return damaged(d, "a record batch that is damaged");
    if (compression.bytes)
        return error_set(d->err, ERR_UNSUPPORTED, "%s: compressed record batches are not read",
                         d->name);
    /* Nodes and buffers have no names: they follow the schema's fields in preorder (Arrow's
     * Columnar Format). */
    if (!d->has_schema || nodes.count != d->schema.nodes || buffers.count != d->schema.buffers)
        return damaged(d, "a record batch that does not fit the schema");
    if (d->stream.count == d->capacity) {
        const struct arrow_batch *old = d->stream.batches;
        d->capacity = d->capacity ? 2 * d->capacity : 16;
        d->stream.batches = arena_array(d->arena, struct arrow_batch, d->capacity);
        if (old)
            memcpy(d->stream.batches, old, (size_t)d->stream.count * sizeof *old);
    }
    struct arrow_batch *batch = &d->stream.batches[d->stream.count];
    batch->rows = rows;
    for (int i = 0; i < d->wanted_count; i++)
        if (d->schema.columns[i].there &&
            decode_list(d, &nodes, &buffers, i, rows, &batch->lists[i]) < 0)
            return -1;
    d->stream.rows += rows;
    d->stream.count++;
    return 0;
}

static int decode_schema(struct decoder *d, const struct flat_table *table)
{
    if (d->has_schema)
        return damaged(d, "a second schema");
    d->has_schema = true;
    return arrow_schema_parse(d->name, table, d->wanted, d->wanted_count, &d->schema, d->err);
}

/* The message whose metadata are `bytes` long; *ret_body_bytes follow them. */
static int decode_message(struct decoder *d, const uint8_t *metadata, size_t bytes, size_t left,
                          size_t *ret_body_bytes)
{
    struct flat_table message, header;
    int64_t kind, body;
    if (!flat_root(metadata, bytes, &message) ||
        !flat_number(&message, MESSAGE_KIND, 1, 0, &kind) ||
        !flat_table(&message, MESSAGE_HEADER, &header) || !header.bytes ||
        !flat_number(&message, MESSAGE_BODY_BYTES, 8, 0, &body))
        return damaged(d, "its metadata are damaged");
    if (body < 0 || (uint64_t)body > left)
        return damaged(d, "cut off in its data, or damaged");
    d->body = metadata + bytes;
    d->body_bytes = *ret_body_bytes = (size_t)body;
    switch (kind) {
    case KIND_SCHEMA:
        return decode_schema(d, &header);
    case KIND_BATCH:
        return decode_batch(d, &header);
    case KIND_DICTIONARY: /* of a column that is not wanted */
        return 0;
    default:
        return damaged(d, "neither a schema nor a record batch");
    }
}

int arrow_stream_parse(struct arena *arena, const char *name, const uint8_t *bytes, size_t size,
                       const struct arrow_request *wanted, int wanted_count,
                       struct arrow_stream *ret_stream, struct error *err)
{
    struct decoder d = {.arena = arena,
                        .name = name,
                        .bytes = bytes,
                        .size = size,
                        .wanted = wanted,
                        .wanted_count = wanted_count,
                        .err = err};
    for (;;) {
        uint32_t mark, metadata_bytes;
        size_t left = size - d.message, body_bytes = 0;
        if (left < PREFIX_BYTES)
            return damaged(&d, "cut off: there is no mark of the stream's end");
        memcpy(&mark, bytes + d.message, 4);
        memcpy(&metadata_bytes, bytes + d.message + 4, 4);
        /* Arrow's encapsulated message: ffffffff, the metadata's length, the metadata (padded to 8
         * bytes), the body. A length of 0 ends the stream. */
        if (mark != UINT32_MAX)
            return damaged(&d, "does not begin with ffffffff: not an Arrow stream, or damaged");
        if (metadata_bytes == 0)
            break;
        left -= PREFIX_BYTES;
        if (metadata_bytes > left)
            return damaged(&d, "cut off in its metadata, or damaged");
        if (decode_message(&d, bytes + d.message + PREFIX_BYTES, metadata_bytes,
                           left - metadata_bytes, &body_bytes) < 0)
            return -1;
        d.message += PREFIX_BYTES + metadata_bytes + body_bytes;
    }
    if (!d.has_schema)
        return damaged(&d, "the stream has no schema");
    *ret_stream = d.stream;
    return 0;
}
