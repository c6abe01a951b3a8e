/* What comes of a small world (world.h): gradients and weights, put together from the slices of all
 * ranks. It knows the engine that has the slices, and not how a rank trains. */
#ifndef SHOAL_TESTS_AGENT_WORLD_RESULT_H
#define SHOAL_TESTS_AGENT_WORLD_RESULT_H

#include "tests/agent/world.h"

/* Empty, with room for the parameters of the world's model; of the caller until
 * world_result_free(). */
void world_result_open(const struct world *world, struct world_result *result);

/* This rank's part of gradients or weights, at offsets[] of its parameters. What its slices have
 * beside these is padding, and an error unless it is 0. */
int world_collect(struct shard *shard, bool gradients, const int64_t *offsets, float *into,
                  struct error *err);
/* The weights of a module and all below it, by the engine's way out, of which all ranks are part.
 * into: NULL where they are not kept. */
int world_gather(struct shard *shard, const struct module *m, const int64_t *offsets, float *into,
                 struct error *err);
#endif
