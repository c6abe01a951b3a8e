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

/* The API server merges the oldest of more than ten entries of updates under this name, ours among
 * them (capmanagers.go of k8s.io/apimachinery), while anybody writes: that is no write. */
#define MERGED "ancient-changes"

/* kubectl's own names: "kubectl", and "kubectl-edit", "kubectl-patch", ... by subcommand. */
#define PERSONS "kubectl"

enum { MAX_WRITERS = 32 }; /* of a job; operators are far fewer, and a forger's cost no more */

struct status_entry {
    const char *manager;
    int64_t at_ms;
    bool counts_replicas;
};

struct status_entries {
    struct status_entry items[MAX_WRITERS];
    size_t count;
};

/* The entries that tell of a write of the status, without those that are malformed. False: there
 * are no managedFields (of a list null is left: json_lenient.h), or too many such entries. Of those
 * none may be left out: a write takes others away, and then one that was left out looks new. */
static bool read_entries(const struct json *object, struct status_entries *entries)
{
    const struct json *fields = json_get(json_get(object, "metadata"), "managedFields");
    entries->count = 0;
    if (!json_is_array(fields))
        return false;
    for (size_t i = 0; i < json_array_count(fields); i++) {
        const struct json *entry = json_at(fields, i), *status = status_fields(entry);
        const char *manager = json_as_text(json_get(entry, "manager"));
        const char *time = json_as_text(json_get(entry, "time"));
        int64_t at_ms;
        if (!status || !manager || !time || !clock_parse_rfc3339(time, &at_ms))
            continue;
        if (entries->count == MAX_WRITERS)
            return false;
        entries->items[entries->count++] = (struct status_entry){
            .manager = manager,
            .at_ms = at_ms,
            .counts_replicas = json_is_object(json_get(status, "f:replicaStatuses"))};
    }
    return true;
}

/* Quoted: a name may have any characters. */
static char *writer_text(const struct status_entry *entry)
{
    struct json *name = json_new_text(entry->manager);
    auto_free char *quoted = json_print(name, JSON_COMPACT);
    json_free(name);
    return xasprintf("%s %" PRId64 "\n", quoted, entry->at_ms);
}

static bool is_known(const char *known, const struct status_entry *entry)
{
    auto_free char *text = writer_text(entry);
    const char *found = known;
    while ((found = strstr(found, text)) && found != known && found[-1] != '\n')
        found++;
    return found != NULL;
}

char *decode_status_writers(const struct json *object)
{
    struct status_entries entries;
    if (!read_entries(object, &entries))
        return NULL;
    char *all = xstrdup("");
    for (size_t i = 0; i < entries.count; i++) {
        auto_free char *before = all, *text = writer_text(&entries.items[i]);
        all = xasprintf("%s%s", before, text);
    }
    return all;
}

static bool is_operators_name(const char *manager)
{
    return strcmp(manager, MERGED) != 0 && strncmp(manager, PERSONS, strlen(PERSONS)) != 0;
}

bool decode_status_writer(const struct json *object, const char *ours, const char *known,
                          struct status_writer *ret_writer)
{
    struct status_entries entries;
    *ret_writer = (struct status_writer){.at_ms = INT64_MIN, .ours_ms = INT64_MIN};
    if (!read_entries(object, &entries))
        return false;
    for (size_t i = 0; i < entries.count; i++) {
        const struct status_entry *entry = &entries.items[i];
        if (!is_operators_name(entry->manager) || (known && is_known(known, entry)))
            continue;
        if (strcmp(entry->manager, ours) == 0) {
            if (entry->at_ms > ret_writer->ours_ms)
                ret_writer->ours_ms = entry->at_ms;
        } else if (entry->at_ms > ret_writer->at_ms) {
            ret_writer->manager = entry->manager;
            ret_writer->at_ms = entry->at_ms;
            ret_writer->counts_replicas = entry->counts_replicas;
        }
    }
    return ret_writer->manager != NULL;
}

bool decode_is_operators_write(const struct status_writer *writer, bool is_new,
                               const struct json *before, const struct json *after)
{
    /* Times are of whole seconds. Within one, only what we never do shows whose write it was. */
    bool dropped = json_get(before, "history") && !json_get(after, "history");
    if (json_is_equal(before, after) || writer->at_ms < writer->ours_ms)
        return false;
    return dropped || (is_new && writer->counts_replicas && writer->at_ms > writer->ours_ms);
}
