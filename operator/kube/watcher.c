#include "operator/kube/watcher.h"

#include <stdlib.h>

#include "base/mem.h"

/* A watch is quiet by nature: bookmarks come about once a minute, and the server ends it after the
 * time it was asked for. So much longer than that with nothing at all: the connection is dead. */
enum { IDLE_SLACK_MS = 30 * 1000 };

struct watcher {
    struct watch *machine;
    struct kube *kube;
    const struct clocks *clocks;
    const char *const *left_out;
    int64_t idle_timeout_ms;
    struct kube_request *request; /* in flight, or NULL */
    struct kube_request *ahead;   /* the next page, while one is being read; or NULL */
};

static void cancel(struct watcher *w)
{
    kube_cancel(w->kube, w->request);
    w->request = NULL;
}

/* ---- what is received ---- */

static struct kube_request *ask_for_page(struct watcher *w, const char *path);

static void on_head(void *context, const struct json *head)
{
    struct watcher *w = context;
    const char *path = watch_feed_head(w->machine, head);
    if (path)
        w->ahead = ask_for_page(w, path);
}

static void on_item(void *context, const struct json *item)
{
    const struct watcher *w = context;
    watch_feed_item(w->machine, item);
}

static void on_list(void *context, const struct json *answer, const struct error *err)
{
    struct watcher *w = context;
    w->request = take(w->ahead);
    if (!watch_feed_list(w->machine, answer, err, kube_asked_ms(w->kube), w->clocks->steady_ms()))
        cancel(w);
}

static void on_end(void *context, const struct error *err)
{
    struct watcher *w = context;
    w->request = NULL;
    watch_feed_end(w->machine, err, kube_asked_ms(w->kube), w->clocks->steady_ms());
}

static void on_line(void *context, const char *line, size_t bytes)
{
    struct watcher *w = context;
    if (!w->request || watch_feed_line(w->machine, line, bytes, w->clocks->steady_ms()))
        return;
    /* The machine has planned its next request already. This stream would deliver events that come
     * after the one it failed at. */
    cancel(w);
}

/* ---- what is sent ---- */

static struct kube_request *ask_for_page(struct watcher *w, const char *path)
{
    const struct kube_call call = {.method = "GET",
                                   .path = path,
                                   .once = true,
                                   .head = on_head,
                                   .item = on_item,
                                   .left_out = w->left_out,
                                   .done = on_list,
                                   .context = w};
    return kube_send(w->kube, &call, w->clocks->wall_ms());
}

static struct kube_request *open_stream(struct watcher *w, const char *path)
{
    const struct kube_stream stream = {.path = path,
                                       .idle_timeout_ms = w->idle_timeout_ms,
                                       .line = on_line,
                                       .done = on_end,
                                       .context = w};
    return kube_watch(w->kube, &stream, w->clocks->wall_ms());
}

struct watcher *watcher_open(struct kube *kube, const struct watch_options *options,
                             const struct clocks *clocks)
{
    struct watcher *w = xcalloc(1, sizeof *w);
    w->machine = watch_open(options);
    w->kube = kube;
    w->left_out = options->left_out;
    w->clocks = clocks;
    w->idle_timeout_ms = options->timeout_s * 1000 + IDLE_SLACK_MS;
    return w;
}

void watcher_close(struct watcher *w)
{
    if (!w)
        return;
    cancel(w);
    watch_close(w->machine);
    free(w);
}

int64_t watcher_tick(struct watcher *w)
{
    const char *path;
    int64_t steady_ms = w->clocks->steady_ms();
    switch (watch_next(w->machine, steady_ms, &path)) {
    case WATCH_ACTION_NOTHING:
        break;
    case WATCH_ACTION_LIST:
        w->request = ask_for_page(w, path);
        break;
    case WATCH_ACTION_STREAM:
        w->request = open_stream(w, path);
        break;
    }
    return clock_until_ms(watch_due(w->machine), steady_ms);
}

bool watcher_relist_if_silent(struct watcher *w, int64_t since_ms)
{
    if (!watch_relist_if_silent(w->machine, since_ms, w->clocks->steady_ms()))
        return false;
    cancel(w);
    return true;
}

bool watcher_relist(struct watcher *w)
{
    if (!watch_relist(w->machine, w->clocks->steady_ms()))
        return false;
    cancel(w);
    return true;
}

const struct watch *watcher_machine(const struct watcher *w)
{
    return w->machine;
}
