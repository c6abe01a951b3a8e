/* How long a step of a run takes on a kind of GPU, what that costs, and which settings would make
 * it faster: a configuration put into time_step.h's model. A prediction: nothing is measured.
 * Touches no data, device or network. */
#ifndef SHOAL_AGENT_PLAN_TIME_PLAN_H
#define SHOAL_AGENT_PLAN_TIME_PLAN_H

#include "agent/config/config.h"
#include "agent/models/model.h"
#include "agent/plan/run_plan_facts.h"
#include "agent/plan/time_step.h"

struct time_question {
    const struct time_device *device;
    double network;        /* bytes/s per GPU between nodes; 0: the device's */
    double price_per_hour; /* of a GPU, in any currency; 0: not known */
};

/* What comes of a setting. Where the plan does not fit, any that does is advised. */
enum time_verdict {
    TIME_ADVISED, /* it fits, and is faster */
    TIME_NO_FASTER,
    TIME_TOO_LARGE,
    TIME_NOT_HERE, /* it cannot be had, and was not timed */
};
struct time_advice {
    enum time_verdict verdict;
    const char *setting;  /* "--activation_checkpointing=none" */
    const char *note;     /* what it gives up; NULL: nothing but memory */
    const char *not_here; /* why it cannot be had; NULL: it can */
    double gain;          /* of samples per second: 0.1: a tenth more; -0.1: less */
    double saved_s;       /* for as many samples as a step has now */
    enum time_kind kind;  /* what it makes shorter most */
    double kind_saved_s;  /* of that; 0: nothing */
    int64_t device_bytes;
};
enum { TIME_ADVICE_MAX = 32 };

/* Attention of a step by a value of SHOAL_ATTENTION that is not ignored. */
struct time_by_attention {
    const char *choice;
    enum time_attention_doer doer; /* of forward */
    double forward_s, backward_s;
    bool backward_is_ours; /* that time is, as nobody knows the other's with equal bits */
};

struct time_plan {
    struct time_question question;
    struct time_step steps[TIME_BANDS];
    int world_size;
    double ring_rate;     /* bytes/s per rank of the collectives of a group; 0: there are none */
    bool over_network;    /* that is the network between nodes */
    int64_t device_bytes; /* what the run takes of a GPU's memory */
    bool fits;            /* in it, beside what libraries take */
    double utilization[FLOPS_CONVENTIONS]; /* MFU; 0: not known */
    struct time_by_attention attention[TIME_ATTENTION_DOERS];
    int attention_count;
    struct time_advice advice[TIME_ADVICE_MAX]; /* by verdict, the most gain first */
    int advice_count;
};

/* world, strategy: as in run_plan_savings(). Errors: those of run_plan_facts_make(); bf16 or fp8 on
 * a GPU that has none (ERR_UNSUPPORTED), as training refuses it. */
int time_plan_make(const struct agent_config *config, const struct model *model,
                   const struct run_plan_world *world, enum shard_strategy strategy,
                   const struct time_question *question, struct time_plan *ret_plan,
                   struct error *err);

/* As a table for people. */
void time_plan_print(const struct time_plan *plan, struct str *out);
/* In one line. */
void time_plan_print_short(const struct time_plan *plan, struct str *out);
/* As one JSON object. */
void time_plan_json(const struct time_plan *plan, struct str *out);
#endif
