#include "operator/cache/channels.h"

#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/job/resources.h"
#include "operator/kube/watcher.h"

#include <assert.h>
#include <stdlib.h>

/* The label that all we make bear: what is not ours costs no memory. */
#define OURS LABEL_OPERATOR_NAME "=" OPERATOR_NAME

enum {
    PAGE = 250, /* objects; while they are read, pods cost 30 KiB each */
    WATCH_TIMEOUT_S = 290,
    BACKOFF_FIRST_MS = 200,
    BACKOFF_MAX_MS = 30 * 1000,
    TROUBLE_EVERY_MS = 60 * 1000, /* how often a watch that goes on failing is told about */
    PATH_MAX_BYTES = 512,
};

/* One kind of object that is watched. */
struct channel {
    struct channels *channels;
    enum store_kind kind;
    const char *what;        /* for people */
    const char *plural;      /* in paths */
    struct watcher *watcher; /* NULL: it is not watched */
    int64_t told_ms;         /* when its failing was last told about; 0: it is well */
};

struct channels {
    struct channels_options options;
    struct kube *kube;
    struct store *store;
    struct channel of[STORE_KINDS];
    size_t autoscaling; /* index into autoscaling_versions */
};

/* The one without a version stands for "none". */
static const char *const autoscaling_versions[] = {"v2", "v2beta2", NULL};

/* ---- what is heard ---- */

static void on_begin_list(void *context)
{
    const struct channel *channel = context;
    store_begin_list(channel->channels->store, channel->kind);
}

static void on_put(void *context, const struct json_t *object)
{
    const struct channel *channel = context;
    store_put(channel->channels->store, channel->kind, object);
}

static void on_gone(void *context, const struct json_t *object)
{
    const struct channel *channel = context;
    store_gone(channel->channels->store, channel->kind, object);
}

static void on_end_list(void *context)
{
    const struct channel *channel = context;
    store_end_list(channel->channels->store, channel->kind);
}

static void on_trouble(void *context, const char *message)
{
    (void)context;
    log_warning("%s", message);
}

/* Trouble with the server as a whole: one watch speaks for all. */
static bool is_of_server(const struct error *err)
{
    return err->code == ERR_IO || err->code == ERR_TIMEOUT || err->code == ERR_CONFIG;
}

static bool is_told(const struct channels *channels, const struct error *err)
{
    const struct error *other;
    for (size_t i = 0; i < STORE_KINDS && is_of_server(err); i++) {
        const struct channel *channel = &channels->of[i];
        if (channel->told_ms && channel->watcher &&
            watch_failing_since(watcher_machine(channel->watcher), &other) && is_of_server(other))
            return true;
    }
    return false;
}

static const char *advice(const struct channel *channel, const struct error *err)
{
    if (channel->kind == STORE_JOBS && err->code == ERR_NOT_FOUND)
        return "; is the CustomResourceDefinition pytorchjobs.kubeflow.org installed? "
               "(kubectl apply -k deploy/crd, or deploy/before-1.23/crd: see docs/install.md)";
    if (channel->kind == STORE_AUTOSCALERS && err->code == ERR_FORBIDDEN)
        return "; no autoscalers are made meanwhile";
    return "";
}

/* Says that a watch fails, once and then from time to time, and that it is well again. */
static void tell_health(struct channel *channel, int64_t now_ms)
{
    const struct error *err = NULL;
    const struct watch *machine = watcher_machine(channel->watcher);
    if (!watch_failing_since(machine, &err)) {
        if (channel->told_ms)
            log_info("watching %s again", channel->what);
        channel->told_ms = 0;
        return;
    }
    if (channel->told_ms ? now_ms - channel->told_ms < TROUBLE_EVERY_MS
                         : is_told(channel->channels, err))
        return;
    channel->told_ms = now_ms;
    log_warning("cannot watch %s: %s%s", channel->what, err->msg, advice(channel, err));
}

/* ---- life cycle ---- */

struct channel_row {
    enum store_kind kind;
    const char *what;
    const struct resource *resource;
    const char *selector;
};

static void open_channel(struct channels *channels, const struct channel_row *row)
{
    struct channel *channel = &channels->of[row->kind];
    char path[PATH_MAX_BYTES];
    bool fits = kube_path(path, sizeof path, row->resource->group, row->resource->version,
                          row->resource->plural, channels->options.namespace_, NULL, NULL);
    assert(fits);
    *channel = (struct channel){.channels = channels,
                                .kind = row->kind,
                                .what = row->what,
                                .plural = row->resource->plural};
    const struct watch_options options = {
        .path = path,
        .selector = row->selector,
        .page = PAGE,
        .timeout_s = WATCH_TIMEOUT_S,
        .backoff_first_ms = BACKOFF_FIRST_MS,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .seed = channels->options.seed + row->kind,
        .begin_list = on_begin_list,
        .put = on_put,
        .gone = on_gone,
        .end_list = on_end_list,
        .trouble = on_trouble,
        .context = channel,
    };
    channel->watcher = watcher_open(channels->kube, &options, channels->options.clocks);
}

static void open_pod_groups(struct channels *channels)
{
    static const char *const whats[] = {
        [GANG_VOLCANO] = "Volcano's PodGroups", [GANG_PLUGINS] = "scheduler-plugins' PodGroups"};
    enum gang_scheduler gang = channels->options.gang;
    if (gang != GANG_NONE)
        open_channel(channels, &(struct channel_row){STORE_POD_GROUPS, whats[gang],
                                                     resource_pod_group(gang), OURS});
}

static void open_autoscalers(struct channels *channels)
{
    const char *version = autoscaling_versions[channels->autoscaling];
    if (version)
        open_channel(channels, &(struct channel_row){STORE_AUTOSCALERS, "HorizontalPodAutoscalers",
                                                     resource_autoscaler(version), OURS});
}

struct channels *channels_open(struct kube *kube, struct store *store,
                               const struct channels_options *options)
{
    static const struct channel_row rows[] = {
        {STORE_JOBS, "PyTorchJobs", &resource_job, ""},
        {STORE_PODS, "pods", &resource_pod, OURS},
        {STORE_SERVICES, "services", &resource_service, OURS},
    };
    struct channels *channels = xcalloc(1, sizeof *channels);
    channels->options = *options;
    channels->kube = kube;
    channels->store = store;
    for (size_t i = 0; i < array_length(rows); i++)
        open_channel(channels, &rows[i]);
    open_pod_groups(channels);
    open_autoscalers(channels);
    return channels;
}

void channels_close(struct channels *channels)
{
    if (!channels)
        return;
    for (size_t i = 0; i < STORE_KINDS; i++)
        watcher_close(channels->of[i].watcher);
    free(channels);
}

/* ---- the turn ---- */

static bool is_synced(const struct channel *channel)
{
    return channel->watcher && watch_is_synced(watcher_machine(channel->watcher));
}

/* Goes on to an older version if the server does not know this one, and does without if it knows
 * none: jobs run without autoscalers. Not once they were seen: a server that is starting again may
 * not know yet what it knows. */
static void settle_autoscaling(struct channels *channels)
{
    struct channel *channel = &channels->of[STORE_AUTOSCALERS];
    const struct error *err = NULL;
    if (!channel->watcher || is_synced(channel) ||
        !watch_failing_since(watcher_machine(channel->watcher), &err) || err->code != ERR_NOT_FOUND)
        return;
    watcher_close(take(channel->watcher));
    store_begin_list(channels->store, STORE_AUTOSCALERS);
    store_end_list(channels->store, STORE_AUTOSCALERS);
    channels->autoscaling++;
    open_autoscalers(channels);
}

int64_t channels_tick(struct channels *channels)
{
    int64_t delay_ms = INT64_MAX, now_ms = channels->options.clocks->steady_ms();
    settle_autoscaling(channels);
    for (size_t i = 0; i < STORE_KINDS; i++) {
        struct channel *channel = &channels->of[i];
        if (!channel->watcher)
            continue;
        int64_t due_ms = watcher_tick(channel->watcher);
        delay_ms = due_ms < delay_ms ? due_ms : delay_ms;
        tell_health(channel, now_ms);
    }
    return delay_ms;
}

bool channels_suspect(struct channels *channels, enum store_kind kind, int64_t since_ms)
{
    struct channel *channel = &channels->of[kind];
    if (!channel->watcher)
        return false;
    if (watcher_suspect(channel->watcher, since_ms))
        log_warning("the watch of %s is silent though they change: listing them again",
                    channel->what);
    return watch_is_listing(watcher_machine(channel->watcher));
}

/* Jobs go on without autoscalers while we may not look at them. */
static bool is_dispensable(const struct channel *channel)
{
    const struct error *err;
    return channel->kind == STORE_AUTOSCALERS &&
           watch_failing_since(watcher_machine(channel->watcher), &err) &&
           err->code == ERR_FORBIDDEN;
}

bool channels_are_ready(const struct channels *channels)
{
    for (size_t i = 0; i < STORE_KINDS; i++) {
        const struct channel *channel = &channels->of[i];
        if (channel->watcher && !is_synced(channel) && !is_dispensable(channel))
            return false;
    }
    return true;
}

const char *channels_watched(const struct channels *channels, enum store_kind kind,
                             bool *ret_failing)
{
    const struct channel *channel = &channels->of[kind];
    const struct error *err;
    if (!channel->watcher)
        return NULL;
    *ret_failing = watch_failing_since(watcher_machine(channel->watcher), &err) != 0;
    return channel->plural;
}

const char *channels_blind(const struct channels *channels)
{
    static const enum store_kind children[] = {STORE_PODS, STORE_SERVICES, STORE_POD_GROUPS};
    if (!is_synced(&channels->of[STORE_JOBS]))
        return NULL;
    for (size_t i = 0; i < array_length(children); i++) {
        const struct channel *channel = &channels->of[children[i]];
        const struct error *err = NULL;
        if (channel->watcher && watch_is_refused(watcher_machine(channel->watcher)) &&
            watch_failing_since(watcher_machine(channel->watcher), &err))
            return err->msg;
    }
    return NULL;
}

const char *channels_autoscaling(const struct channels *channels)
{
    return is_synced(&channels->of[STORE_AUTOSCALERS]) ? autoscaling_versions[channels->autoscaling]
                                                       : NULL;
}
