/* When and what a run saves: a snapshot between two steps, in host memory, which the saver writes
 * beside the training or while it waits. Counts what fails. Knows the parts of a run that a
 * checkpoint holds; not the loop. */
#ifndef SHOAL_AGENT_TRAINER_CHECKPOINTER_H
#define SHOAL_AGENT_TRAINER_CHECKPOINTER_H

#include "agent/checkpoint/saver.h"
#include "agent/shard/schedule.h"
#include "agent/telemetry/profiler.h"
#include "agent/trainer/data_cursor.h"
#include "agent/trainer/host_state.h"
#include "agent/trainer/step_totals.h"
#include "agent/trainer/trainer.h"

#include <limits.h>

/* The run whose state is saved. Not owned, and used until checkpointer_close(). */
struct checkpointer_run {
    const struct agent_config *config;
    const struct trainer_listener *listener;
    struct comm *world;
    struct shard *shard;
    struct optim *optim;
    struct step_totals *totals;
    const struct data_cursor *cursor;
    const struct schedule *schedule;
    const double *lr; /* of the last step */
    const char *strategy;
    int reduction_slots;                     /* 0: none */
    bool may_differ;                         /* another run from here may have other bits */
    const char *agent_config, *model_config; /* texts beside the tensors; NULL: none */
    /* Writes the whole weights to `path`, for FULL_STATE_DICT. Collective. */
    int (*save_model)(void *ctx, const char *path, struct error *err);
    void *ctx;
};

struct checkpointer {
    struct checkpointer_run of;
    struct saver *saver;        /* NULL if nothing is saved */
    struct host_state snapshot; /* what it saves */
    struct checkpoint_state state;
    char name[256], path[PATH_MAX];
    struct trainer_save save; /* the snapshot's, as the listener gets it */
    int64_t saved_step; /* the step of the last checkpoint that was begun; -1: none, or it failed */
    int failed_saves;   /* in a row */
    const char *run;    /* the run's id, if it is the same on all ranks; else "". Not owned */
    int dir_lock;       /* of checkpoint.dir, on rank 0; -1: none */
    struct profiler *profiler; /* NULL: this rank is not traced. Not owned */
};

/* Nothing is saved yet, and nothing is locked. */
void checkpointer_init(struct checkpointer *checkpointer);
/* Begins to save for `run`. host: moves host memory, used until
 * checkpointer_close(). Collective. */
int checkpointer_open(struct checkpointer *checkpointer, const struct checkpointer_run *run,
                      struct comm *host, struct error *err);
/* Waits for the save that runs, and unlocks the directory. Also one that is not open. */
void checkpointer_close(struct checkpointer *checkpointer);

/* Begins a checkpoint of the current position, unless one was at this very step; waits for the one
 * before, and for this one too unless it may be written beside the training. A save that fails is
 * reported, and is an error if it was the last chance or the second in a row. Collective. */
enum save_when { SAVE_BESIDE, SAVE_NOW, SAVE_LAST };
int checkpointer_save(struct checkpointer *checkpointer, enum save_when when, struct error *err);
/* Whether a save beside the training has ended on this rank; and, once it has on all, at the same
 * step on all of them: how it ended. */
bool checkpointer_save_has_ended(struct checkpointer *checkpointer);
int checkpointer_end_save(struct checkpointer *checkpointer, struct error *err);

/* Where the run is now; texts from `arena`. sums: of the epoch in progress, what is stored. */
void checkpointer_describe(const struct checkpointer *checkpointer, const double sums[3],
                           struct arena *arena, struct checkpoint_state *ret_state);

/* checkpointer_lock.c, on rank 0: keeps other runs from writing into checkpoint.dir, which exists,
 * until checkpointer_close(). Waits some time for whoever writes there; is_restart: this run has
 * been started before. run: its id; NULL or "": not known. Notices if the file system has no locks,
 * and goes on. Errors: ERR_EXISTS if another run keeps writing there, ERR_TIMEOUT if it is this
 * run's predecessor, ERR_CANCELLED if a stop was asked for meanwhile. */
int checkpointer_lock(struct checkpointer *checkpointer, const struct agent_config *config,
                      const struct trainer_listener *listener, const char *run, bool is_restart,
                      struct error *err);
#endif
