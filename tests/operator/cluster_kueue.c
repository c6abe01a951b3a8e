/* Kueue in the cluster of the tests: it keeps the job's Workload and answers as it is told. */
#include "tests/operator/cluster.h"

#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_over(struct cluster *cluster)
{
    cluster->workload.version = arena_printf(cluster->arena, "%d", ++cluster->uids);
}

static struct workload_spec copy_of_spec(struct cluster *cluster, const struct workload_spec *spec)
{
    struct workload_spec copy = *spec;
    copy.queue = arena_strdup(cluster->arena, spec->queue);
    return copy;
}

static void set_status(struct cluster *cluster, const struct workload_status *status)
{
    struct workload *workload = &cluster->workload;
    if (status->releases) {
        workload->quota_reserved = workload->admitted = false;
        memset(workload->assigned, 0, sizeof workload->assigned);
    }
    if (status->pods_ready != READY_ABSENT)
        workload->pods_ready = status->pods_ready;
    if (status->reclaims)
        memcpy(workload->reclaimable, status->reclaimable, sizeof workload->reclaimable);
    workload->finished |= status->finished_reason != NULL;
}

void cluster_change_workload(struct cluster *cluster, const struct action *action)
{
    struct workload *workload = &cluster->workload;
    if (action->kind == ACTION_CREATE_WORKLOAD) {
        if (workload->name)
            return;
        *workload = (struct workload){.name = action->name,
                                      .owner_uid = cluster->job->uid,
                                      .spec = copy_of_spec(cluster, action->workload),
                                      .active = true,
                                      .eviction_reason = "",
                                      .message = "",
                                      .conditions = ""};
        workload->uid = arena_printf(cluster->arena, "u%d", ++cluster->uids);
        write_over(cluster);
        return;
    }
    if (!workload->name || strcmp(workload->uid, action->uid) != 0)
        return;
    if (action->kind == ACTION_DELETE_WORKLOAD) {
        *workload = (struct workload){0};
        return;
    }
    if (strcmp(workload->version, action->version) != 0)
        return;
    if (action->kind == ACTION_UPDATE_WORKLOAD) {
        workload->spec.queue = action->workload->queue;
        workload->spec.priority = action->workload->priority;
    } else {
        set_status(cluster, action->workload_status);
    }
    write_over(cluster);
}

/* ---- what people and Kueue do ---- */

static void admit(struct cluster *cluster, const char *workers)
{
    struct workload *workload = &cluster->workload;
    workload->quota_reserved = workload->admitted = true;
    workload->evicted = false;
    workload->message = workload->eviction_reason = "";
    if (*workers)
        workload->assigned[REPLICA_WORKER].count =
            (struct optional){.set = true, .value = atoi(workers)};
    for (int type = 0; type < REPLICA_TYPES; type++)
        cluster->queue.fields[type] = "{}";
}

static void evict(struct cluster *cluster, const char *reason)
{
    cluster->workload.evicted = true;
    cluster->workload.eviction_reason = reason;
    cluster->workload.message = "make way";
}

static void name_class(struct cluster *cluster, const char *name)
{
    cluster->queue.priority = (struct workload_priority){PRIORITY_WORKLOAD_CLASS, name, 100};
}

bool cluster_kueue(struct cluster *cluster, const char *verb, const char *value)
{
    struct workload *workload = &cluster->workload;
    const char *word = arena_strdup(cluster->arena, value);
    if (strcmp(verb, "queue") == 0) {
        cluster->options.kueue = KUEUE_SEEN;
        cluster->job->queue.name = *word ? word : NULL;
        cluster->job->queue.templates_hash = "t";
        cluster->queue.priority.class_name =
            cluster->queue.priority.class_name ? cluster->queue.priority.class_name : "";
    } else if (strcmp(verb, "admit") == 0) {
        admit(cluster, word);
    } else if (strcmp(verb, "reserve") == 0) {
        workload->quota_reserved = true;
    } else if (strcmp(verb, "preempt") == 0) {
        evict(cluster, word);
    } else if (strcmp(verb, "say") == 0) {
        workload->message = word;
    } else if (strcmp(verb, "deactivate") == 0) {
        workload->active = false;
    } else if (strcmp(verb, "conclude") == 0) {
        workload->finished = true;
    } else if (strcmp(verb, "unmake") == 0) {
        *workload = (struct workload){0};
    } else if (strcmp(verb, "other") == 0) {
        cluster->queue.other = word;
    } else if (strcmp(verb, "unseen") == 0) {
        cluster->options.kueue = KUEUE_UNSEEN;
        *workload = (struct workload){0};
    } else if (strcmp(verb, "obstruct") == 0) {
        cluster->queue.obstacle = *word ? word : NULL;
    } else if (strcmp(verb, "place") == 0) {
        cluster->queue.fields[REPLICA_WORKER] = word;
    } else if (strcmp(verb, "class") == 0) {
        name_class(cluster, word);
    } else if (strcmp(verb, "classless") == 0) {
        cluster->queue.priority_unknown = *word == 'T';
    } else if (strcmp(verb, "template") == 0) {
        cluster->job->queue.templates_hash = word;
    } else {
        return false;
    }
    return true;
}
