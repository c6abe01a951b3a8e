/* Samples of `struct examples` as the rows of a batch, on the host: padded, masked, paired. What a
 * row holds is a pure function of (seed, epoch, sample); only how far it is padded depends on the
 * others. */
#ifndef SHOAL_AGENT_DATASET_EXAMPLE_BATCH_H
#define SHOAL_AGENT_DATASET_EXAMPLE_BATCH_H

#include "agent/dataset/examples.h"
#include "agent/dataset/masking.h"

struct example_batcher {
    const struct examples *examples;
    enum examples_kind kind;
    int64_t max_tokens, max_source; /* of a row: T and T_source are at most these (max_tokens of
                                       TRANSLATION: targets) */
    bool pad_to_max;                /* else to the longest row, */
    int64_t multiple;               /* rounded up to a multiple of this */
    int32_t pad;                    /* id behind a row's own */
    int32_t label_pad;              /* TRANSLATION: behind a row's targets; below 0: not counted */
    int32_t bos, eos;               /* PRETRAINING: around and between sentences */
    struct masking masking;         /* MASKED, PRETRAINING; its seed counts for pairs too */
};

/* What a kind does not have is not written. All lies in one piece of memory, so that it goes to a
 * device in one copy. */
struct example_batch {
    int64_t rows, T, T_source;
    int32_t *tokens; /* [rows, T]; TRANSLATION: left to the caller */
    int32_t *target; /* [rows, T]: TRANSLATION's targets, or what was hidden; TOKENS_IGNORED or
                        label_pad where there is none */
    int32_t *token_counts;  /* [rows]; not TRANSLATION */
    int32_t *token_types;   /* [rows, T]: 1 in a second text; not TRANSLATION */
    int32_t *source;        /* [rows, T_source] */
    int32_t *source_counts; /* [rows] */
    int32_t *labels;        /* [rows]: CLASSES, PRETRAINING (0: the second sentence is the next) */
    int64_t targets;        /* that count */
};

/* int32_t of memory that batches of at most `rows` rows need. */
int64_t example_batch_size(const struct example_batcher *batcher, int64_t rows);
/* Lays a batch out in such memory, which is not touched. */
void example_batch_layout(struct example_batch *batch, const struct example_batcher *batcher,
                          int64_t rows, int32_t *memory);

void example_batch_fill(const struct example_batcher *batcher, uint64_t epoch,
                        const int64_t *samples, int64_t rows, struct example_batch *batch);
#endif
