/* Which kinds are watched, how, and in which of their versions. */
#include "operator/cache/informers_internal.h"

#include "base/contract.h"
#include "base/json_lenient.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/decode/decode_pod.h"
#include "operator/job/resources.h"

#include <assert.h>
#include <stdlib.h>

/* The label that all we make bear: what is not ours costs no memory. */
#define OURS LABEL_OPERATOR_NAME "=" OPERATOR_NAME

enum {
    PAGE = 500, /* objects, as client-go has it; while they are read, pods cost 30 KiB each */
    WATCH_TIMEOUT_S = 290,
    BACKOFF_FIRST_MS = 200,
    BACKOFF_MAX_MS = 30 * 1000,
    PATH_MAX_BYTES = 512,
};

/* The one without a version stands for "none". */
static const char *const autoscaling_versions[] = {"v2", "v2beta2", NULL};

static const char *const kueue_versions[] = {"v1beta2", "v1beta1"};

/* ---- what is heard ---- */

static void on_begin_list(void *context)
{
    const struct informer *informer = context;
    cache_begin_list(informer->informers->cache, informer->kind);
}

static void on_put(void *context, const struct json *object)
{
    const struct informer *informer = context;
    cache_put(informer->informers->cache, informer->kind, object);
}

static void on_remove(void *context, const struct json *object)
{
    const struct informer *informer = context;
    cache_delete(informer->informers->cache, informer->kind, object);
}

static void on_end_list(void *context)
{
    const struct informer *informer = context;
    cache_end_list(informer->informers->cache, informer->kind);
}

static void on_warn(void *context, const char *message)
{
    (void)context;
    log_warning("%s", message);
}

/* ---- life cycle ---- */

struct informer_row {
    enum cache_kind kind;
    const char *what;
    const struct resource *resource;
    const char *selector;
    const char *const *left_out; /* what the cache has no use for; NULL: managedFields */
    bool whole_events;           /* it looks who wrote them */
};

static void open_informer(struct informers *informers, const struct informer_row *row)
{
    struct informer *informer = &informers->of[row->kind];
    char path[PATH_MAX_BYTES];
    bool of_cluster = row->kind == CACHE_NODES || row->kind > CACHE_WORKLOADS;
    const char *namespace_ = of_cluster ? NULL : informers->options.namespace_;
    bool fits = kube_path(path, sizeof path, row->resource->group, row->resource->version,
                          row->resource->plural, namespace_, NULL, NULL);
    assert(fits);
    *informer = (struct informer){.informers = informers,
                                  .kind = row->kind,
                                  .what = row->what,
                                  .plural = row->resource->plural};
    /* The seeds differ: after an outage the watches do not all begin again at the same moment. */
    const struct watch_options options = {
        .path = path,
        .selector = row->selector,
        .page = PAGE,
        .timeout_s = WATCH_TIMEOUT_S,
        .left_out = row->left_out ? row->left_out : json_managed_fields,
        .whole_events = row->whole_events,
        .backoff_first_ms = BACKOFF_FIRST_MS,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .seed = informers->options.seed + row->kind,
        .begin_list = on_begin_list,
        .put = on_put,
        .remove = on_remove,
        .end_list = on_end_list,
        .warn = on_warn,
        .context = informer,
    };
    informer->watcher = watcher_open(informers->kube, &options, informers->options.clocks);
}

static void open_pod_groups(struct informers *informers)
{
    static const char *const whats[] = {
        [GANG_VOLCANO] = "Volcano's PodGroups", [GANG_PLUGINS] = "scheduler-plugins' PodGroups"};
    enum gang_scheduler gang = informers->options.gang;
    if (gang != GANG_NONE)
        open_informer(informers,
                      &(struct informer_row){CACHE_POD_GROUPS, whats[gang],
                                             resource_pod_group(gang), OURS, NULL, false});
}

static void open_autoscalers(struct informers *informers)
{
    const char *version = autoscaling_versions[informers->autoscaling];
    if (version)
        open_informer(informers,
                      &(struct informer_row){CACHE_AUTOSCALERS, "HorizontalPodAutoscalers",
                                             resource_autoscaler(version), OURS, NULL, false});
}

static void open_nodes(struct informers *informers)
{
    if (informers->options.watch_nodes)
        open_informer(informers, &(struct informer_row){CACHE_NODES, "nodes", &resource_node, "",
                                                        NULL, false});
}

/* All that Kueue has, for whoever it is: a Workload that we did not make tells whose the job is. */
static void open_kueue(struct informers *informers)
{
    const char *version = kueue_versions[informers->kueue];
    const struct informer_row rows[] = {
        {CACHE_WORKLOADS, "Kueue's Workloads", resource_workload(version), "", NULL, false},
        {CACHE_FLAVORS, "Kueue's ResourceFlavors", resource_flavor(version), "", NULL, false},
        {CACHE_WORKLOAD_PRIORITIES, "Kueue's WorkloadPriorityClasses",
         resource_workload_priority(version), "", NULL, false},
        {CACHE_PRIORITIES, "PriorityClasses", &resource_priority, "", NULL, false},
    };
    for (size_t i = 0; i < array_length(rows) && informers->options.kueue; i++)
        if (!informers->of[rows[i].kind].watcher)
            open_informer(informers, &rows[i]);
}

struct informers *informers_open(struct kube *kube, struct cache *cache,
                                 const struct informers_options *options)
{
    static const struct informer_row rows[] = {
        {CACHE_JOBS, "PyTorchJobs", &resource_job, "", NULL, true},
        {CACHE_PODS, "pods", &resource_pod, OURS, decode_pod_unread, false},
        {CACHE_SERVICES, "services", &resource_service, OURS, NULL, false},
    };
    struct informers *informers = xcalloc(1, sizeof *informers);
    informers->options = *options;
    informers->kube = kube;
    informers->cache = cache;
    for (size_t i = 0; i < array_length(rows); i++)
        open_informer(informers, &rows[i]);
    open_pod_groups(informers);
    open_autoscalers(informers);
    open_nodes(informers);
    open_kueue(informers);
    return informers;
}

void informers_close(struct informers *informers)
{
    if (!informers)
        return;
    for (size_t i = 0; i < CACHE_KINDS; i++)
        watcher_close(informers->of[i].watcher);
    free(informers);
}

/* ---- versions ---- */

bool informer_is_synced(const struct informer *informer)
{
    return informer->watcher && watch_is_synced(watcher_machine(informer->watcher));
}

/* Goes on to an older version if the server does not know this one, and does without if it knows
 * none: jobs run without autoscalers. Not once they were seen: a server that is starting again may
 * not know yet what it knows. */
static void settle_autoscaling(struct informers *informers)
{
    struct informer *informer = &informers->of[CACHE_AUTOSCALERS];
    const struct error *err = NULL;
    if (!informer->watcher || informer_is_synced(informer) ||
        !watch_failing_since(watcher_machine(informer->watcher), &err) ||
        err->code != ERR_NOT_FOUND)
        return;
    watcher_close(take(informer->watcher));
    cache_begin_list(informers->cache, CACHE_AUTOSCALERS);
    cache_end_list(informers->cache, CACHE_AUTOSCALERS);
    informers->autoscaling++;
    open_autoscalers(informers);
}

/* Kueue may be installed later, in either version: while the Workloads of one are not found, the
 * other is tried at times. What was seen once is waited for. */
static void settle_kueue(struct informers *informers, int64_t now_ms)
{
    struct informer *informer = &informers->of[CACHE_WORKLOADS];
    const struct error *err = NULL;
    if (!informer->watcher || informer_is_synced(informer) ||
        !watch_failing_since(watcher_machine(informer->watcher), &err) ||
        err->code != ERR_NOT_FOUND ||
        (informers->kueue_ms && now_ms - informers->kueue_ms < BACKOFF_MAX_MS))
        return;
    if (informers->kueue == array_length(kueue_versions) - 1 && !informers->kueue_said) {
        log_warning("cannot watch %s: %s; is Kueue installed? Jobs with a queue wait",
                    informer->what, err->msg);
        informers->kueue_said = true;
    }
    if (informers->kueue_said)
        informers->kueue_ms = now_ms;
    for (enum cache_kind kind = CACHE_WORKLOADS; kind < CACHE_PRIORITIES; kind++)
        watcher_close(take(informers->of[kind].watcher));
    informers->kueue = (informers->kueue + 1) % array_length(kueue_versions);
    open_kueue(informers);
}

void informers_settle_versions(struct informers *informers, int64_t now_ms)
{
    settle_autoscaling(informers);
    settle_kueue(informers, now_ms);
}

const char *informers_autoscaling(const struct informers *informers)
{
    return informer_is_synced(&informers->of[CACHE_AUTOSCALERS])
               ? autoscaling_versions[informers->autoscaling]
               : NULL;
}

const char *informers_kueue(const struct informers *informers)
{
    return informer_is_synced(&informers->of[CACHE_WORKLOADS]) ? kueue_versions[informers->kueue]
                                                               : NULL;
}
