/* Reads Arrow's IPC stream format (https://arrow.apache.org/docs/format/Columnar.html) as far as
 * tokenized data sets use it: columns that are lists of integers, neither compressed nor dictionary
 * encoded, without nulls. Other columns are passed over. Checks everything, offsets too, so that
 * what is read later is known to lie within the file. */
#ifndef SHOAL_AGENT_DATASET_ARROW_STREAM_H
#define SHOAL_AGENT_DATASET_ARROW_STREAM_H

#include "agent/dataset/id_type.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARROW_MAX_COLUMNS = 4 };

struct arrow_request {
    const char *column;
    bool optional;
};

/* One column of a record batch: row r's numbers are values[offset(r)] .. values[offset(r + 1) - 1].
 * The pointers lead into the file, unaligned. */
struct arrow_list {
    enum id_type type;
    bool large;             /* offsets are int64, not int32 */
    const uint8_t *offsets; /* [rows + 1]; NULL: the column is not there */
    const uint8_t *values;
};
int64_t arrow_list_offset(const struct arrow_list *list, int64_t row);

struct arrow_batch {
    int64_t rows;
    struct arrow_list lists[ARROW_MAX_COLUMNS]; /* as wanted */
};

struct arrow_stream {
    struct arrow_batch *batches; /* [count] */
    int64_t count;
    int64_t rows;
};

/* Decodes a whole stream in memory; memory of its own from `arena`. Errors: ERR_INPUT naming the
 * file and the offset, or the column that is missing or not a list of integers; ERR_UNSUPPORTED for
 * what is legal and not read. */
int arrow_stream_parse(struct arena *arena, const char *name, const uint8_t *bytes, size_t size,
                       const struct arrow_request *wanted, int wanted_count,
                       struct arrow_stream *ret_stream, struct error *err);
#endif
