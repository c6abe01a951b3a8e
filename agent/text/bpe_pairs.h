/* What becomes of two neighbouring pieces: a hash table from pairs of ids to a rank and an id. */
#ifndef SHOAL_AGENT_TEXT_BPE_PAIRS_H
#define SHOAL_AGENT_TEXT_BPE_PAIRS_H

#include <stddef.h>
#include <stdint.h>

struct arena;

struct bpe_pair {
    int32_t left, right; /* left < 0: a free slot */
    int32_t rank;        /* lower ones are merged first */
    int32_t merged;      /* the id of both together */
};

struct bpe_pairs {
    struct bpe_pair *slots; /* [mask + 1] */
    uint64_t mask;
};

void bpe_pairs_init(struct bpe_pairs *pairs, struct arena *arena, size_t count);
/* Replaces what is there for the same two ids. At most `count` different ones. */
void bpe_pairs_set(struct bpe_pairs *pairs, const struct bpe_pair *pair);
const struct bpe_pair *bpe_pairs_find(const struct bpe_pairs *pairs, int32_t left,
                                      int32_t right); /* NULL: they do not merge */
#endif
