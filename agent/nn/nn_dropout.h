/* Dropout. */
#ifndef SHOAL_AGENT_NN_NN_DROPOUT_H
#define SHOAL_AGENT_NN_NN_DROPOUT_H

#include "agent/nn/module.h"
#include "agent/nn/tape.h"

struct module *nn_dropout_new(struct arena *arena, struct module *parent, const char *name,
                              float p);

/* Elementwise; the identity when not training. The first dimension of x is the samples: so the mask
 * does not depend on which rank has which sample. layer: names its random numbers
 * within the model. */
struct tensor *nn_dropout(struct tape *tape, struct module *m, struct tensor *x, uint64_t layer);
#endif
