#include "operator/progress/ask_target.h"

#include "base/contract.h"
#include "operator/decode/decode_training.h"
#include "operator/job/condition.h"
#include "operator/job/managed_by.h"

#include <string.h>

enum { CLOCKS_MS = 2000 }; /* whole seconds, and a process's way to its own clock */

/* Rank 0 is the master's, or that of worker 0 in a job without a master. */
static bool is_first(const struct snapshot *snapshot, const struct pod *pod)
{
    const struct job *job = snapshot->job;
    enum replica_type first =
        job->replicas[REPLICA_MASTER].present ? REPLICA_MASTER : REPLICA_WORKER;
    return pod->type == first && pod->index == 0 && strcmp(pod->owner_uid, job->uid) == 0;
}

/* The last process that told began in this container. */
static bool is_agent(const struct job_status *status, const struct pod *pod)
{
    return status->training.known && status->training.process_ms && pod->started_ms &&
           status->training.process_ms + CLOCKS_MS >= pod->started_ms;
}

/* As its pods have it in ENV_RUN_ID: the manifest's, or the job's UID. "": from elsewhere. */
static const char *run_of(const struct job *job, enum replica_type type)
{
    const struct pod_template *template_ = &job->replicas[type].template_;
    for (size_t i = 0; i < template_->container_count; i++)
        for (size_t k = 0; k < template_->containers[i].env_count; k++) {
            const struct env_var *var = &template_->containers[i].env[k];
            bool is_text = var->source == ENV_LITERAL && !strstr(var->value, "$(");
            if (strcmp(var->name, ENV_RUN_ID) == 0)
                return is_text ? var->value : "";
        }
    return job->uid;
}

bool ask_target_find(const struct snapshot *snapshot, struct ask_target *ret_target)
{
    if (!managed_by_us(snapshot->job) || condition_finished(snapshot->status))
        return false;
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct pod *pod = &snapshot->pods[i];
        if (!is_first(snapshot, pod) || pod->phase != POD_RUNNING || pod->deleted_ms ||
            pod->node_lost_ms || !pod->address)
            continue;
        *ret_target = (struct ask_target){.run = run_of(snapshot->job, pod->type),
                                          .uid = pod->uid,
                                          .restart_count = pod->restart_count,
                                          .pod = pod->name,
                                          .address = pod->address,
                                          .port = pod->training_port,
                                          .is_agent = is_agent(snapshot->status, pod)};
        return true;
    }
    return false;
}

static int64_t spent_ms(const struct training *t)
{
    int64_t sum_ms = 0;
    for (int k = 0; k < TRAINING_SPENT_KINDS; k++)
        sum_ms += t->spent_ms[k];
    return sum_ms;
}

/* What a process left may be told long ago: its clock says. That has whole seconds, within which
 * its steps and its time say. */
static bool is_newer(const struct training *left, const struct training *known)
{
    if (left->progress_ms != known->progress_ms)
        return left->progress_ms > known->progress_ms;
    if (!left->process_ms || left->process_ms != known->process_ms)
        return false;
    if (left->step != known->step)
        return left->step > known->step;
    return spent_ms(left) > spent_ms(known);
}

bool ask_target_newest(const struct snapshot *snapshot, const struct training *heard,
                       struct training *ret_newest)
{
    const struct training *shown = &snapshot->status->training;
    bool found = heard && heard->known;
    if (found)
        *ret_newest = *heard;
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct pod *pod = &snapshot->pods[i];
        struct training left;
        struct error err;
        if (!is_first(snapshot, pod) || !pod->last_line ||
            decode_training_told(pod->last_line, strlen(pod->last_line), &left, &err) < 0)
            continue;
        if (is_newer(&left, found ? ret_newest : shown)) {
            *ret_newest = left;
            found = true;
        }
    }
    return found;
}
