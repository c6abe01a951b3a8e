/* Finds in metadata.managedFields (kubernetes.io/docs/reference/using-api/server-side-apply, "Field
 * management") who else wrote an object's status, and tells an operator's write from that of a
 * person, or of a tool that adds a condition of its own.
 *
 * Whoever may update an object may put entries of any name and time there, and the API server keeps
 * them. What he cannot do is change the status with the same request: an update of the object
 * leaves the status as it was, and a write of the status (subresource status) takes its entry from
 * the client's name and the server's clock. So an entry is evidence only where it and a new status
 * come with one version of the object.
 *
 * Of an object whose entries were not seen before, none is evidence. That ours is missing says
 * nothing either: the API server merges old entries, and whoever may update the object can make
 * ours the oldest. There, only a dropped status.history tells.
 *
 * Not seen, too: the second of two writes that one manager makes within a second, as its entry is
 * the same. And any write of an object with more than 32 entries of the status. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_STATUS_WRITER_H
#define SHOAL_OPERATOR_DECODE_DECODE_STATUS_WRITER_H

#include <stdbool.h>
#include <stdint.h>

struct json;

struct status_writer {
    const char *manager;  /* field manager: a client's User-Agent up to the slash, unless it says */
    int64_t at_ms;        /* wall clock of the API server, in whole seconds */
    int64_t ours_ms;      /* our last write of those that are not known; INT64_MIN: there is none */
    bool counts_replicas; /* it wrote some of status.replicaStatuses, as operators do */
};

/* The managers that the entries name as writers of the status, with their times, as text for
 * decode_status_writer; "": none. The caller frees it. NULL: the object came without entries, as of
 * a list, or has too many to remember. */
char *decode_status_writers(const struct json *object);

/* The last writer of the status but `ours`, those `known`, and kubectl, which is a person's; false:
 * there is none, or there are too many to tell. Its texts are the object's. known:
 * decode_status_writers of the version before; NULL: its entries were not seen. What is known of
 * `ours` has no part either, as its time, too, may be forged. */
bool decode_status_writer(const struct json *object, const char *ours, const char *known,
                          struct status_writer *ret_writer);

/* Whether the writer is an operator that has just made the status `after` of `before` (NULL:
 * unknown). One that does not know status.history writes the status without it, which we never do.
 * Where the entries of `before` were not seen (is_new false), nothing else counts; whose name it
 * then is may be forged. */
bool decode_is_operators_write(const struct status_writer *writer, bool is_new,
                               const struct json *before, const struct json *after);
#endif
