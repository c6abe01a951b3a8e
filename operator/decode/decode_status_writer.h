/* Finds in metadata.managedFields (kubernetes.io/docs/reference/using-api/server-side-apply, "Field
 * management") who else wrote an object's status, and tells an operator's write from that of a
 * person, or of a tool that adds a condition of its own. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_STATUS_WRITER_H
#define SHOAL_OPERATOR_DECODE_DECODE_STATUS_WRITER_H

#include <stdbool.h>
#include <stdint.h>

struct json;

struct status_writer {
    const char *manager;  /* field manager: a client's User-Agent up to the slash, unless it says */
    int64_t at_ms;        /* wall clock of the API server, in whole seconds */
    int64_t ours_ms;      /* when we wrote last; INT64_MIN: never */
    bool counts_replicas; /* it wrote some of status.replicaStatuses, as operators do */
};

/* The last writer of the status but `ours`; false: there is none. Its texts are the object's. */
bool decode_status_writer(const struct json *object, const char *ours,
                          struct status_writer *ret_writer);

/* Whether the writer is an operator that has just made the status `after` of `before` (NULL:
 * unknown). One that does not know status.history writes the status without it. */
bool decode_is_operators_write(const struct status_writer *writer, const struct json *before,
                               const struct json *after);
#endif
