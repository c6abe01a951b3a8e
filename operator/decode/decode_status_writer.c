#include "operator/decode/decode_status_writer.h"

#include "base/clock.h"
#include "base/json.h"

#include <string.h>

/* What an entry says that its manager has written of the status; NULL: nothing. Before Kubernetes
 * 1.22 entries do not tell the subresource: then the same one has the fields of the spec. */
static const struct json *status_fields(const struct json *entry)
{
    const char *subresource = json_as_text(json_get(entry, "subresource"));
    if (subresource && strcmp(subresource, "status") != 0)
        return NULL;
    return json_get(json_get(entry, "fieldsV1"), "f:status");
}

bool decode_status_writer(const struct json *object, const char *ours,
                          struct status_writer *ret_writer)
{
    struct status_writer found = {.at_ms = INT64_MIN, .ours_ms = INT64_MIN};
    const struct json *entries = json_get(json_get(object, "metadata"), "managedFields");
    for (size_t i = 0; i < json_array_count(entries); i++) {
        const struct json *entry = json_at(entries, i), *fields = status_fields(entry);
        const char *manager = json_as_text(json_get(entry, "manager"));
        const char *time = json_as_text(json_get(entry, "time"));
        int64_t at_ms;
        if (!fields || !manager || !time || !clock_parse_rfc3339(time, &at_ms))
            continue;
        if (strcmp(manager, ours) == 0) {
            found.ours_ms = at_ms > found.ours_ms ? at_ms : found.ours_ms;
        } else if (at_ms > found.at_ms) {
            found.at_ms = at_ms;
            found.manager = manager;
            found.counts_replicas = json_is_object(json_get(fields, "f:replicaStatuses"));
        }
    }
    *ret_writer = found;
    return found.manager != NULL;
}

bool decode_is_operators_write(const struct status_writer *writer, const struct json *before,
                               const struct json *after)
{
    /* Times are of whole seconds. Within one, only what we never do shows whose write it was. */
    bool dropped = json_get(before, "history") && !json_get(after, "history");
    if (json_is_equal(before, after) || writer->at_ms < writer->ours_ms)
        return false;
    return dropped || (writer->counts_replicas && writer->at_ms > writer->ours_ms);
}
