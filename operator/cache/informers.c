#include "operator/cache/informers_internal.h"

#include "base/log.h"
#include "base/mem.h"

enum {
    KUEUE_PATIENCE_MS = 30 * 1000, /* how long Kueue's objects may fail before we do without */
    FAILURE_LOG_MS = 60 * 1000,    /* how often a watch that goes on failing is logged */
};

/* ---- what is logged ---- */

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
        return "; jobs with a queue wait (deploy/kueue has the roles that give the right)";
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
    if (is_of_kueue(informer->kind) && err->code == ERR_NOT_FOUND) /* informers_open.c says it */
        return;
    informer->logged_ms = now_ms;
    log_warning("cannot watch %s: %s%s", informer->what, err->msg, advice(informer, err));
}

/* ---- the turn ---- */

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
    informers_settle_versions(informers, now_ms);
    forget_nodes_if_refused(informers);
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

/* ---- lists that are due again ---- */

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

/* ---- what is asked ---- */

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
        if (informer->watcher && !informer_is_synced(informer) && !is_dispensable(informer))
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
    if (!informer_is_synced(&informers->of[CACHE_JOBS]))
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
