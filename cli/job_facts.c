#include "cli/job_facts.h"

#include <string.h>

#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "operator/decode/decode.h"
#include "operator/decode/decode_identity.h"
#include "operator/decode/decode_pod.h"
#include "operator/decode/decode_status.h"
#include "operator/job/condition.h"
#include "operator/job/gpus.h"
#include "operator/job/history.h"
#include "operator/job/names.h"

enum { COUNT_MAX = 1000000000 };

/* Whoever may write an object could else write to the terminals of those who look at it. */
static const char *printable(const char *text, struct arena *arena)
{
    char *copy = arena_strdup(arena, text ? text : "");
    utf8_make_printable(copy, strlen(copy));
    return copy;
}

/* ---- the job ---- */

static void read_replicas(const struct job *job, const struct job_status *status,
                          struct job_facts *facts)
{
    /* Without a master nodes take ranks as they come, and in an elastic run anew each round. */
    facts->has_fixed_nodes = job->replicas[REPLICA_MASTER].present && !job->elastic.present;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_spec *replica = &job->replicas[type];
        if (!replica->present)
            continue;
        /* An invalid job has no defaults. */
        int64_t count = replica->replicas.set ? replica->replicas.value : 1;
        facts->replicas[type] = count >= 0 && count <= COUNT_MAX ? count : 0;
        facts->active += status->replicas[type].active;
    }
}

static void read_conditions(const struct job *job, const struct job_status *status,
                            struct job_facts *facts, struct arena *arena)
{
    struct condition *conditions = arena_array(arena, struct condition, status->condition_count);
    for (size_t i = 0; i < status->condition_count; i++) {
        conditions[i] = status->conditions[i];
        conditions[i].reason = printable(conditions[i].reason, arena);
        conditions[i].message = printable(conditions[i].message, arena);
    }
    facts->conditions = conditions;
    facts->condition_count = status->condition_count;
    const struct condition *last = job_facts_condition(facts);
    facts->state = last ? names_condition(last->type) : "New";
    if (job->deleting)
        facts->state = "Deleting";
}

struct job_facts job_facts_read(const struct json *object, int64_t now_ms, struct arena *arena)
{
    struct lines problems; /* the operator tells them in the job's conditions */
    lines_init(&problems, arena);
    const struct job *job = decode_job(object, -1, arena, &problems, NULL);
    const struct job_status status = decode_status(json_get(object, "status"), arena);
    const struct history *history = &status.history;
    struct job_facts facts = {
        .name = printable(job->name, arena),
        .namespace_ = printable(job->namespace_, arena),
        .uid = printable(job->uid, arena),
        .created_ms = job->created_ms,
        .start_ms = status.start_ms,
        .completion_ms = status.completion_ms,
        .failures = history->failures,
        .limit = job->run_policy.backoff_limit.set ? job->run_policy.backoff_limit.value : -1,
        .gpus = gpus_asked(job),
        .restarts = history_all_restarts(history),
        .rank_restarts = history->rank_restarts,
        .avoided = printable(history_avoided_names(history, arena), arena),
        .training = status.training,
        .goodput = goodput_shown(&status.goodput, job->created_ms, now_ms),
    };
    read_conditions(job, &status, &facts, arena);
    read_replicas(job, &status, &facts);
    return facts;
}

const struct condition *job_facts_condition(const struct job_facts *job)
{
    return job->condition_count ? &job->conditions[job->condition_count - 1] : NULL;
}

bool job_facts_finished(const struct job_facts *job)
{
    for (size_t i = 0; i < job->condition_count; i++)
        if (job->conditions[i].status && (job->conditions[i].type == CONDITION_SUCCEEDED ||
                                          job->conditions[i].type == CONDITION_FAILED))
            return true;
    return false;
}

/* ---- a pod ---- */

static const char *end_message(const struct pod *pod, struct arena *arena)
{
    if (!pod->end.container)
        return "";
    return arena_printf(arena, "container %s ended with exit code %d%s%s%s", pod->end.container,
                        pod->end.code, pod->end.reason ? " (" : "",
                        pod->end.reason ? pod->end.reason : "", pod->end.reason ? ")" : "");
}

struct pod_facts job_facts_of_pod(const struct pod *pod, struct arena *arena)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed", "Unknown"};
    bool is_stuck = pod->waiting_reason != NULL, has_ended = pod->end.container != NULL;
    const char *reason = is_stuck ? pod->waiting_reason : pod->end.reason;
    const char *message = is_stuck ? pod->waiting_message : end_message(pod, arena);
    return (struct pod_facts){
        .name = printable(pod->name, arena),
        .node = printable(pod->node, arena),
        .state = pod->deleted_ms ? "Terminating" : phases[pod->phase],
        .type = pod->type,
        .index = pod->index,
        .reason = printable(reason, arena),
        .message = printable(message, arena),
        .restarts = pod->restart_count,
        .created_ms = pod->created_ms,
        .is_stuck = is_stuck,
        .has_failed = has_ended && pod->phase != POD_SUCCEEDED,
        .has_run = pod->phase != POD_PENDING,
    };
}

int job_facts_compare_pods(const void *a, const void *b)
{
    const struct pod_facts *x = a, *y = b;
    if (x->type != y->type)
        return (int)x->type - (int)y->type;
    return (x->index > y->index) - (x->index < y->index);
}

bool job_facts_read_pod(const struct json *object, struct arena *arena, struct pod_facts *ret_pod)
{
    struct identity identity;
    struct error err;
    struct lines problems;
    lines_init(&problems, arena);
    if (decode_identity(object, arena, &problems, &identity, &err) < 0 || identity.index < 0)
        return false;
    const struct pod pod = decode_pod(object, &identity, arena, &problems);
    *ret_pod = job_facts_of_pod(&pod, arena);
    return true;
}

/* ---- an event ---- */

struct series {
    struct optional count;
    int64_t last_ms;
};

struct event_document {
    const char *type, *reason, *message;
    int64_t first_ms, last_ms, event_ms;
    struct optional count;
    struct series series;
};

static const struct json_field series_fields[] = {
    JSON_OPTIONAL("count", struct series, count, 0, COUNT_MAX),
    JSON_CUSTOM("lastObservedTime", struct series, last_ms, decode_time),
    JSON_END,
};

/* https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1, in the form of
 * the core group. */
static const struct json_field event_fields[] = {
    JSON_TEXT("type", struct event_document, type),
    JSON_TEXT("reason", struct event_document, reason),
    JSON_TEXT("message", struct event_document, message),
    JSON_CUSTOM("firstTimestamp", struct event_document, first_ms, decode_time),
    JSON_CUSTOM("lastTimestamp", struct event_document, last_ms, decode_time),
    JSON_CUSTOM("eventTime", struct event_document, event_ms, decode_time),
    JSON_OPTIONAL("count", struct event_document, count, 0, COUNT_MAX),
    JSON_PART("series", struct event_document, series, series_fields),
    JSON_END,
};

static int64_t first_known(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return a ? a : b ? b : c ? c : d;
}

struct event_facts job_facts_read_event(const struct json *object, struct arena *arena)
{
    struct event_document document = {0};
    struct lines problems; /* of a field that is odd the rest is still worth reading */
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems};
    json_read(&reader, object, event_fields, &document);
    int64_t count = document.series.count.set ? document.series.count.value
                    : document.count.set      ? document.count.value
                                              : 1;
    return (struct event_facts){
        .time_ms = first_known(document.series.last_ms, document.last_ms, document.event_ms,
                               document.first_ms),
        .count = count > 0 ? count : 1,
        .type = printable(document.type, arena),
        .reason = printable(document.reason, arena),
        .message = printable(document.message, arena),
    };
}
