/* What a run reports of itself: the facts that never change, the numbers after an optimizer step,
 * the result of an evaluation and of a save. Plain structs, filled by the training loop; telemetry
 * reads them. Knows no tape, unit or model. */
#ifndef SHOAL_AGENT_TELEMETRY_RUN_NUMBERS_H
#define SHOAL_AGENT_TELEMETRY_RUN_NUMBERS_H

#include "agent/comm/comm.h"
#include "kernels/device.h"

#include <stdbool.h>
#include <stdint.h>

/* Where a run's time goes: the first of these within a step, the others between steps. */
enum run_phase {
    PHASE_DATA, /* waiting for the next batch */
    PHASE_FORWARD,
    PHASE_BACKWARD,
    PHASE_COMMUNICATION, /* exposed only: the compute stream waited for a collective */
    PHASE_OPTIMIZER,     /* exposed only: the norm, updates, and waits for those beside a pass */
    RUN_STEP_PHASES,
    PHASE_CHECKPOINT = RUN_STEP_PHASES, /* a save held up the loop */
    PHASE_EVAL,
    RUN_PHASES,
};
const char *run_phase_name(enum run_phase phase); /* "data", "forward", ... */

/* The two ways to count what a model computes per token, forward and backward. PaLM and torchtitan
 * count attention's scores in full; a causal model needs only half of them. */
enum run_convention { FLOPS_CAUSAL, FLOPS_FULL, FLOPS_CONVENTIONS };
const char *run_convention_name(enum run_convention convention); /* "causal", "full" */

/* Texts outlive the telemetry; "" if there is nothing to say. */
struct run_facts {
    const char *model;     /* "llama3.2-1b" */
    const char *strategy;  /* "FULL_SHARD" */
    const char *precision; /* "bf16" */
    const char *preset;
    const char *device;   /* "cpu", "NVIDIA H100 80GB HBM3" */
    bool predicts_tokens; /* the loss is a mean over tokens, so it has a perplexity */
    const char *job, *run, *node, *pod_namespace;
    const char *run_id; /* only its digest is told (TRAINING_RUN); NULL or "": not known */
    int rank, local_rank, world_size;
    int restarts; /* how often this rank was started before */
    int64_t parameters;
    int64_t steps, epochs;                     /* the whole run will have; 0: not known */
    double flops_per_token[FLOPS_CONVENTIONS]; /* 0: not known */
    double peak_flops_per_s;                   /* dense, of one rank's device; 0: not known */
};

/* After an optimizer step. A double that is not known, or not measured, is NaN. */
struct run_numbers {
    int64_t step;            /* optimizer steps done in the whole run */
    int64_t steps, epochs;   /* the whole run will have; 0: not known */
    double epoch;            /* passes over the data done, with the fraction of this one */
    int64_t epochs_done;     /* whole ones before this step */
    int64_t micro_batch;     /* of this step the first, counted from 0 in its epoch */
    int64_t micro_batches;   /* of this step */
    double loss;             /* mean per token of all ranks, or per sample of this rank's */
    bool is_empty;           /* no rank had a target: the loss is NaN, and nothing is wrong */
    double grad_norm;        /* before clipping */
    double lr;               /* used in this step */
    double next_lr;          /* what the schedule gives now that the step is done */
    int64_t samples, tokens; /* of all ranks in this step; tokens 0: not a language model */
    double step_s;           /* wall time of the step; evaluation and saving are not in it */
    double phase_s[RUN_STEP_PHASES]; /* as the device saw them */
    struct memory_use memory;        /* of this rank's device */
    int64_t nonfinite_steps;         /* so far: loss or gradient was no number */
    int64_t skipped_steps;           /* so far: no update for that reason */
    struct comm_stats traffic;       /* so far, of this rank */
};

struct run_eval {
    int64_t step;
    double loss;       /* mean per token or sample; NaN: there was no batch */
    double perplexity; /* exp(loss); NaN: the loss is not of tokens */
    double accuracy;   /* 0..1; NaN: not counted */
    double seconds;
};

/* A save that ended. */
struct run_save {
    int64_t step;
    const char *path;
    double seconds; /* from the request until it was durable */
    double stall_s; /* of these, how long the loop waited: less, if a thread wrote it */
    int64_t bytes;  /* of all ranks; 0: not known */
    bool failed;
    bool at_epoch_end;
    int64_t epoch; /* whole epochs done */
};
#endif
