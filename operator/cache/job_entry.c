#include "operator/cache/job_entry.h"

#include "base/mem.h"
#include "operator/decode/decode.h"
#include "operator/decode/decode_pod.h"
#include "operator/decode/decode_status.h"
#include "operator/job/condition.h"
#include "operator/job/managed_by.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

enum { LARGE_BYTES = 16 << 10 }; /* smaller jobs are kept whole: they are cheap */

struct decoded_job {
    struct cached_job shown; /* first: what its users hold */
    unsigned users;
    struct job_entry *entry; /* NULL: a newer version has taken its place, or it is gone */
    struct arena *arena;
    json_t *object;
    struct job_status status;
};

/* The object as text, without what only kubectl reads, which may be the larger part. */
static char *trimmed_text(const json_t *object)
{
    json_t *copy = json_copy((json_t *)object);
    json_t *metadata = json_copy(json_object_get(object, "metadata"));
    json_t *annotations = json_copy(json_object_get(metadata, "annotations"));
    json_object_del(metadata, "managedFields");
    if (annotations) {
        json_object_del(annotations, LAST_APPLIED);
        json_object_set_new(metadata, "annotations", annotations);
    }
    json_object_set_new(copy, "metadata", metadata);
    char *text = json_dumps(copy, JSON_COMPACT);
    json_decref(copy);
    return text;
}

/* ---- what a job needs no more, or not yet ---- */

/* Keeps of an object only these fields. */
static void keep_fields(json_t *object, const char *const *names, size_t count)
{
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, name, value)
    {
        bool kept = false;
        for (size_t i = 0; i < count; i++)
            kept |= strcmp(name, names[i]) == 0;
        if (!kept)
            json_object_del(object, name);
    }
}

/* Leaves of a template what is asked of jobs that have no pods (a PodGroup's resources, say). */
static void slim_template(json_t *template_)
{
    static const char *const in_template[] = {"spec"};
    static const char *const in_spec[] = {"containers", "initContainers", "restartPolicy",
                                          "schedulerName", "terminationGracePeriodSeconds"};
    static const char *const in_container[] = {"name", "image", "ports", "resources"};
    json_t *spec = json_object_get(template_, "spec");
    keep_fields(template_, in_template, array_length(in_template));
    keep_fields(spec, in_spec, array_length(in_spec));
    for (int kind = 0; kind < 2; kind++) { /* containers, init containers */
        json_t *containers = json_object_get(spec, in_spec[kind]);
        for (size_t i = 0; i < json_array_size(containers); i++)
            keep_fields(json_array_get(containers, i), in_container, array_length(in_container));
    }
}

/* Whether no pod is made of this version: it has ended, is suspended, or another's. One that is
 * wrong is left as it is, to be found wrong. */
static bool is_idle(const json_t *object)
{
    auto_arena struct arena *arena = arena_open();
    struct lines problems;
    lines_init(&problems, arena);
    const struct job *job = decode_job(object, 0, arena, &problems, NULL);
    const struct job_status status = decode_status(json_object_get(object, "status"), arena);
    return !job->invalid &&
           (condition_finished(&status) || job->run_policy.suspend || !managed_by_us(job));
}

/* The text again, without what only pods need. */
static char *slim_text(const char *text)
{
    json_t *object = json_loads(text, JSON_ALLOW_NUL, NULL);
    json_t *replicas = json_object_get(json_object_get(object, "spec"), "pytorchReplicaSpecs");
    const char *type;
    json_t *replica;
    json_object_foreach(replicas, type, replica)
    {
        slim_template(json_object_get(replica, "template"));
    }
    char *slim = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return slim;
}

static enum condition_type state_of(const json_t *object)
{
    auto_arena struct arena *arena = arena_open();
    const struct job_status status = decode_status(json_object_get(object, "status"), arena);
    const struct condition *last = condition_last(&status);
    return last ? last->type : CONDITION_CREATED;
}

struct job_entry *job_entry_open(const struct json_t *object, const struct identity *identity)
{
    size_t version_bytes = strlen(identity->resource_version) + 1;
    size_t uid_bytes = strlen(identity->uid) + 1;
    struct job_entry *entry = xmalloc(sizeof *entry + version_bytes + uid_bytes);
    char *texts = (char *)(entry + 1);
    *entry = (struct job_entry){
        .text = trimmed_text(object),
        .version = memcpy(texts, identity->resource_version, version_bytes),
        .uid = memcpy(texts + version_bytes, identity->uid, uid_bytes),
        .state = state_of(object),
    };
    assert(entry->text);
    entry->bytes = strlen(entry->text);
    if (entry->bytes > LARGE_BYTES && is_idle(object)) {
        char *slim = slim_text(entry->text);
        free(entry->text);
        entry->text = slim;
    }
    return entry;
}

void job_entry_close(struct job_entry *entry)
{
    if (!entry)
        return;
    if (entry->decoded)
        entry->decoded->entry = NULL;
    free(entry->text);
    free(entry);
}

static struct decoded_job *decode(struct job_entry *entry, int64_t default_backoff_limit)
{
    struct decoded_job *decoded = xcalloc(1, sizeof *decoded);
    decoded->entry = entry;
    decoded->arena = arena_open();
    decoded->object = json_loads(entry->text, JSON_ALLOW_NUL, NULL);
    assert(decoded->object); /* it was written by us */
    struct lines problems;
    lines_init(&problems, decoded->arena);
    decoded->shown.job =
        decode_job(decoded->object, default_backoff_limit, decoded->arena, &problems, NULL);
    decoded->status = decode_status(json_object_get(decoded->object, "status"), decoded->arena);
    decoded->shown.status = &decoded->status;
    decoded->shown.object = decoded->object;
    decoded->shown.bytes = entry->bytes;
    return decoded;
}

struct cached_job *job_entry_acquire(struct job_entry *entry, int64_t default_backoff_limit)
{
    if (!entry->decoded)
        entry->decoded = decode(entry, default_backoff_limit);
    entry->decoded->users++;
    return &entry->decoded->shown;
}

void job_entry_release(struct cached_job *job)
{
    struct decoded_job *decoded = (struct decoded_job *)job;
    if (!decoded || --decoded->users > 0)
        return;
    if (decoded->entry)
        decoded->entry->decoded = NULL;
    json_decref(decoded->object);
    arena_close(decoded->arena);
    free(decoded);
}
