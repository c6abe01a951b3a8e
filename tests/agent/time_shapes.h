/* Models of which others have published how fast they train, and the parts of a step of theirs. */
#ifndef SHOAL_TESTS_AGENT_TIME_SHAPES_H
#define SHOAL_TESTS_AGENT_TIME_SHAPES_H

#include "agent/plan/time_step.h"

extern const struct time_shape llama_1b, llama_8b, llama2_7b, qwen_05b, qwen_15b, qwen_3b, qwen_7b,
    gpt2_124m, gpt2_1558m;

/* Units are a layer each, embedding and head in the root. HYBRID: groups of 8; nodes have 8. */
struct time_ranks time_ranks_of(const struct time_shape *shape, enum shard_strategy strategy,
                                int world);
/* A row of the table; there must be one. */
struct time_device time_device_of(const char *name);
double time_tokens_per_s(const struct time_device *device, const struct time_shape *shape,
                         const struct time_ways *ways, const struct time_ranks *ranks);
#endif
