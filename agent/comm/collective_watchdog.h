/* Watches over collectives that run where no host sees them (on GPUs): each has a deadline, is
 * noted while it runs, and when one does not end, or another rank is lost, all communicators are
 * aborted, so that streams go on to the error. Has threads of its own. Knows no NCCL: a
 * communicator tells how it is asked whether it is well, and how it is aborted. */
#ifndef SHOAL_AGENT_COMM_COLLECTIVE_WATCHDOG_H
#define SHOAL_AGENT_COMM_COLLECTIVE_WATCHDOG_H

#include "agent/comm/store.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WATCHDOG_REPORT_MS = 2000,    /* how long to wait for other ranks' notes after a deadline */
    WATCHDOG_GRACE_MS = 30000,    /* for aborting and for the process to end after that */
    WATCHDOG_HEARTBEAT_MS = 1000, /* between two signs of life */
};

struct watched_comm;

struct watchdog_options {
    int rank;              /* in the world */
    struct store *store;   /* where ranks tell what they wait for, and news of the lost; outlives */
    int64_t timeout_ms;    /* of a collective, from its being queued or the end of the one before */
    int records;           /* how many of the last collectives are kept; >= 1 */
    bool dumps;            /* write them down after a failure: to the log if one does not end, */
    const char *dump_path; /* and always to DUMP_PATH<rank>; "": no file */
    bool logs_each;        /* log every collective as it is queued */
    bool aborts;           /* false: a failure is told, and the streams wait on */
    /* Called once at most, by a thread of the watch: ends what runs in all that are watched, a list
     * by their `next`, which is all of them at once: an abort may wait for what the others run. May
     * not return. */
    void (*abort)(const struct watched_comm *first);
    /* NULL, or called by the watch's thread if the process has not closed the watch grace_ms after
     * a failure: it is to end the process. */
    void (*stuck)(void);
    int64_t grace_ms;
    /* NULL, or called by the watch's thread again and again: it will be called again within wait_ms
     * unless that thread is stuck, too. After a failure it is called once more, with somewhat more
     * than grace_ms; after a good end with 0. */
    void (*heartbeat)(void *ctx, int64_t wait_ms);
    void *heartbeat_ctx;
    int64_t heartbeat_interval_ms; /* the usual wait_ms */
};

/* A communicator that is watched. */
struct watched_comm {
    const char *id; /* the same on its ranks, and of no other communicator */
    int rank, size;
    const int *world_ranks; /* [size] */
    /* -1 if it is broken. Called often, by the watch's thread. */
    int (*check)(void *ctx, struct error *err);
    /* How many of its collectives have ended, which they do in their order. Called often, by
     * another thread of the watch: it may have to wait for the device. */
    uint64_t (*count_ended)(void *ctx);
    void *ctx;
    /* The watch's own: */
    struct watched_comm *next; /* NULL: the last */
    uint64_t queued, ended;    /* collectives so far, as the watch has seen them */
    int64_t since_ms;          /* when the one that runs could begin, as far as it has seen */
};

struct watchdog;

int watchdog_open(const struct watchdog_options *options, struct watchdog **ret_watchdog,
                  struct error *err);
void watchdog_close(struct watchdog *watchdog); /* NULL-safe; nobody is watched any more */

/* From now on it is watched, until watchdog_remove() returns; true if it was aborted. -1 and why if
 * something has failed and is aborted: who comes then is not among those, and is not watched. */
int watchdog_add(struct watchdog *watchdog, struct watched_comm *one, struct error *err);
bool watchdog_remove(struct watchdog *watchdog, struct watched_comm *one);

/* A collective is about to be queued; ops outlive the watch. */
void watchdog_begin(struct watchdog *watchdog, struct watched_comm *one, const char *op,
                    int64_t bytes);

/* Fails everything that runs and comes later. From any thread; only the first failure counts. */
void watchdog_fail(struct watchdog *watchdog, const struct error *err);
/* -1 and why, if something has failed and is aborted: nothing is to be queued any more, and what
 * ended since may not have been done. From any thread. */
int watchdog_check(struct watchdog *watchdog, struct error *err);
bool watchdog_has_failed(struct watchdog *watchdog); /* the same */

#ifdef __cplusplus
}
#endif
#endif
