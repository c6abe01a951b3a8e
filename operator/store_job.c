#include "operator/store_job.h"

#include "base/mem.h"
#include "operator/condition.h"
#include "operator/decode.h"
#include "operator/decode_pod.h"
#include "operator/decode_status.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

struct decoded_job {
    struct store_job shown; /* first: what takers hold */
    unsigned takers;
    struct stored_job *stored; /* NULL: a newer version has taken its place, or it is gone */
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

static enum condition_type state_of(const json_t *object)
{
    auto_arena struct arena *arena = arena_open();
    const struct job_status status = decode_status(json_object_get(object, "status"), arena);
    const struct condition *last = condition_last(&status);
    return last ? last->type : CONDITION_CREATED;
}

struct stored_job *stored_job_open(const struct json_t *object, const struct identity *identity)
{
    size_t version_bytes = strlen(identity->resource_version) + 1;
    size_t uid_bytes = strlen(identity->uid) + 1;
    struct stored_job *stored = xmalloc(sizeof *stored + version_bytes + uid_bytes);
    char *texts = (char *)(stored + 1);
    *stored = (struct stored_job){
        .text = trimmed_text(object),
        .version = memcpy(texts, identity->resource_version, version_bytes),
        .uid = memcpy(texts + version_bytes, identity->uid, uid_bytes),
        .state = state_of(object),
    };
    assert(stored->text);
    return stored;
}

void stored_job_close(struct stored_job *stored)
{
    if (!stored)
        return;
    if (stored->decoded)
        stored->decoded->stored = NULL;
    free(stored->text);
    free(stored);
}

static struct decoded_job *decode(struct stored_job *stored, int64_t default_backoff_limit)
{
    struct decoded_job *decoded = xcalloc(1, sizeof *decoded);
    decoded->stored = stored;
    decoded->arena = arena_open();
    decoded->object = json_loads(stored->text, JSON_ALLOW_NUL, NULL);
    assert(decoded->object); /* it was written by us */
    struct lines problems;
    lines_init(&problems, decoded->arena);
    decoded->shown.job =
        decode_job(decoded->object, default_backoff_limit, decoded->arena, &problems, NULL);
    decoded->status = decode_status(json_object_get(decoded->object, "status"), decoded->arena);
    decoded->shown.status = &decoded->status;
    decoded->shown.object = decoded->object;
    return decoded;
}

struct store_job *stored_job_take(struct stored_job *stored, int64_t default_backoff_limit)
{
    if (!stored->decoded)
        stored->decoded = decode(stored, default_backoff_limit);
    stored->decoded->takers++;
    return &stored->decoded->shown;
}

void stored_job_release(struct store_job *job)
{
    struct decoded_job *decoded = (struct decoded_job *)job;
    if (!decoded || --decoded->takers > 0)
        return;
    if (decoded->stored)
        decoded->stored->decoded = NULL;
    json_decref(decoded->object);
    arena_close(decoded->arena);
    free(decoded);
}
