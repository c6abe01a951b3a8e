#include "agent/text/bpe_pairs.h"

#include "base/mem.h"

#include <string.h>

void bpe_pairs_init(struct bpe_pairs *pairs, struct arena *arena, size_t count)
{
    size_t size = 16;
    /* At most half full, so that every search ends, and soon, at a free slot. */
    while (size < 2 * count)
        size *= 2;
    pairs->mask = size - 1;
    pairs->slots = arena_array(arena, struct bpe_pair, size);
    memset(pairs->slots, -1, size * sizeof *pairs->slots);
}

static struct bpe_pair *find_slot(const struct bpe_pairs *pairs, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint64_t at = key * 0x9e3779b97f4a7c15 >> 32; /* Fibonacci hashing */
    for (;; at++) {
        struct bpe_pair *slot = &pairs->slots[at & pairs->mask];
        if (slot->left < 0 || (slot->left == left && slot->right == right))
            return slot;
    }
}

void bpe_pairs_set(struct bpe_pairs *pairs, const struct bpe_pair *pair)
{
    *find_slot(pairs, pair->left, pair->right) = *pair;
}

const struct bpe_pair *bpe_pairs_find(const struct bpe_pairs *pairs, int32_t left, int32_t right)
{
    const struct bpe_pair *slot = find_slot(pairs, left, right);
    return slot->left < 0 ? NULL : slot;
}
