#include "agent/comm/store.h"

#include <stdio.h>
#include <string.h>

void store_init(struct store *s, const struct store_functions *fn)
{
    memset(s, 0, sizeof *s);
    s->fn = fn;
    pthread_mutex_init(&s->watch_mutex, NULL);
}

void store_destroy(struct store *s)
{
    pthread_mutex_destroy(&s->watch_mutex);
}

void store_watch(struct store *s, struct store_watcher *watcher)
{
    pthread_mutex_lock(&s->watch_mutex);
    watcher->next = s->watchers;
    s->watchers = watcher;
    /* One who comes after the loss hears of it at once: it would wait for it for ever. */
    if (s->lost[0])
        watcher->on_peer_lost(watcher->ctx, s->lost);
    pthread_mutex_unlock(&s->watch_mutex);
}

void store_unwatch(struct store *s, struct store_watcher *watcher)
{
    pthread_mutex_lock(&s->watch_mutex);
    struct store_watcher **at = &s->watchers;
    while (*at != watcher)
        at = &(*at)->next;
    *at = watcher->next;
    pthread_mutex_unlock(&s->watch_mutex);
}

int store_check(struct store *s, struct error *err)
{
    pthread_mutex_lock(&s->watch_mutex);
    int result = s->lost[0] ? error_set(err, ERR_PEER, "%s", s->lost) : 0;
    pthread_mutex_unlock(&s->watch_mutex);
    return result;
}

void store_mark_lost(struct store *s, const char *reason)
{
    pthread_mutex_lock(&s->watch_mutex);
    if (!s->lost[0]) {
        snprintf(s->lost, sizeof s->lost, "%s", reason);
        for (struct store_watcher *w = s->watchers; w; w = w->next)
            w->on_peer_lost(w->ctx, s->lost);
    }
    pthread_mutex_unlock(&s->watch_mutex);
}
