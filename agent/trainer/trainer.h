/* One rank's training run, put together from its parts, and its loop: data -> forward and backward
 * -> optimizer -> evaluation -> checkpoint. Knows no files but through checkpoint, no network but
 * through comm, no clock and no terminal: what happens is reported to a listener, what time it is
 * and whether to stop is asked of it. */
#ifndef SHOAL_AGENT_TRAINER_TRAINER_H
#define SHOAL_AGENT_TRAINER_TRAINER_H

#include "agent/comm/comm.h"
#include "agent/config/config.h"
#include "agent/health/activity.h"
#include "agent/models/model.h"
#include "agent/telemetry/log_lines.h"
#include "agent/telemetry/run_numbers.h"
#include "base/error.h"
#include "base/memory_left.h"
#include "kernels/device.h"

#include <stdbool.h>
#include <stdint.h>

/* What is known before the first step. Texts live as long as the trainer. */
struct trainer_facts {
    const char *model;        /* "llama" */
    const char *strategy;     /* "FULL_SHARD" */
    const char *device;       /* "cpu" */
    const char *device_model; /* of device_model() */
    int64_t parameters;
    int64_t steps;                  /* the whole run will have; 0: not known */
    int64_t T;                      /* tokens of a sample; 0: images */
    const char *files, *format;     /* the training data's, for people; NULL: images */
    bool predicts_tokens;           /* the loss is a mean over tokens: it has a perplexity */
    struct language_shape language; /* of language models */
};

/* Loss and hits over all ranks. */
struct trainer_score {
    int64_t epoch;                     /* 1-based */
    int64_t step;                      /* optimizer steps done in the whole run */
    double loss_sum, correct, samples; /* language models: samples are targets */
    double loss;                       /* mean, as eval.reduction says */
    /* Of an epoch's training, this rank's device: in use before and after, and the most so far. */
    int64_t memory_begin_bytes, memory_end_bytes, memory_peak_bytes;
};

/* A checkpoint. */
struct trainer_save {
    const char *path;
    int64_t step;
    int64_t bytes;     /* of all ranks' tensors; 0: not written yet */
    bool at_epoch_end; /* why it is saved */
    int64_t epoch;     /* whole epochs done */
};

/* All functions are called on the trainer's thread, on every rank, between steps. */
struct trainer_listener {
    void *ctx;
    /* Before all others. Errors end the run. */
    int (*began)(void *ctx, const struct trainer_facts *facts, struct error *err);
    /* What has no function of its own; path: see enum run_event. epoch: whole epochs done. */
    void (*event)(void *ctx, enum run_event event, const char *path, int64_t epoch);
    /* After an optimizer step. Of the numbers, step_s is not set: the trainer knows no clock. */
    void (*step)(void *ctx, const struct run_numbers *numbers);
    void (*epoch)(void *ctx, const struct trainer_score *score); /* of the training batches */
    void (*test_begins)(void *ctx);
    void (*test)(void *ctx, const struct trainer_score *score);
    void (*save_begins)(void *ctx, const struct trainer_save *save);
    void (*save_in_background)(void *ctx); /* beside the training, which has done its part */
    void (*saved)(void *ctx, const struct trainer_save *save);
    void (*save_failed)(void *ctx, int64_t step,
                        const char *why); /* the training goes on without it */
    /* path: of a checkpoint, or TRAINER_MEMORY and whose; lost: steps done before the restart that
     * are to be done again; -1: it is not known. */
    void (*resumed)(void *ctx, const char *path, int64_t step, int64_t lost);
    /* It was to go on from the latest checkpoint of the directory, which has none. */
    void (*began_anew)(void *ctx, const char *dir);
    /* Initial values came from there, NULL: they are drawn; warnings: what people should know of
     * it,
     * "" if nothing. */
    void (*weights)(void *ctx, const char *path, const char *warnings);
    void (*skipped)(void *ctx,
                    const char *why); /* checkpoints that are not complete, in one line */
    void (*differs)(void *ctx, const char *what); /* the checkpoint's run, "it", from this one */
    void (*info)(void *ctx, const char *what);    /* nothing is wrong with it */
    void (*notice)(void *ctx, const char *what);  /* of the data: what is missing or left out */
    bool (*stop_requested)(void *ctx); /* on any rank: all save and stop within a few steps */
};

struct trainer;

/* In the place of a checkpoint's path: memory that outlived the ranks. */
#define TRAINER_MEMORY "memory"

/* What the trainer needs to know of its rank and where that runs. */
struct rank_env {
    struct comm *world;  /* moves host memory; used until trainer_close; not owned */
    struct store *store; /* of all ranks, where NCCL meets; NULL: none */
    void (*stuck)(void); /* see struct watchdog_options, as all three; NULL: none */
    void (*alive)(void *ctx, int64_t wait_ms);
    void *alive_ctx;
    struct activity *activity;            /* where to note what the rank does; NULL: nowhere */
    struct collective_progress *progress; /* likewise, for NCCL's collectives */
    int note_fd;                          /* where to note the step (rank_note.h); 0: nowhere */
    int local_rank;                       /* on this node: which of its GPUs */
    int local_size;                       /* ranks on this node: HYBRID's default group */
    const char *node;                     /* its name; NULL or "": nobody has told */
    int threads;                          /* CPU threads per op */
    int memory_fd;           /* memory that outlives this rank (rank_memory.h); 0: none */
    int64_t (*now_us)(void); /* measures what checkpoints in memory cost; NULL without memory_fd */
    /* What host memory this rank and those beside it can still have; likewise. */
    void (*memory_left)(struct memory_bound ret_bounds[MEMORY_BOUNDS]);
    int min_ranks;            /* so few there may be at the next start; 0: their number stays */
    int slots;                /* reduction slots of an elastic run, where the configuration leaves
                                 them open; 0: none */
    bool restarted;           /* this rank is known to have been started before (auto_resume) */
    const char *run;          /* the run's id, the same after a restart; "" or NULL: not known */
    const char *agent_config; /* the configuration as YAML, for checkpoints; NULL: none */
};

/* Opens device, model, data and optimizer, and resumes if the configuration says so. Collective.
 * config, listener: used until trainer_close. Errors: what is wrong with the data, the checkpoint
 * or the configuration, and failures of peers. */
int trainer_open(const struct agent_config *config, const struct rank_env *env,
                 const struct trainer_listener *listener, struct trainer **ret_trainer,
                 struct error *err);
void trainer_close(struct trainer *trainer); /* NULL-safe */

/* Trains from the current position to the end. Errors: ERR_CANCELLED after a stop was asked for and
 * the state was saved (or saving is off); ERR_PEER, ERR_TIMEOUT when the others are lost;
 * ERR_NO_SPACE and others of saving. */
int trainer_run(struct trainer *trainer, struct error *err);

/* Writes the whole model from rank 0: into one safetensors file, or a language model into a Hugging
 * Face directory, its tokenizer's files too. Collective. */
int trainer_save_model(struct trainer *trainer, const char *path, struct error *err);

const struct module *trainer_module(const struct trainer *trainer);
void trainer_memory_use(const struct trainer *trainer, struct memory_use *ret_use);
#endif
