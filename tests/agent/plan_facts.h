/* Two models whose plans are known: Llama-3.2-1B, whose head is its embedding, and Llama-3-8B,
 * whose head is not, with published counts. The units are a layer each; the embedding is in the
 * root, or in one of its own as the head is. */
#ifndef SHOAL_TESTS_AGENT_PLAN_FACTS_H
#define SHOAL_TESTS_AGENT_PLAN_FACTS_H

#include "agent/plan/run_plan.h"

enum {
    PLAN_FACTS_LAYERS_1B = 16,
    PLAN_FACTS_LAYERS_8B = 32,
    PLAN_FACTS_LAYER_1B = 60821504, /* parameters */
    PLAN_FACTS_EMBEDDING_1B = 262668288,
};

/* Of the 1B model, the root first; a test may change them until plan_facts_fill(). */
extern struct plan_unit plan_facts_units_1b[1 + PLAN_FACTS_LAYERS_1B];

/* Setup of a group of tests: the units are as above. Returns 0. */
int plan_facts_fill(void **state);

/* In bf16 with fp32 masters and Adam, one sequence of 8192 tokens per rank. They point to units
 * that all share. */
struct run_plan_facts plan_facts_1b(int world_size);
struct run_plan_facts plan_facts_8b(int world_size);

struct run_plan_strategy plan_facts_strategy(const struct run_plan_facts *f, enum shard_strategy s);
/* Fails the test unless it is as in a table of GB with one decimal; what: named then. */
void plan_facts_assert_gb(int64_t bytes, double gb, const char *what);
#endif
