#include "operator/board/job_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/page.h"
#include "base/series.h"
#include "operator/job/condition.h"
#include "operator/job/gpus.h"
#include "operator/job/history.h"
#include "operator/job/names.h"
#include "operator/manifest/manifest.h"

static struct json *text_of(const char *text)
{
    return text && *text ? json_new_text_cut(text, PAGE_MESSAGE_BYTES) : NULL;
}

static struct json *reason_of(const char *reason, const char *message)
{
    return json_object_of("reason", text_of(reason), "message", text_of(message), NULL);
}

/* What keeps the job from going on; NULL: nothing. */
static struct json *waiting(const struct job_status *status)
{
    const struct condition *waits = condition_find(status, CONDITION_WAITING);
    if (waits && waits->status)
        return reason_of(waits->reason, waits->message);
    if (!status->training.known || status->training.hung_rank < 0)
        return NULL;
    auto_free char *message = xasprintf(
        "rank %" PRId64 " makes no progress, and others wait for it", status->training.hung_rank);
    return reason_of(REASON_RANK_HUNG, message);
}

static int64_t wanted(const struct replica_spec *replica)
{
    return replica->replicas.set ? replica->replicas.value : 1;
}

static struct json *replicas(const struct job *job, const struct job_status *status)
{
    struct json *all = json_new_object();
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_status *seen = &status->replicas[type];
        if (job->replicas[type].present)
            json_set(all, names_replica_type(type),
                     json_object_of("replicas", json_new_integer(wanted(&job->replicas[type])),
                                    "active", json_new_integer(seen->active), "succeeded",
                                    json_new_integer(seen->succeeded), "failed",
                                    json_new_integer(seen->failed), NULL));
    }
    return all;
}

/* Without what only the operator goes on from: it is a third of all, and of each job. */
static struct json *training(const struct job_status *status)
{
    static const char *const own[] = {GOODPUT_OF_PROCESS, GOODPUT_FURTHEST_STEP,
                                      TRAINING_PROCESS_START, TRAINING_RESUMED_STEP};
    struct json *all = manifest_training(status);
    for (size_t i = 0; all && i < array_length(own); i++)
        json_remove(all, own[i]);
    return all;
}

struct json *job_view_row(const struct snapshot *snapshot, const struct job_status *status,
                          const struct series *series)
{
    const struct job *job = snapshot->job;
    const struct condition *last = condition_last(status);
    struct json *row = json_texts_of("namespace", job->namespace_, "name", job->name, "state",
                                     last ? names_condition(last->type) : "Created", NULL);
    json_set(row, "creationTimestamp", json_new_time(job->created_ms));
    json_set(row, "startTime", json_new_time(status->start_ms));
    json_set(row, "completionTime", json_new_time(status->completion_ms));
    json_set(row, "reason", text_of(last ? last->reason : NULL));
    json_set(row, "message", text_of(last ? last->message : NULL));
    json_set(row, "waiting", waiting(status));
    json_set(row, "replicas", replicas(job, status));
    json_set_integer(row, "gpus", gpus_asked(job));
    json_set_integer(row, "restarts", history_all_restarts(&status->history));
    json_set(row, "training", training(status));
    json_set(row, "losses", series ? series_losses(series, PAGE_LOSSES_MAX) : NULL);
    return row;
}

static struct json *conditions(const struct job_status *status)
{
    struct json *list = json_new_array();
    for (size_t i = 0; i < status->condition_count; i++) {
        const struct condition *c = &status->conditions[i];
        json_append(list,
                    json_object_of("type", json_new_text(names_condition(c->type)), "status",
                                   json_new_text(c->status ? "True" : "False"), "reason",
                                   text_of(c->reason), "message", text_of(c->message),
                                   "lastUpdateTime", json_new_time(c->update_ms),
                                   "lastTransitionTime", json_new_time(c->transition_ms), NULL));
    }
    return list;
}

static int by_type_and_index(const void *a, const void *b)
{
    const struct pod *x = *(const struct pod *const *)a, *y = *(const struct pod *const *)b;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static struct json *pod_of(const struct pod *pod)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed", "Unknown"};
    return json_object_of(
        "name", json_new_text(pod->name), "type", json_new_text(names_replica_type(pod->type)),
        "index", json_new_integer(pod->index), "phase",
        json_new_text(pod->deleted_ms ? "Terminating" : phases[pod->phase]), "node",
        text_of(pod->node), "restarts", json_new_integer(pod->restart_count), "waiting",
        pod->waiting_reason ? reason_of(pod->waiting_reason, pod->waiting_message) : NULL, NULL);
}

struct json *job_view_more(const struct snapshot *snapshot, const struct job_status *status)
{
    size_t count = 0;
    const struct pod **own = xcalloc(snapshot->pod_count, sizeof *own);
    for (size_t i = 0; i < snapshot->pod_count; i++) /* others may bear our names */
        if (strcmp(snapshot->pods[i].owner_uid, snapshot->job->uid) == 0)
            own[count++] = &snapshot->pods[i];
    qsort(own, count, sizeof *own, by_type_and_index);
    struct json *pods = json_new_array();
    for (size_t i = 0; i < count && i < JOB_VIEW_PODS_MAX; i++)
        json_append(pods, pod_of(own[i]));
    free(own);
    struct json *more = json_object_of("conditions", conditions(status), "pods", pods, NULL);
    if (count > JOB_VIEW_PODS_MAX)
        json_set_integer(more, "podsHidden", (int64_t)(count - JOB_VIEW_PODS_MAX));
    return more;
}
