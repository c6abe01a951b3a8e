/* What a run plan is added up from. run_plan_units.c measures the units; run_plan_activations.c
 * counts what a rank's passes keep and need beside, which is the same for every strategy;
 * run_plan.c adds up what each strategy takes. Private to these. Pure. */
#ifndef SHOAL_AGENT_PLAN_RUN_PLAN_INTERNAL_H
#define SHOAL_AGENT_PLAN_RUN_PLAN_INTERNAL_H

#include "agent/plan/run_plan.h"

static inline int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of units, or of what is gathered of them. */
struct unit_sizes {
    int64_t all;                 /* P */
    int64_t root, other;         /* K, E */
    int64_t block, second_block; /* U, U' */
};

struct unit_plan {
    struct unit_sizes elements; /* as a group of S ranks pads them */
    struct unit_sizes gathered; /* bytes */
    /* Bytes of what is gathered in fp8: */
    int64_t rest;              /* of all units */
    int64_t messages, largest; /* of all units, of one: of all ranks */
    int64_t slice;             /* the largest, in bf16 */
    int blocks, fp8_blocks;
};

struct unit_plan run_plan_measure_units(const struct run_plan_facts *f, int group_size);

/* Bytes per rank, and of them those of slices and of buffers that units keep: the reserve need not
 * hold these. */
struct unit_windows {
    int64_t bytes, of_the_reserve;
};
/* What lies in symmetric windows. reshards: units are resharded after forward. */
struct unit_windows run_plan_windows(const struct run_plan_facts *f, int group_size, bool reshards);

/* Fills in the plan's activations on the device and the host, their gradients, copies in fp8 and
 * logits. */
void run_plan_add_activations(const struct run_plan_facts *f, struct run_plan *plan);

/* Bytes that attention's backward has for itself, at the most. */
int64_t run_plan_attention_scratch(const struct run_plan_facts *f);
#endif
