/* A watchdog over collectives on GPUs, as PyTorch's ProcessGroupNCCL has one. It gives each
 * collective a deadline and records it. When one does not end in time, or a rank is lost, it aborts
 * all communicators, so that their streams run on to the error. It has threads of its own. It knows
 * no NCCL: each communicator brings functions that check and abort it. */
#ifndef SHOAL_AGENT_COMM_COLLECTIVE_WATCHDOG_H
#define SHOAL_AGENT_COMM_COLLECTIVE_WATCHDOG_H

#include "agent/comm/collective_progress.h"
#include "agent/comm/store.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    WATCHDOG_REPORT_MS = 2000, /* after a deadline: how long to wait for the other ranks' reports */
    WATCHDOG_GRACE_MS = 30000, /* for the abort and the end of the process after it */
    WATCHDOG_HEARTBEAT_MS = 1000, /* between two heartbeats */
};

struct watched_comm;

struct watchdog_options {
    int rank;            /* in the world */
    struct store *store; /* for the ranks' desync reports, and for lost ranks; outlives it */
    int64_t timeout_ms;  /* of a collective: since it was queued or the one before ended */
    struct collective_progress *progress; /* where to note collectives that have ended, beside who
                                             notes that they begin; NULL: nowhere; not owned */
    int records; /* of the flight recorder: how many collectives it keeps; >= 1 */
    bool dumps;  /* after a failure, write the records to dump_path; after a timeout also to
                    the log */
    const char *dump_path; /* the file is DUMP_PATH<rank>; "": no file */
    bool logs_each;        /* log every collective when it is queued */
    bool aborts;           /* false: a failure is logged only, and the streams go on waiting */
    /* Aborts all communicators of the list (linked by `next`). It gets all of them in one call
     * because an abort may wait for collectives of the others. Called at most once, by a thread of
     * the watchdog; it may hang. */
    void (*abort)(const struct watched_comm *first);
    /* NULL, or ends the process. The watchdog calls it if it is still open grace_ms after a
     * failure. */
    void (*stuck)(void);
    int64_t grace_ms;
    /* NULL, or sends a heartbeat: the next one comes within wait_ms unless the watchdog itself is
     * stuck. After a failure it is called once more, with a little more than grace_ms; at a normal
     * close with 0. */
    void (*heartbeat)(void *ctx, int64_t wait_ms);
    void *heartbeat_ctx;
    int64_t heartbeat_interval_ms; /* wait_ms while all is well */
};

/* A communicator that is watched. */
struct watched_comm {
    const char *id; /* the same on all its ranks, unique among communicators */
    int rank, size;
    const int *world_ranks; /* [size] */
    /* -1 if the communicator is broken. The watchdog's thread calls it often. */
    int (*check)(void *ctx, struct error *err);
    /* How many of its collectives have ended; they end in order. Another thread of the watchdog
     * calls it often, as the call may block on the device. */
    uint64_t (*count_ended)(void *ctx);
    void *ctx;
    /* Private to the watchdog: */
    struct watched_comm *next; /* NULL: the last */
    uint64_t queued, ended;    /* collectives so far */
    int64_t since_ms;          /* since when the running collective could run */
};

struct watchdog;

int watchdog_open(const struct watchdog_options *options, struct watchdog **ret_watchdog,
                  struct error *err);
void watchdog_close(struct watchdog *watchdog); /* NULL-safe; all communicators are removed */

/* Watches the communicator until watchdog_remove() returns. After a failure watchdog_add() returns
 * -1 with its error: the abort would miss the new communicator. watchdog_remove() waits for a
 * running abort, and returns true if the communicator was aborted. */
int watchdog_add(struct watchdog *watchdog, struct watched_comm *one, struct error *err);
bool watchdog_remove(struct watchdog *watchdog, struct watched_comm *one);

/* Records a collective that the caller queues next. op: a string literal. */
void watchdog_begin(struct watchdog *watchdog, struct watched_comm *one, const char *op,
                    int64_t bytes);

/* Fails all collectives, those that run and later ones. Only the first failure counts. From any
 * thread. */
void watchdog_fail(struct watchdog *watchdog, const struct error *err);
/* -1 with the failure, once the watchdog aborts for it. The caller then queues nothing more and
 * trusts no result since. From any thread. */
int watchdog_check(struct watchdog *watchdog, struct error *err);
bool watchdog_has_failed(struct watchdog *watchdog); /* the same */
#endif
