/* Whole epochs of a stream, in memory; and a data set as C4's, of 50 texts. */
#ifndef SHOAL_TESTS_AGENT_TOKEN_SAMPLES_H
#define SHOAL_TESTS_AGENT_TOKEN_SAMPLES_H

#include "agent/dataset/token_source.h"
#include "tests/agent/token_texts.h"

#include <stdint.h>

enum { SAMPLES_MAX_T = 64, SAMPLES_MAX = 512 };

struct samples {
    int64_t count;
    int32_t ids[SAMPLES_MAX][SAMPLES_MAX_T], targets[SAMPLES_MAX][SAMPLES_MAX_T];
};

/* Takes what is left of the epoch. */
void samples_take(struct token_source *source, struct samples *out);
/* All of an epoch. The caller frees. */
struct samples *samples_of_epoch(const struct token_options *options, int64_t epoch);

/* Three files of 17, 30 and 3 texts for training, and one of 5, from text 100 on,
 * for evaluation. */
void samples_write_c4(const char *dir);
/* Shuffled among 8. */
struct token_options samples_c4_options(const char *dir, int64_t window);
#endif
