/* A run to write about: for the tests of agent/telemetry. */
#ifndef SHOAL_TESTS_AGENT_RUN_FIXTURE_H
#define SHOAL_TESTS_AGENT_RUN_FIXTURE_H

#include "agent/telemetry/run_state.h"

/* When the run begins: 2025-06-17T16:24:52.123Z. */
#define RUN_FIXTURE_WALL_US INT64_C(1750177492123000)

/* 1.24 B parameters on two H100s; 1000 FLOPs per token by the causal count, 1200 by
 * the full one. */
struct run_facts run_fixture_facts(void);
/* Step `step` of 8 samples and 4096 tokens in 0.5 s, half of it forward. */
struct run_numbers run_fixture_numbers(int64_t step);
/* After three steps, an evaluation and a save, a second apart. */
void run_fixture_state(struct run_state *state);
#endif
