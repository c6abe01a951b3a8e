/* Private to the trainer, trainer*.c: its state, and what each of its files does. */
#ifndef SHOAL_AGENT_TRAINER_TRAINER_INTERNAL_H
#define SHOAL_AGENT_TRAINER_TRAINER_INTERNAL_H

#include "agent/checkpoint/checkpoint.h"
#include "agent/config/profile_plan.h"
#include "agent/plan/trainer_settings.h"
#include "agent/shard/optim.h"
#include "agent/shard/schedule.h"
#include "agent/shard/shard.h"
#include "agent/telemetry/profiler.h"
#include "agent/trainer/checkpointer.h"
#include "agent/trainer/data_cursor.h"
#include "agent/trainer/host_state.h"
#include "agent/trainer/memory_saver.h"
#include "agent/trainer/phases.h"
#include "agent/trainer/step_totals.h"
#include "agent/trainer/trainer.h"
#include "base/mem.h"

#include <limits.h>

/* What compute is handed as graphs (runtime.cuda_graphs): a training pass with its backward, an
 * evaluation pass, the optimizer's step. */
enum { GRAPH_TRAINING, GRAPH_EVALUATION, GRAPH_UPDATE, TRAINER_GRAPHS };

struct trainer {
    const struct agent_config *config;
    struct rank_env env;
    const struct trainer_listener *listener;

    struct arena *arena; /* the model and texts */
    struct device *device;
    struct device *shard_device; /* of slices and optimizer state: the device itself, or the host */
    struct device *host;         /* where activations go meanwhile; NULL: they stay */
    struct comm *world;          /* between devices; env.world itself if that moves their memory */
    struct stream *compute;
    struct graph *graphs[TRAINER_GRAPHS]; /* NULL: without */
    struct model *model;
    enum shard_strategy strategy;
    int group_size;     /* HYBRID: ranks that share one copy */
    struct slots slots; /* as many as ranks, if none were asked for or saved */
    bool fixed_slots;   /* they were */
    struct shard *shard;
    struct optim *optim;
    struct tape *tape;
    struct schedule schedule;
    struct decay_rule *decay_rule;
    struct phases *phases;
    enum run_phase phase_before_wait;
    struct profiler *profiler; /* NULL: this rank is not traced */
    enum profile_part profile_part;
    bool profile_is_last; /* the step is a window's last */

    struct tokenizer *tokenizer; /* NULL: none is needed */
    struct data_cursor cursor;
    bool save_is_due; /* as soon as the position stands behind the epoch that ended */

    struct step_totals totals;
    struct batch batch; /* the last that was queued */

    double lr;                              /* of the last step */
    int64_t nonfinite_steps, skipped_steps; /* of this process */
    int64_t logged_memory;                  /* bytes; see trainer_log_memory() */
    int64_t logged_products;                /* see trainer_log_tuning() */

    struct checkpointer checkpointer;
    struct memory_saver memory_saver;
    int64_t evaluated_step; /* the step behind which it was evaluated last; -1: never */
};

static inline bool trainer_is_language(const struct trainer *t)
{
    return t->model->language.V > 0;
}

static inline void trainer_event(const struct trainer *t, enum run_event event, const char *path)
{
    t->listener->event(t->listener->ctx, event, path, t->cursor.position.epoch);
}

/* trainer_export.c: the config.json of the language model, for its checkpoints. From `arena`. */
int trainer_model_config(const struct trainer *t, struct arena *arena, const char **ret_text,
                         struct error *err);

/* trainer_schedule.c */
/* Takes the schedule of the run that saved, if the configuration says so, else reports how this
 * run's differs. */
void trainer_schedule_resume(struct trainer *t, const struct checkpoint_state *state);

/* trainer_device.c: opens the device, the communicator between those of all ranks, where the slices
 * are and the stream that computes: all ranks have one, or all fail. Collective. */
int trainer_open_device(struct trainer *t, struct error *err);

/* trainer_graphs.c: opens those that the configuration asks for. Reports what the device cannot do;
 * then, and where the optimizer runs on the host, it is done without. Errors: ERR_CONFIG on the
 * CPU. */
int trainer_open_graphs(struct trainer *t, struct error *err);
void trainer_close_graphs(struct trainer *t); /* before the stream; they need not be open */

/* trainer_order.c: whether ops may add up in any order, so that another run from here may have
 * other bits: a language model on a GPU with runtime.deterministic=false. */
bool trainer_may_differ(const struct trainer *t);
/* Reports what that setting gives up, or that it changes nothing. */
void trainer_tell_order(struct trainer *t);

/* trainer_tune.c: products are timed where the configuration says so (runtime.tune). */
void trainer_begin_tuning(struct trainer *t);
/* Logs what came of it; again when there are twice as many products. */
void trainer_log_tuning(struct trainer *t);

/* trainer_memory.c: reserves the GPU's memory as the run's plan says, as far as it is free and
 * nobody needs it later; refuses a run whose known bytes cannot fit, on all ranks. Collective. */
int trainer_reserve_memory(struct trainer *t, struct error *err);
/* Logs what was needed beyond that; again when it has doubled. */
void trainer_log_memory(struct trainer *t);
/* Adds to an ERR_MEMORY what is free and what can be done. */
void trainer_explain_memory(const struct trainer *t, struct error *err);
/* Opens the memory that outlives this rank, with room for what training will take beside it.
 * Collective. */
int trainer_open_memory_saver(struct trainer *t, struct error *err);
/* This rank's part of what its GPU has free: all ranks that have the GPU read it before any
 * reserves, and each takes the same part of the least that one of them read. */
struct memory_share {
    int64_t bytes, total_bytes; /* total: of the GPU */
    int ranks;                  /* that have this GPU; 1: it is this one's alone */
};
/* needed: bytes; hints: what saves some. Errors: ERR_MEMORY. */
int trainer_memory_fits(const char *strategy, int64_t needed, const struct memory_share *share,
                        const char *hints, struct error *err);

/* trainer_model.c: the model, the strategy and the size of its groups: alike on all ranks, or an
 * error on all. Collective. */
int trainer_open_model(struct trainer *t, struct error *err);

/* trainer_slots.c */
/* How many slots there are: as configured, else an elastic run's, else as the checkpoint says from
 * which the run will probably go on. Collective. Errors: ERR_CONFIG if there are more ranks, or CPU
 * offload. */
int trainer_open_slots(struct trainer *t, struct error *err);
/* Whether what the run goes on from has these slots, if nobody has asked for a number: saved, 0 if
 * it has none. path: of it. Errors: ERR_CONFIG. */
int trainer_check_slots(const struct trainer *t, const char *path, int64_t saved,
                        struct error *err);
/* Opens what this rank's slots have of the split. env: its rank and size are not read. */
int trainer_open_shares(struct trainer *t, enum data_split split, struct batch_source_env env,
                        struct batch_source **ret_source, struct error *err);

/* trainer_step.c: forward and backward of the fetched micro-batches, and the optimizer. Fetches
 * the next step's meanwhile. Collective. */
int trainer_step(struct trainer *t, const struct step_batches *fetched, struct error *err);

/* trainer_profile.c: traces of the steps that the configuration names, where `profiler` looks. */
/* Collective. After all devices are open and the position is known. Errors: no such rank, no place
 * to write to. */
int trainer_open_profiler(struct trainer *t, struct error *err);
void trainer_close_profiler(struct trainer *t); /* writes what the end of the run cut off */
void trainer_profile_begin_step(struct trainer *t);
void trainer_profile_end_step(struct trainer *t, bool was_one); /* false: there was no data */

/* trainer_shared_dir.c: ERR_CONFIG naming the host whose checkpoint.dir is not that of rank 0, of
 * ranks that write into it. Collective. */
int trainer_check_shared_dir(struct trainer *t, struct error *err);

/* trainer_eval.c: reports the score of the evaluation data to the listener; the epoch's sums stay
 * as they are. *ret_stop: a rank was asked to stop, so that there is no score. Collective. */
int trainer_evaluate(struct trainer *t, bool *ret_stop, struct error *err);

/* trainer_resume.c. Collective. */
/* Loads what the configuration asks for, if anything; else leaves the initial values. */
int trainer_resume(struct trainer *t, struct error *err);
/* Whether the directory is a checkpoint itself, and not one of several. Not collective. */
bool trainer_is_checkpoint(const char *path);

/* trainer_compare.c, of what it goes on from. */
/* Reports what makes the rest another run than the one that saved. The number of ranks may change,
 * but the samples of a step with it. */
void trainer_compare_saved(struct trainer *t, const struct checkpoint_state *saved);
/* Errors: ERR_CONFIG naming what no run can go on with: other weights, or another optimizer's
 * state. */
int trainer_check_saved(struct trainer *t, const char *path, struct checkpoint *checkpoint,
                        struct error *err);

/* trainer_weights.c: initial values from where the configuration says, if it says
 * so. Collective. */
int trainer_load_weights(struct trainer *t, struct error *err);

/* trainer_export.c: whether checkpoint.save_model can be written there. For one rank. */
int trainer_try_save_model(struct trainer *t, struct error *err);
#endif
