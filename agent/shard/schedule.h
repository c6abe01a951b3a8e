/* The learning rate of each step. Pure: a function of the position in the run, so that a resumed
 * run needs no state of it. */
#ifndef SHOAL_AGENT_SHARD_SCHEDULE_H
#define SHOAL_AGENT_SHARD_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* After a warm-up from 0. CONSTANT, and LINEAR to PLATEAU, are AnnealingLR of AWS's FSDP sample
 * (Megatron's early form), those of HF transformers.optimization's. LMTK's fixed is CONSTANT, its
 * warmup_constant, warmup_linear, warmup_cosine and warmup_cosine_restart are
 * HF_CONSTANT_WITH_WARMUP, HF_LINEAR, HF_COSINE and HF_COSINE_WITH_RESTARTS; its cosine is
 * HF_COSINE without a warm-up. Whose spelling is which is config_foreign.c's to say. */
enum schedule_type {
    SCHEDULE_CONSTANT,
    SCHEDULE_STEP_LR, /* torch.optim.lr_scheduler.StepLR */
    SCHEDULE_LINEAR,
    SCHEDULE_COSINE,
    SCHEDULE_EXPONENTIAL,
    SCHEDULE_PLATEAU,     /* lr for plateau_ratio of the decay, then linear to 0 */
    SCHEDULE_HF_CONSTANT, /* without a warm-up */
    SCHEDULE_HF_CONSTANT_WITH_WARMUP,
    SCHEDULE_HF_LINEAR,
    SCHEDULE_HF_COSINE,
    SCHEDULE_HF_COSINE_WITH_RESTARTS,
    SCHEDULE_HF_POLYNOMIAL,
    SCHEDULE_HF_INVERSE_SQRT, /* of steps, after the warm-up or after 10,000 */
    SCHEDULE_COSINE_TO_MIN,   /* as HF_COSINE, always half a wave */
    SCHEDULE_WSD,             /* warm-up, stable, and a cosine over the last cooldown_steps */
};

/* Its name in the configuration: "cosine"; and back: false if it is none. */
const char *schedule_type_name(enum schedule_type type);
bool schedule_type_find(const char *name, enum schedule_type *ret_type);
/* Whether the rate follows the length of the run. */
bool schedule_has_end(enum schedule_type type);

enum schedule_unit { SCHEDULE_PER_EPOCH, SCHEDULE_PER_STEP };

/* Fields that the type does not have are ignored. */
struct schedule {
    enum schedule_type type;
    double lr; /* the highest */
    /* Where it ends. AnnealingLR's: a floor after warm-up. The others: lr is scaled between it and
     * the highest, as transformers' cosine_with_min_lr does. */
    double min_lr;          /* above lr it is lr: a rate never rises after warm-up */
    int64_t decay_steps;    /* where the decay ends, warm-up included: mostly the run's steps */
    int64_t warmup_steps;   /* 0: warmup_ratio of decay_steps */
    double warmup_ratio;    /* not rounded by AnnealingLR's; the others round up */
    double plateau_ratio;   /* PLATEAU: of decay_steps */
    double num_cycles;      /* HF_COSINE: waves; WITH_RESTARTS: how many; 0: half a wave, and one */
    int64_t cooldown_steps; /* WSD */
    double power;           /* HF_POLYNOMIAL */
    double gamma;           /* STEP_LR: the rate is multiplied by it ... */
    int64_t step_size;      /* ... every so many units, >= 1 */
    enum schedule_unit unit;
};

/* Where the run is: epochs and optimizer steps before this one. */
struct schedule_position {
    int64_t epoch, step;
};

/* The rate for the step at `position`, from 0 to the highest: with a warm-up it is 0 in the very
 * first one. A warm-up that is longer than the decay grows to its end all the same. */
double schedule_lr(const struct schedule *schedule, struct schedule_position position);
#endif
