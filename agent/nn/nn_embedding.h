/* Tables of vectors, looked up by tokens and by positions. */
#ifndef SHOAL_AGENT_NN_NN_EMBEDDING_H
#define SHOAL_AGENT_NN_NN_EMBEDDING_H

#include "agent/nn/module.h"
#include "agent/nn/tape.h"

/* torch.nn.Embedding: weight [V, D] from N(0, stddev). */
struct module *nn_embedding_new(struct arena *arena, struct module *parent, const char *name,
                                uint64_t *next_index, int64_t V, int64_t D, float stddev);

/* Likewise with a row for padding (padding_idx; -1: none), which starts as 0 and gets no gradient
 * from look-ups. */
struct module *nn_padded_embedding_new(struct arena *arena, struct module *parent, const char *name,
                                       uint64_t *next_index, int64_t V, int64_t D, float stddev,
                                       int64_t padding);

/* ids: device [B, T], each below V, alive until backward has run. -> [B, T, D]. */
struct tensor *nn_embedding(struct tape *tape, struct module *m, const int32_t *ids, int64_t B,
                            int64_t T);
/* Row t of the table for token t of every sample: [B, T, D]. positions: device, 0, 1, .. T - 1. */
struct tensor *nn_positions(struct tape *tape, struct module *m, const int32_t *positions,
                            int64_t B, int64_t T);
/* The same ids for every sample. ids: device [T], as nn_embedding()'s. */
struct tensor *nn_embedding_of_each(struct tape *tape, struct module *m, const int32_t *ids,
                                    int64_t B, int64_t T);
#endif
