/* Private to the informers: which there are, between informers_open.c, which opens their watches,
 * and informers.c, which turns them. */
#ifndef SHOAL_OPERATOR_CACHE_INFORMERS_INTERNAL_H
#define SHOAL_OPERATOR_CACHE_INFORMERS_INTERNAL_H

#include "operator/cache/informers.h"
#include "operator/kube/watcher.h"

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
    size_t autoscaling; /* index into autoscaling_versions (informers_open.c) */
    size_t kueue;       /* index into kueue_versions (likewise) */
    int64_t kueue_ms;   /* when the other version was last tried; 0: not yet */
    bool kueue_said;    /* that it is not there */
    int64_t anew_ms;    /* when all was listed again, as it was of the past; 0: never */
};

/* Whether it is watched and its first list is complete. */
bool informer_is_synced(const struct informer *informer);

/* Goes on to another version of what the server does not find in this one. Call it each turn. */
void informers_settle_versions(struct informers *informers, int64_t now_ms);
#endif
