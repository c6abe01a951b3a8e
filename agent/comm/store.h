/* The store that all ranks of a job share, as torch.distributed's: a small table of texts by key,
 * and the report of a lost rank. It is a struct of functions, as the table may be in another
 * process (rendezvous) or, in tests, in this one (tests/agent/comm_local.h). Knows no collectives.
 * A key is written once and lives as long as the store. All functions may be called from any
 * thread. */
#ifndef SHOAL_AGENT_COMM_STORE_H
#define SHOAL_AGENT_COMM_STORE_H

#include "base/error.h"

#include <pthread.h>

#define STORE_KEY_MAX   96        /* bytes, with the terminator */
#define STORE_VALUE_MAX 192       /* bytes, with the terminator */
#define STORE_KEYS_MAX  (1 << 20) /* two for each pair of 1,000 ranks, which all_to_all connects */
#define STORE_HOST_MAX  64        /* bytes of a numeric address, with the terminator */

/* A callback for lost ranks. Owned by the caller; in one list at a time. */
struct store_watcher {
    /* Called once, by any thread, when the first rank is lost. Must not call store_watch() or
     * store_unwatch(). */
    void (*on_peer_lost)(void *ctx, const char *reason);
    void *ctx;
    struct store_watcher *next; /* the store's */
};

struct store;

struct store_functions {
    /* Errors: ERR_PEER if the store is gone; ERR_INPUT if it is full. */
    int (*set)(struct store *s, const char *key, const char *value, struct error *err);
    /* Waits until a rank has set the key. ret_value has STORE_VALUE_MAX bytes. Errors: ERR_TIMEOUT;
     * ERR_PEER. */
    int (*get)(struct store *s, const char *key, int timeout_ms, char *ret_value,
               struct error *err);
};

/* The common head of every store. */
struct store {
    const struct store_functions *fn;
    char self_host[STORE_HOST_MAX];   /* the address where others reach this process; empty: it
                                         runs on the store's machine */
    char master_host[STORE_HOST_MAX]; /* the address of the store's machine */
    char listen_host[STORE_HOST_MAX]; /* the address where this process listens for the others;
                                         empty: all addresses */
    pthread_mutex_t watch_mutex;      /* guards the fields below */
    struct store_watcher *watchers;
    char lost[128]; /* which rank was lost, and how; empty: none */
};

void store_init(struct store *s, const struct store_functions *fn); /* for implementations */
void store_destroy(struct store *s);

/* Adds the watcher. If a rank is lost already, calls it at once. */
void store_watch(struct store *s, struct store_watcher *watcher);
/* Removes the watcher: after this returns it is not called any more. */
void store_unwatch(struct store *s, struct store_watcher *watcher);
/* ERR_PEER if a rank is lost. */
int store_check(struct store *s, struct error *err);
/* Calls all watchers. Only the first loss counts: later ones are its consequences. */
void store_mark_lost(struct store *s, const char *reason);
#endif
