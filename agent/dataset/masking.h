/* Which tokens of a text are hidden, and what is put in their place: BERT's rule, as pure functions
 * of (seed, epoch, sample), so that no world size, batch or order changes them. Of the tokens that
 * may be hidden each is chosen with a probability; of the chosen ones 80 % become the mask token,
 * 10 % a token at random, 10 % stay as they are. */
#ifndef SHOAL_AGENT_DATASET_MASKING_H
#define SHOAL_AGENT_DATASET_MASKING_H

#include <stdbool.h>
#include <stdint.h>

struct masking {
    double probability; /* of a token to be chosen */
    int32_t mask;       /* what stands for a hidden token */
    int32_t vocabulary; /* tokens at random are below */
    int32_t kept[5];    /* never chosen: bos, eos, padding, unknown, mask; -1: none */
    uint64_t seed;
};

/* Hides some of ids[count], in place. targets: [count]: the token that was there if it is chosen,
 * else `ignored`. Returns how many are chosen. */
int64_t masking_apply(const struct masking *masking, uint64_t epoch, int64_t sample, int32_t *ids,
                      int64_t count, int32_t *targets, int32_t ignored);

/* Whether the second sentence of a pair is another one than the next, in half of the cases; and
 * number `attempt` of those that it may be, below `bound`. */
bool masking_next_is_random(uint64_t seed, uint64_t epoch, int64_t sample);
int64_t masking_random_next(uint64_t seed, uint64_t epoch, int64_t sample, int attempt,
                            int64_t bound);
#endif
