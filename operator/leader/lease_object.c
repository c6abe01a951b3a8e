#include "operator/leader/lease_object.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "operator/job/resources.h"

#include <stdio.h>

/* What we read of it, as it stands. */
struct lease_object {
    const char *version;
    const char *holder, *acquired, *renewed;
    struct {
        bool set;
        int64_t value;
    } duration_s, transitions;
};

static const struct json_field metadata_fields[] = {
    JSON_TEXT("resourceVersion", struct lease_object, version),
    JSON_END,
};

static const struct json_field spec_fields[] = {
    JSON_TEXT("holderIdentity", struct lease_object, holder),
    JSON_TEXT("acquireTime", struct lease_object, acquired),
    JSON_TEXT("renewTime", struct lease_object, renewed),
    JSON_OPTIONAL("leaseDurationSeconds", struct lease_object, duration_s, 0, INT32_MAX),
    JSON_OPTIONAL("leaseTransitions", struct lease_object, transitions, 0, INT32_MAX),
    JSON_END,
};

static const struct json_field lease_fields[] = {
    JSON_SAME("metadata", metadata_fields),
    JSON_SAME("spec", spec_fields),
    JSON_END,
};

static void copy(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
}

int lease_object_read(const struct json *object, struct lease_record *ret_record, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct lines problems;
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems};
    struct lease_object lease = {0};
    if (json_is_object_here(&reader, object))
        json_read(&reader, object, lease_fields, &lease);
    if (problems.count)
        return error_set(err, ERR_INPUT, "Lease: %s", lines_join(&problems));
    if (!lease.version)
        return error_set(err, ERR_INPUT, "Lease: metadata.resourceVersion: missing");
    *ret_record = (struct lease_record){.exists = true,
                                        .duration_s = lease.duration_s.value,
                                        .transitions = lease.transitions.value};
    copy(ret_record->holder, sizeof ret_record->holder, lease.holder);
    copy(ret_record->acquired, sizeof ret_record->acquired, lease.acquired);
    copy(ret_record->renewed, sizeof ret_record->renewed, lease.renewed);
    copy(ret_record->version, sizeof ret_record->version, lease.version);
    return 0;
}

struct json *lease_object_write(const struct json *seen, const char *namespace_, const char *name,
                                const struct lease_record *record)
{
    struct json *object = json_clone(seen);
    if (seen) {
        /* With the version the PUT is a compare-and-swap: of two candidates that read the same
         * lease the server refuses one (409). */
        json_set_text(json_get(object, "metadata"), "resourceVersion", record->version);
    } else {
        object = json_texts_of("apiVersion", resource_lease.api_version, "kind",
                               resource_lease.kind, NULL);
        json_set(object, "metadata", json_texts_of("namespace", namespace_, "name", name, NULL));
    }
    struct json *spec = json_get(object, "spec");
    if (!json_is_object(spec)) {
        spec = json_new_object();
        json_set(object, "spec", spec);
    }
    json_set(spec, "holderIdentity", json_new_text(record->holder));
    json_set(spec, "leaseDurationSeconds", json_new_integer(record->duration_s));
    json_set(spec, "leaseTransitions", json_new_integer(record->transitions));
    json_set(spec, "acquireTime", json_new_text(record->acquired));
    json_set(spec, "renewTime", json_new_text(record->renewed));
    return object;
}
