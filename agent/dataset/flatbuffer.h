/* Reads FlatBuffers (https://flatbuffers.dev/internals) without a schema compiler: tables, vectors
 * and strings, by field number. Believes nothing: each function returns false when what it is asked
 * for does not lie within the buffer, and reads nothing then. */
#ifndef SHOAL_AGENT_DATASET_FLATBUFFER_H
#define SHOAL_AGENT_DATASET_FLATBUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flat_table {
    const uint8_t *bytes; /* of the whole buffer; NULL: the table is not there */
    size_t size;
    size_t at;           /* of the table */
    size_t vtable;       /* where the fields' places are */
    size_t vtable_bytes; /* all of them within the buffer */
};

struct flat_vector {
    const uint8_t *items; /* count * item_bytes of them within the buffer; NULL: not there */
    size_t count;
};

bool flat_root(const uint8_t *bytes, size_t size, struct flat_table *ret_table);

/* A number of 1, 2, 4 or 8 bytes, signed; `absent` if the field is not there. */
bool flat_number(const struct flat_table *table, int field, int bytes, int64_t absent,
                 int64_t *ret_number);
bool flat_table(const struct flat_table *table, int field, struct flat_table *ret_table);
bool flat_vector(const struct flat_table *table, int field, size_t item_bytes,
                 struct flat_vector *ret_vector);
/* Item i of a vector of tables (item_bytes 4). */
bool flat_item(const struct flat_table *table, const struct flat_vector *vector, size_t i,
               struct flat_table *ret_table);
#endif
