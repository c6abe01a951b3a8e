/* Snapshots of a run in memory that outlives its ranks, and going on from them. A rank's snapshot
 * holds what a checkpoint on disk holds of it. Saves between two steps, every so many of them or as
 * often as costs little (memory_interval.h). Knows no clock: it is handed one. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_SAVER_H
#define SHOAL_AGENT_TRAINER_MEMORY_SAVER_H

#include "agent/health/activity.h"
#include "agent/trainer/checkpointer.h"
#include "agent/trainer/memory_buddies.h"
#include "agent/trainer/memory_copy.h"
#include "agent/trainer/memory_interval.h"
#include "agent/trainer/memory_recut.h"
#include "base/memory_left.h"

enum { MEMORY_SAVER_OFF = 0, MEMORY_SAVER_AUTO = -1 }; /* checkpoint.memory_every_steps */

/* The fewest ranks that an elastic run may come to, and bytes of host memory that each of them
 * takes then. */
struct memory_fewest {
    int ranks;         /* 0: their number does not change */
    int64_t own, kept; /* of its own snapshots, and with those of others; while they are cut anew */
    int64_t training;  /* beside, and beyond what it has taken now */
    int64_t held;      /* what it has taken now */
};

/* Not owned, and used until memory_saver_close(). */
struct memory_saver_run {
    const struct checkpointer *checkpointer; /* of the run that is saved; open */
    struct stream *stream;
    struct comm *host;         /* moves host memory between all ranks */
    int fd;                    /* the memory (rank_memory.h); 0: there is none */
    int64_t (*now_us)(void);   /* a clock that never goes back */
    struct activity *activity; /* where to note that one is taken; NULL: nowhere */
    void (*memory_left)(struct memory_bound ret_bounds[MEMORY_BOUNDS]); /* base/memory_left.h */
    int local_size;              /* ranks of this one's launcher */
    const char *node;            /* this one's; NULL or "": nobody has told */
    int64_t bytes_to_come;       /* of host memory that this rank will take beside */
    int64_t every_steps;         /* or MEMORY_SAVER_OFF or _AUTO */
    bool has_buddies;            /* ranks of other pods keep this one's snapshots, too */
    struct memory_fewest fewest; /* ranks that there may be at the next start */
};

struct memory_saver {
    struct memory_saver_run of;
    bool is_on;
    bool has_room_beside; /* what it goes on from can stay while the next snapshot is taken */
    void *memory;         /* NULL: nothing is saved, or, of what is to be cut anew, not yet */
    int64_t bytes;
    struct memory_buddies buddies;                   /* the snapshots, and those of others */
    struct host_state states[MEMORY_SNAPSHOT_SLOTS]; /* whose buffers lie in the slots */
    struct memory_copy copy; /* of a device whose memory is not the host's; else closed */
    bool is_under_way;       /* the snapshot of saved_step is, beside the training */
    struct event *completed; /* likewise */
    struct memory_found found;
    struct memory_recut
        recut; /* what was found is of another number of ranks; step -1: it is not */
    int ends;  /* that the run has ended so often in a row after found.last_step; 0: not known */
    /* MEMORY_SAVER_AUTO */
    int64_t due_step;            /* of the next snapshot, or of the next look; the same on all
                                    ranks */
    bool only_looks;             /* nothing was measured yet */
    int64_t saved_step;          /* of the last snapshot that was begun; 0: none */
    int64_t begin_us;            /* of the step, or of the snapshot */
    int64_t late_us, late_steps; /* since the last look */
    int64_t beside_us;  /* that the last one took beside what it held the ranks up at once */
    int64_t sending_us; /* likewise; belongs to the stream while one is under way */
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
 * What was cut anew has no sums of this rank: *ret_sums is not set. Collective. Errors: those of
 * the device and of peers. */
int memory_saver_load(struct memory_saver *saver, struct arena *arena,
                      struct checkpoint_state *ret_state, struct step_sums *ret_sums,
                      struct error *err);
/* The run begins or goes on behind this step: what memory holds of others is forgotten. What was
 * cut anew is saved first: then a rank that dies loses nothing. Collective. */
int memory_saver_start(struct memory_saver *saver, int64_t step, struct error *err);

/* Around a step. */
void memory_saver_step_begins(struct memory_saver *saver, int64_t step);
/* It has no data: the one before was the epoch's last. */
void memory_saver_step_is_none(struct memory_saver *saver, int64_t last_step);
void memory_saver_before_update(struct memory_saver *saver); /* is queued */
void memory_saver_step_ends(struct memory_saver *saver, int64_t step);
/* Begins a snapshot, if it is time to: it is completed beside the next steps, at the latest before
 * the next one. Its failure is that of a later call. Collective. */
int memory_saver_save(struct memory_saver *saver, int64_t step, struct error *err);
/* Waits until what was begun is complete on all ranks. Collective. */
int memory_saver_finish(struct memory_saver *saver, struct error *err);
/* As the ranks stop behind this step: saves it, where buddies keep it or others may take their
 * place, and finishes. Collective. */
int memory_saver_save_last(struct memory_saver *saver, int64_t step, struct error *err);
#endif
