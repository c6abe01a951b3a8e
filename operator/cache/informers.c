#include "operator/cache/informers.h"

#include "base/contract.h"
#include "base/json_lenient.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/decode/decode_pod.h"
#include "operator/job/resources.h"
#include "operator/kube/watcher.h"

#include <assert.h>
#include <stdlib.h>

/* The label that all we make bear: what is not ours costs no memory. */
#define OURS LABEL_OPERATOR_NAME "=" OPERATOR_NAME

enum {
    PAGE = 500, /* objects, as client-go has it; while they are read, pods cost 30 KiB each */
    WATCH_TIMEOUT_S = 290,
    BACKOFF_FIRST_MS = 200,
    BACKOFF_MAX_MS = 30 * 1000,
    KUEUE_PATIENCE_MS = 30 * 1000, /* how long Kueue's objects may fail before we do without */
    FAILURE_LOG_MS = 60 * 1000,    /* how often a watch that goes on failing is logged */
    PATH_MAX_BYTES = 512,
};

/* One kind of object that is watched. */
struct informer {
    struct informers *informers;
    enum cache_kind kind;
    const char *what;        /* for people */
    const char *plural;      /* in paths */
    struct watcher *watcher; /* NULL: it is not watched */
    int64_t logged_ms;       /* when its failing was last logged; 0: it is well */
    int64_t outdated_ms;     /* when it was listed again though its watch lived; 0: never */
};

struct informers {
    struct informers_options options;
    struct kube *kube;
    struct cache *cache;
    struct informer of[CACHE_KINDS];
    size_t autoscaling; /* index into autoscaling_versions */
    size_t kueue;       /* index into kueue_versions */
    int64_t kueue_ms;   /* when the other version was last tried; 0: not yet */
    bool kueue_said;    /* that it is not there */
    int64_t anew_ms;    /* when all was listed again, as it was of the past; 0: never */
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

/* Trouble with the server as a whole: one watch speaks for all. */
static bool is_of_server(const struct error *err)
{
    return err->code == ERR_IO || err->code == ERR_TIMEOUT || err->code == ERR_CONFIG;
}

static bool is_logged_already(const struct informers *informers, const struct error *err)
{
    const struct error *other;
    for (size_t i = 0; i < CACHE_KINDS && is_of_server(err); i++) {
        const struct informer *informer = &informers->of[i];
        if (informer->logged_ms && informer->watcher &&
            watch_failing_since(watcher_machine(informer->watcher), &other) && is_of_server(other))
            return true;
    }
    return false;
}

static bool is_of_kueue(enum cache_kind kind)
{
    return kind >= CACHE_WORKLOADS;
}

static const char *advice(const struct informer *informer, const struct error *err)
{
    if (informer->kind == CACHE_JOBS && err->code == ERR_NOT_FOUND)
        return "; is the CustomResourceDefinition pytorchjobs.kubeflow.org installed? "
               "(kubectl apply -k deploy/crd, or deploy/before-1.23/crd: see docs/install.md)";
    if (informer->kind == CACHE_AUTOSCALERS && err->code == ERR_FORBIDDEN)
        return "; no autoscalers are made meanwhile";
    if (informer->kind == CACHE_NODES && err->code == ERR_FORBIDDEN)
        return "; taints and conditions of nodes move no pods meanwhile (kubectl apply -f "
               "deploy/watch-nodes/role.yaml gives the right)";
    if (is_of_kueue(informer->kind) && err->code == ERR_FORBIDDEN)
        return "; jobs with a queue wait (kubectl apply -f deploy/kueue/role.yaml gives the right)";
    return "";
}

/* A right that is missing on purpose is said once. */
static bool is_said_enough(const struct informer *informer, const struct error *err, int64_t now_ms)
{
    bool optional = informer->kind == CACHE_NODES || is_of_kueue(informer->kind);
    return (optional && err->code == ERR_FORBIDDEN) ||
           now_ms - informer->logged_ms < FAILURE_LOG_MS;
}

/* Says that a watch fails, once and then from time to time, and that it is well again. */
static void log_health(struct informer *informer, int64_t now_ms)
{
    const struct error *err = NULL;
    const struct watch *machine = watcher_machine(informer->watcher);
    if (!watch_failing_since(machine, &err)) {
        if (informer->logged_ms)
            log_info("watching %s again", informer->what);
        informer->logged_ms = 0;
        return;
    }
    if (informer->logged_ms ? is_said_enough(informer, err, now_ms)
                            : is_logged_already(informer->informers, err))
        return;
    if (is_of_kueue(informer->kind) && err->code == ERR_NOT_FOUND) /* settle_kueue says it */
        return;
    informer->logged_ms = now_ms;
    log_warning("cannot watch %s: %s%s", informer->what, err->msg, advice(informer, err));
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

/* ---- the turn ---- */

static bool is_synced(const struct informer *informer)
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
    if (!informer->watcher || is_synced(informer) ||
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
    if (!informer->watcher || is_synced(informer) ||
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

/* What was known is not what is there any more. */
static void forget_nodes_if_refused(struct informers *informers)
{
    const struct informer *informer = &informers->of[CACHE_NODES];
    if (!informer->watcher || !watch_is_refused(watcher_machine(informer->watcher)) ||
        cache_count(informers->cache, CACHE_NODES) == 0)
        return;
    cache_begin_list(informers->cache, CACHE_NODES);
    cache_end_list(informers->cache, CACHE_NODES);
}

int64_t informers_tick(struct informers *informers)
{
    int64_t delay_ms = INT64_MAX, now_ms = informers->options.clocks->steady_ms();
    settle_autoscaling(informers);
    forget_nodes_if_refused(informers);
    settle_kueue(informers, now_ms);
    for (size_t i = 0; i < CACHE_KINDS; i++) {
        struct informer *informer = &informers->of[i];
        if (!informer->watcher)
            continue;
        int64_t due_ms = watcher_tick(informer->watcher);
        delay_ms = due_ms < delay_ms ? due_ms : delay_ms;
        log_health(informer, now_ms);
    }
    return delay_ms;
}

bool informers_relist_if_silent(struct informers *informers, enum cache_kind kind, int64_t since_ms)
{
    struct informer *informer = &informers->of[kind];
    if (!informer->watcher)
        return false;
    if (watcher_relist_if_silent(informer->watcher, since_ms))
        log_warning("the watch of %s is silent though they change: listing them again",
                    informer->what);
    return watch_is_listing(watcher_machine(informer->watcher));
}

bool informers_relist_outdated(struct informers *informers, enum cache_kind kind)
{
    struct informer *informer = &informers->of[kind];
    int64_t now_ms = informers->options.clocks->steady_ms();
    if (!informer->watcher)
        return false;
    bool is_due = !informer->outdated_ms || now_ms - informer->outdated_ms >= ANEW_EVERY_MS;
    if (is_due && watcher_relist(informer->watcher)) {
        log_warning("the watch of %s has not told of a change: listing them again", informer->what);
        informer->outdated_ms = now_ms;
    }
    return watch_is_listing(watcher_machine(informer->watcher));
}

void informers_list_anew(struct informers *informers)
{
    int64_t now_ms = informers->options.clocks->steady_ms();
    if (informers->anew_ms && now_ms - informers->anew_ms < ANEW_EVERY_MS)
        return;
    log_info("what was listed is of the past: listing it again");
    informers->anew_ms = now_ms;
    for (size_t i = 0; i < CACHE_KINDS; i++)
        if (informers->of[i].watcher)
            watcher_relist(informers->of[i].watcher);
}

bool informers_list_still(const struct informers *informers)
{
    int64_t now_ms = informers->options.clocks->steady_ms();
    if (!informers->anew_ms || now_ms - informers->anew_ms >= ANEW_MAX_MS)
        return false;
    const struct error *ignored;
    for (size_t i = 0; i < CACHE_KINDS; i++) {
        const struct watcher *watcher = informers->of[i].watcher;
        if (watcher && watch_is_listing(watcher_machine(watcher)) &&
            !watch_failing_since(watcher_machine(watcher), &ignored))
            return true;
    }
    return false;
}

bool informers_are_behind(const struct informers *informers, enum cache_kind kind,
                          const struct json *object)
{
    const struct watcher *watcher = informers->of[kind].watcher;
    return watcher && watch_is_behind(watcher_machine(watcher), object);
}

bool informers_are_away(const struct informers *informers, enum cache_kind kind)
{
    const struct error *ignored;
    const struct watcher *watcher = informers->of[kind].watcher;
    return watcher && (watch_is_listing(watcher_machine(watcher)) ||
                       watch_failing_since(watcher_machine(watcher), &ignored));
}

/* Not there, refused, or failing for a while (Kueue's conversion webhook is down): jobs without a
 * queue do not wait for Kueue. */
static bool is_without_kueue(const struct informers *informers, enum error_code code,
                             int64_t since_ms)
{
    return informers->kueue_said || code == ERR_FORBIDDEN || code == ERR_NOT_FOUND ||
           (since_ms && informers->options.clocks->steady_ms() - since_ms >= KUEUE_PATIENCE_MS);
}

/* Jobs go on without autoscalers while we may not look at them, and without nodes in any case. */
static bool is_dispensable(const struct informer *informer)
{
    const struct error *err = NULL;
    int64_t since_ms = watch_failing_since(watcher_machine(informer->watcher), &err);
    enum error_code code = since_ms ? err->code : ERR_NONE;
    if (is_of_kueue(informer->kind))
        return is_without_kueue(informer->informers, code, since_ms);
    return since_ms && (informer->kind == CACHE_NODES ||
                        (informer->kind == CACHE_AUTOSCALERS && code == ERR_FORBIDDEN));
}

bool informers_have_synced(const struct informers *informers)
{
    for (size_t i = 0; i < CACHE_KINDS; i++) {
        const struct informer *informer = &informers->of[i];
        if (informer->watcher && !is_synced(informer) && !is_dispensable(informer))
            return false;
    }
    return true;
}

const char *informers_watched(const struct informers *informers, enum cache_kind kind,
                              bool *ret_failing)
{
    const struct informer *informer = &informers->of[kind];
    const struct error *err;
    if (!informer->watcher)
        return NULL;
    *ret_failing = watch_failing_since(watcher_machine(informer->watcher), &err) != 0;
    return informer->plural;
}

const char *informers_forbidden(const struct informers *informers)
{
    static const enum cache_kind children[] = {CACHE_PODS, CACHE_SERVICES, CACHE_POD_GROUPS};
    if (!is_synced(&informers->of[CACHE_JOBS]))
        return NULL;
    for (size_t i = 0; i < array_length(children); i++) {
        const struct informer *informer = &informers->of[children[i]];
        const struct error *err = NULL;
        if (informer->watcher && watch_is_refused(watcher_machine(informer->watcher)) &&
            watch_failing_since(watcher_machine(informer->watcher), &err))
            return err->msg;
    }
    return NULL;
}

const char *informers_autoscaling(const struct informers *informers)
{
    return is_synced(&informers->of[CACHE_AUTOSCALERS])
               ? autoscaling_versions[informers->autoscaling]
               : NULL;
}

const char *informers_kueue(const struct informers *informers)
{
    return is_synced(&informers->of[CACHE_WORKLOADS]) ? kueue_versions[informers->kueue] : NULL;
}
