/* Where a run is, beside its tensors: everything else that must be the same when it goes on. Random
 * numbers are counted from (seed, epoch, step), so there is no generator to save. As JSON in
 * state.json; all numbers come back exactly. */
#ifndef SHOAL_AGENT_CHECKPOINT_CHECKPOINT_STATE_H
#define SHOAL_AGENT_CHECKPOINT_CHECKPOINT_STATE_H

#include "base/error.h"
#include "base/mem.h"

#include <stddef.h>
#include <stdint.h>

enum { CHECKPOINT_NAME_BYTES = 32 };

struct checkpoint_state {
    int64_t epoch;           /* whole epochs done */
    int64_t epoch_samples;   /* samples of all ranks done in the epoch after those */
    int64_t step;            /* optimizer steps done in the whole run */
    int64_t micro_batches;   /* done in the whole run; names dropout's random numbers */
    int64_t optimizer_steps; /* as the optimizer counts them (bias correction) */
    double epoch_loss_sum, epoch_correct, epoch_rows; /* of the epoch in progress, all ranks */
    uint64_t seed;
    double learning_rate;    /* of the last step */
    int64_t world_size;      /* of the run that saved; any other can load */
    int64_t reduction_slots; /* 0: none; also an older version's */
    int64_t
        nondeterministic; /* 1: the run that saved gave up equal bits; 0 also an older version's */
    int64_t evaluation_owed; /* 1: it was due, and was left out as the run was to stop */
    int64_t train_rows;      /* of the whole data set, as far as it was used */
    int64_t batch_rows;      /* per rank and micro-batch, of the run that saved */
    char strategy[CHECKPOINT_NAME_BYTES]; /* "FULL_SHARD", of the run that saved */
    /* The learning-rate schedule of the run that saved, as in struct schedule. */
    char schedule_type[CHECKPOINT_NAME_BYTES]; /* "cosine" */
    double peak_lr, min_lr, warmup_ratio;
    int64_t warmup_steps, decay_steps;
    const char *optimizer; /* "adamw", of the run that saved; "": an older version's */
    const char *run;       /* the id of the run that saved; "": not known */
    const char *data; /* where the data source is beside epoch and samples; "" if those say it */
};

/* The JSON text; the caller frees. */
char *checkpoint_state_print(const struct checkpoint_state *state);

/* Texts from `arena`. Errors: ERR_INPUT naming the file and the field that is missing or of the
 * wrong type. */
int checkpoint_state_parse(struct arena *arena, const char *name, const char *text, size_t bytes,
                           struct checkpoint_state *ret_state, struct error *err);
#endif
