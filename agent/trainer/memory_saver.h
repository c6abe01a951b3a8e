/* Snapshots of a run in memory that outlives its ranks, and going on from them. A rank's snapshot
 * holds what a checkpoint on disk holds of it. Saves between two steps, every so many of them or as
 * often as costs little (memory_interval.h). Knows no clock: it is handed one. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_SAVER_H
#define SHOAL_AGENT_TRAINER_MEMORY_SAVER_H

#include "agent/health/activity.h"
#include "agent/trainer/checkpointer.h"
#include "agent/trainer/memory_buddies.h"
#include "agent/trainer/memory_interval.h"
#include "base/memory_left.h"

enum { MEMORY_SAVER_OFF = 0, MEMORY_SAVER_AUTO = -1 }; /* checkpoint.memory_every_steps */

/* Not owned, and used until memory_saver_close(). */
struct memory_saver_run {
    const struct checkpointer *checkpointer; /* of the run that is saved; open */
    struct stream *stream;
    struct comm *host;         /* moves host memory between all ranks */
    int fd;                    /* the memory (rank_memory.h); 0: there is none */
    int64_t (*now_us)(void);   /* a clock that never goes back */
    struct activity *activity; /* where to note that one is taken; NULL: nowhere */
    void (*memory_left)(struct memory_bound ret_bounds[MEMORY_BOUNDS]); /* base/memory_left.h */
    int local_size;        /* ranks of this one's launcher */
    int64_t bytes_to_come; /* of host memory that this rank will take beside */
    int64_t every_steps;   /* or MEMORY_SAVER_OFF or _AUTO */
    bool has_buddies;      /* ranks of other pods keep this one's snapshots, too */
};

struct memory_saver {
    struct memory_saver_run of;
    void *memory; /* NULL: nothing is saved */
    int64_t bytes;
    struct memory_buddies buddies;                   /* the snapshots, and those of others */
    struct host_state states[MEMORY_SNAPSHOT_SLOTS]; /* whose buffers lie in the slots */
    struct memory_found found;
    /* MEMORY_SAVER_AUTO */
    int64_t due_step;            /* of the next snapshot, or of the next look; the same on all
                                    ranks */
    bool only_looks;             /* nothing was measured yet */
    int64_t begin_us;            /* of the step, or of the snapshot */
    int64_t late_us, late_steps; /* since the last look */
    struct memory_cost cost;
};

/* Maps the memory, unless the configuration or the launcher says that nothing is saved, on all
 * ranks. A notice says so where it was asked for by number, or memory is short. Collective. Errors:
 * ERR_MEMORY if memory is short and it was asked for by number. */
int memory_saver_open(struct memory_saver *saver, const struct memory_saver_run *run,
                      struct error *err);
void memory_saver_close(struct memory_saver *saver); /* also one that is all zero */

/* What the ranks' memory holds: saver->found. Collective. */
int memory_saver_find(struct memory_saver *saver, struct error *err);
/* Loads what was found: weights and optimizer, *ret_state with texts from `arena`, *ret_sums.
 * Collective. Errors: those of the device and of peers. */
int memory_saver_load(struct memory_saver *saver, struct arena *arena,
                      struct checkpoint_state *ret_state, struct step_sums *ret_sums,
                      struct error *err);
/* The run begins or goes on behind this step: what memory holds of others is forgotten. */
void memory_saver_start(struct memory_saver *saver, int64_t step);

/* Around a step. */
void memory_saver_step_begins(struct memory_saver *saver);
void memory_saver_step_ends(struct memory_saver *saver, int64_t step);
/* Saves, if it is time to. Collective. */
int memory_saver_save(struct memory_saver *saver, int64_t step, struct error *err);
#endif
