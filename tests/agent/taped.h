/* A tape on the CPU, for tests of layers and models without a shard engine. */
#ifndef SHOAL_TESTS_AGENT_TAPED_H
#define SHOAL_TESTS_AGENT_TAPED_H

#include "agent/nn/tape.h"
#include "base/mem.h"

struct taped {
    struct arena *arena;
    struct device *device;
    struct stream *stream;
    struct tape *tape; /* fp32, without hooks */
};

void taped_open(struct taped *t);
/* Fails the test if memory of the device is in use still. */
void taped_close(struct taped *t);

/* The same for cmocka: *state is a struct taped. */
int taped_setup(void **state);
int taped_teardown(void **state);
#endif
