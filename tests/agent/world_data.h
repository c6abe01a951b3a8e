/* The models and samples of a world. */
#ifndef SHOAL_TESTS_AGENT_WORLD_DATA_H
#define SHOAL_TESTS_AGENT_WORLD_DATA_H

#include "tests/agent/world.h"

struct model *world_model(struct arena *arena, const struct world *w);
/* Element i of the MNIST network's parameter. */
float world_weight(const struct param *p, int64_t i);
/* One row: the image and its label, or T tokens and what follows each. */
void world_sample(const struct world *w, int64_t sample, float *input, int32_t *tokens,
                  int32_t *target);
#endif
