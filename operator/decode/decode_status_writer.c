#include "operator/decode/decode_status_writer.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
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

/* The API server merges the oldest of more than ten entries under this name (capmanagers.go of
 * k8s.io/apimachinery), while anybody writes, with a time of theirs: that is no write. */
#define MERGED "ancient-changes"

enum { MAX_WRITERS = 32 }; /* of a job; operators are far fewer, and a forger's cost no more */

struct status_entry {
    const char *manager;
    int64_t at_ms;
    bool counts_replicas;
};

/* The entries that tell of a write of the status, without those that are malformed: ours together,
 * and of others the first MAX_WRITERS. Returns how many others; *ret_ours_ms: INT64_MIN if none. */
static size_t read_entries(const struct json *object, const char *ours,
                           struct status_entry others[MAX_WRITERS], int64_t *ret_ours_ms)
{
    const struct json *entries = json_get(json_get(object, "metadata"), "managedFields");
    size_t count = 0;
    *ret_ours_ms = INT64_MIN;
    for (size_t i = 0; i < json_array_count(entries); i++) {
        const struct json *entry = json_at(entries, i), *fields = status_fields(entry);
        const char *manager = json_as_text(json_get(entry, "manager"));
        const char *time = json_as_text(json_get(entry, "time"));
        int64_t at_ms;
        if (!fields || !manager || !time || !clock_parse_rfc3339(time, &at_ms))
            continue;
        if (strcmp(manager, ours) == 0)
            *ret_ours_ms = at_ms > *ret_ours_ms ? at_ms : *ret_ours_ms;
        else if (count < MAX_WRITERS && strcmp(manager, MERGED) != 0)
            others[count++] = (struct status_entry){
                .manager = manager,
                .at_ms = at_ms,
                .counts_replicas = json_is_object(json_get(fields, "f:replicaStatuses"))};
    }
    return count;
}

/* Quoted: a name may have any characters. */
static char *writer_text(const char *manager, int64_t at_ms)
{
    struct json *name = json_new_text(manager);
    auto_free char *quoted = json_print(name, JSON_COMPACT);
    json_free(name);
    return xasprintf("%s %" PRId64 "\n", quoted, at_ms);
}

static bool is_known(const char *known, const char *manager, int64_t at_ms)
{
    auto_free char *text = writer_text(manager, at_ms);
    const char *found = known;
    while ((found = strstr(found, text)) && found != known && found[-1] != '\n')
        found++;
    return found != NULL;
}

char *decode_status_writers(const struct json *object, const char *ours)
{
    struct status_entry others[MAX_WRITERS];
    int64_t ours_ms;
    size_t count = read_entries(object, ours, others, &ours_ms);
    char *all = xstrdup("");
    for (size_t i = 0; i < count; i++) {
        auto_free char *before = all, *text = writer_text(others[i].manager, others[i].at_ms);
        all = xasprintf("%s%s", before, text);
    }
    return all;
}

bool decode_status_writer(const struct json *object, const char *ours, const char *known,
                          struct status_writer *ret_writer)
{
    struct status_entry others[MAX_WRITERS];
    struct status_writer found = {.at_ms = INT64_MIN};
    size_t count = read_entries(object, ours, others, &found.ours_ms);
    for (size_t i = 0; i < count; i++) {
        if (others[i].at_ms <= found.at_ms ||
            (known && is_known(known, others[i].manager, others[i].at_ms)))
            continue;
        found.at_ms = others[i].at_ms;
        found.manager = others[i].manager;
        found.counts_replicas = others[i].counts_replicas;
    }
    *ret_writer = found;
    return found.manager != NULL;
}

bool decode_is_operators_write(const struct status_writer *writer, bool is_new,
                               const struct json *before, const struct json *after)
{
    /* Times are of whole seconds. Within one, only what we never do shows whose write it was. */
    bool dropped = json_get(before, "history") && !json_get(after, "history");
    bool not_ours = is_new || writer->ours_ms == INT64_MIN;
    if (json_is_equal(before, after) || writer->at_ms < writer->ours_ms)
        return false;
    return dropped || (not_ours && writer->counts_replicas && writer->at_ms > writer->ours_ms);
}
