/* The health of a run's ranks. Every rank tells rank 0 each second what it does, in the heartbeats
 * of the rendezvous. Rank 0 names the rank that hangs and those that are slow: in the log, once
 * each, and to whoever shows the run's state. The rank that hangs is asked for its stacks, and
 * ended if that is wanted. */
#ifndef SHOAL_AGENT_HEALTH_RANK_HEALTH_H
#define SHOAL_AGENT_HEALTH_RANK_HEALTH_H

#include "agent/comm/collective_progress.h"
#include "agent/comm/rendezvous_health.h"
#include "agent/health/activity.h"
#include "agent/health/hang_action.h"

struct rank_health_setting {
    int rank, ranks;
    int node;                     /* the pod's number */
    const char *host, *pod;       /* "": not known; outlive it */
    enum hang_action hang_action; /* rank 0's counts. HANG_RESTART: somebody starts ranks again */
    int64_t hang_patience_ms;     /* from a hang's name to the kill; 0: as its phase has it */
    /* Where NCCL's RAS is asked about a rank that hangs, as HOST:PORT; NULL: nowhere. And whether
     * this process uses NCCL, by the time. */
    const char *ras_address;
    bool (*uses_nccl)(void);
    int64_t beat_ms;
    int64_t (*steady_ms)(void);
    int64_t (*wall_ms)(void);
    /* Where rank 0 leaves word of the last hang for the rank 0 that follows it in this pod, and
     * finds that of the one before (rank_note.h); 0: nowhere. */
    int note_fd;
};

/* What rank 0 knows of all ranks. */
struct rank_health_view {
    const char *ranks_json;   /* an array, an object for each rank that was heard */
    int hung, straggling;     /* so many ranks */
    int hung_rank, hung_node; /* who hangs, and its pod's number; -1: nobody */
    const char *last_hang;    /* TRAINING_LAST_HANG's object (contract.h); "": none so far */
};

struct rank_health;

struct rank_health *rank_health_open(const struct rank_health_setting *setting);
void rank_health_close(struct rank_health *health); /* NULL-safe; the rendezvous is closed */

/* For the training loop and for what carries out collectives, to write. */
struct activity *rank_health_activity(struct rank_health *health);
struct collective_progress *rank_health_progress(struct rank_health *health);

/* For rendezvous_open(). */
struct rendezvous_health rank_health_rendezvous(struct rank_health *health);

/* For all ranks before a point that all of them pass, and behind it: word of a hang that only a
 * launcher saw (stopped_hang.h), which rank 0 then names, too. */
void rank_health_tell_stopped(struct rank_health *health, struct store *store);
void rank_health_hear_stopped(struct rank_health *health, struct store *store);

/* What this rank does just now, in words: rank_report_describe(). From any thread. */
void rank_health_describe(struct rank_health *health, char *text, int bytes);

/* Rank 0's: `show` is called once a beat from now on, by a thread of the rendezvous; NULL: no more
 * once this returns. */
void rank_health_show_to(struct rank_health *health,
                         void (*show)(void *ctx, const struct rank_health_view *view), void *ctx);
#endif
