/* The schema of an Arrow stream: where among the buffers of each record batch the wanted columns
 * are. */
#ifndef SHOAL_AGENT_DATASET_ARROW_SCHEMA_H
#define SHOAL_AGENT_DATASET_ARROW_SCHEMA_H

#include "agent/dataset/arrow_stream.h"
#include "agent/dataset/flatbuffer.h"
#include "base/error.h"

/* A list's node is followed by its values', its buffers are: which are null, offsets, which values
 * are null, values. */
struct arrow_column {
    bool there, large;
    enum id_type type;
    size_t node, buffer; /* the first of each */
};

struct arrow_schema {
    struct arrow_column columns[ARROW_MAX_COLUMNS]; /* as wanted */
    size_t nodes, buffers;                          /* of a record batch in all */
};

/* table: the schema message's Schema. Errors name the column. */
int arrow_schema_parse(const char *name, const struct flat_table *table,
                       const struct arrow_request *wanted, int wanted_count,
                       struct arrow_schema *ret_schema, struct error *err);
#endif
