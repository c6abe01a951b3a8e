/* Batches for language models, of each task, by the formulas of tests/data/parity/README.md. */
#ifndef SHOAL_TESTS_AGENT_LANGUAGE_BATCH_H
#define SHOAL_TESTS_AGENT_LANGUAGE_BATCH_H

#include "agent/models/model.h"
#include "base/mem.h"

enum { LANGUAGE_SOURCE_TOKENS = 33 }; /* of what an encoder reads */

/* In host memory. */
struct language_batch {
    struct batch batch; /* with all that the model's task reads but scales and logits */
    int64_t targets;    /* that count; MODEL_CLASSES: labels */
    int64_t labels;     /* MODEL_PRETRAINING: labels that count */
};

/* Samples first, first + stride, ..: `rows` of them, T tokens each. Memory from `arena`. */
struct language_batch language_batch_make(struct arena *arena, const struct model *model, int64_t T,
                                          int64_t first, int64_t stride, int64_t rows);

/* The loss that sums (of all ranks) tell of. */
double language_loss(const struct model *model, const double *sums);
#endif
