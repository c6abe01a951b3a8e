#include "operator/cache/job_entry.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/packed.h"
#include "operator/decode/decode.h"
#include "operator/decode/decode_pod.h"
#include "operator/decode/decode_status.h"
#include "operator/decode/decode_status_writer.h"
#include "operator/job/condition.h"
#include "operator/job/managed_by.h"
#include "operator/job/resources.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

enum { LARGE_BYTES = 16 << 10 }; /* smaller jobs are kept whole: they are cheap */

struct decoded_job {
    struct cached_job shown; /* first: what its users hold */
    unsigned users;
    struct job_entry *entry; /* NULL: a newer version has taken its place, or it is gone */
    struct arena *arena;
    struct json *object;
    struct job_status status;
};

/* The object as text, without what only kubectl reads, which may be the larger part. */
static char *trimmed_text(const struct json *object)
{
    struct json *copy = json_clone(object), *metadata = json_get(copy, "metadata");
    json_remove(metadata, "managedFields");
    json_remove(json_get(metadata, "annotations"), LAST_APPLIED);
    char *text = json_print(copy, JSON_COMPACT);
    json_free(copy);
    return text;
}

/* ---- what a job needs no more, or not yet ---- */

/* Keeps of an object only these fields. */
static void keep_fields(struct json *object, const char *const *names, size_t count)
{
    for (struct json *member = json_first_member(object), *next; member; member = next) {
        bool kept = false;
        for (size_t i = 0; i < count; i++)
            kept |= strcmp(json_key(member), names[i]) == 0;
        next = json_next(member);
        if (!kept)
            json_remove(object, json_key(member));
    }
}

/* Leaves of a template what is asked of jobs that have no pods (a PodGroup's resources, say). */
static void slim_template(struct json *template_)
{
    static const char *const in_template[] = {"spec"};
    static const char *const in_spec[] = {"containers", "initContainers", "restartPolicy",
                                          "schedulerName", "terminationGracePeriodSeconds"};
    static const char *const in_container[] = {"name", "image", "ports", "resources"};
    struct json *spec = json_get(template_, "spec");
    keep_fields(template_, in_template, array_length(in_template));
    keep_fields(spec, in_spec, array_length(in_spec));
    for (int kind = 0; kind < 2; kind++) { /* containers, init containers */
        struct json *containers = json_get(spec, in_spec[kind]);
        for (size_t i = 0; i < json_array_count(containers); i++)
            keep_fields(json_at(containers, i), in_container, array_length(in_container));
    }
}

/* Whether no pod is made of this version: it has ended, is suspended, or another's. One that is
 * wrong is left as it is, to be found wrong. */
static bool is_idle(const struct json *object)
{
    auto_arena struct arena *arena = arena_open();
    struct lines problems;
    lines_init(&problems, arena);
    const struct job *job = decode_job(object, 0, arena, &problems, NULL);
    const struct job_status status = decode_status(json_get(object, "status"), arena);
    return !job->invalid &&
           (condition_finished(&status) || job->run_policy.suspend || !managed_by_us(job));
}

/* The text again, without what only pods need. */
static char *slim_text(const char *text)
{
    struct json *object = json_parse_text(text, JSON_STRICT, NULL);
    struct json *replicas = json_get(json_get(object, "spec"), "pytorchReplicaSpecs");
    struct json *replica;
    json_each_member(replica, replicas) {
        slim_template(json_get(replica, "template"));
    }
    char *slim = json_print(object, JSON_COMPACT);
    json_free(object);
    return slim;
}

static enum condition_type state_of(const struct json *object)
{
    auto_arena struct arena *arena = arena_open();
    const struct job_status status = decode_status(json_get(object, "status"), arena);
    const struct condition *last = condition_last(&status);
    return last ? last->type : CONDITION_CREATED;
}

/* The text that is kept of an object. *ret_bytes: of one that is kept whole. The caller owns it. */
static char *kept_text(const struct json *object, size_t *ret_bytes)
{
    char *text = trimmed_text(object);
    assert(text);
    *ret_bytes = strlen(text);
    if (*ret_bytes <= LARGE_BYTES || !is_idle(object))
        return text;
    char *slim = slim_text(text);
    free(text);
    return slim;
}

struct job_entry *job_entry_open(const struct json *object, const struct identity *identity,
                                 struct job_entry *old)
{
    size_t bytes;
    auto_free char *text = kept_text(object, &bytes);
    struct packed *kept = packed_keep(old ? take(old->text) : NULL, text);
    job_entry_close(old);
    size_t version_bytes = strlen(identity->resource_version) + 1;
    size_t uid_bytes = strlen(identity->uid) + 1;
    struct job_entry *entry = xmalloc(sizeof *entry + version_bytes + uid_bytes);
    char *texts = (char *)(entry + 1);
    *entry = (struct job_entry){
        .text = kept,
        .bytes = bytes,
        .version = memcpy(texts, identity->resource_version, version_bytes),
        .uid = memcpy(texts + version_bytes, identity->uid, uid_bytes),
        .state = state_of(object),
        .writers = decode_status_writers(object),
    };
    return entry;
}

void job_entry_close(struct job_entry *entry)
{
    if (!entry)
        return;
    /* Users of the decoded job keep it: a reconcile goes on with the version it began with. */
    if (entry->decoded)
        entry->decoded->entry = NULL;
    free(entry->text);
    free(entry->writers);
    free(entry);
}

/* The caller owns it. */
static struct json *object_of(const struct job_entry *entry)
{
    auto_free char *text = packed_text(entry->text);
    struct json *object = json_parse_text(text, JSON_STRICT, NULL);
    assert(object); /* it was written by us */
    return object;
}

/* Where runPolicy.managedBy names another controller, that one writes the status. */
static bool is_ours(const struct json *object)
{
    auto_arena struct arena *arena = arena_open();
    struct lines problems;
    lines_init(&problems, arena);
    return managed_by_us(decode_job(object, 0, arena, &problems, NULL));
}

const char *job_entry_other_writer(const struct job_entry *entry, const struct json *object)
{
    struct status_writer writer;
    const char *known = entry ? entry->writers : NULL;
    if (!decode_status_writer(object, FIELD_MANAGER, known, &writer))
        return NULL;
    struct json *old = entry ? object_of(entry) : NULL;
    bool wrote = decode_is_operators_write(&writer, known != NULL, json_get(old, "status"),
                                           json_get(object, "status"));
    json_free(old);
    return wrote && is_ours(object) ? writer.manager : NULL;
}

static struct decoded_job *decode(struct job_entry *entry, int64_t default_backoff_limit)
{
    struct decoded_job *decoded = xcalloc(1, sizeof *decoded);
    decoded->entry = entry;
    decoded->arena = arena_open();
    decoded->object = object_of(entry);
    struct lines problems;
    lines_init(&problems, decoded->arena);
    decoded->shown.job =
        decode_job(decoded->object, default_backoff_limit, decoded->arena, &problems, NULL);
    decoded->status = decode_status(json_get(decoded->object, "status"), decoded->arena);
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
    json_free(decoded->object);
    arena_close(decoded->arena);
    free(decoded);
}
