#include "agent/text/vocab.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

void vocab_init(struct vocab *vocab, struct arena *arena, int32_t size, size_t pieces)
{
    assert(size >= 0 && size <= VOCAB_MAX_IDS && pieces <= VOCAB_MAX_IDS);
    *vocab = (struct vocab){.arena = arena, .size = size, .slot_count = 16};
    /* At most half full, so that every search ends, and soon, at a free slot. */
    while (vocab->slot_count < 2 * pieces)
        vocab->slot_count *= 2;
    vocab->pieces = arena_array(arena, struct vocab_piece, size);
    vocab->slots = arena_array(arena, int32_t, vocab->slot_count);
    memset(vocab->slots, -1, vocab->slot_count * sizeof *vocab->slots);
}

/* The slot of the piece, or the free one where it belongs. */
static int32_t *find_slot(const struct vocab *vocab, const char *text, size_t bytes)
{
    uint32_t mask = vocab->slot_count - 1;
    for (uint32_t at = (uint32_t)XXH3_64bits(text, bytes) & mask;; at = (at + 1) & mask) {
        int32_t *slot = &vocab->slots[at];
        if (*slot < 0)
            return slot;
        const struct vocab_piece *piece = &vocab->pieces[*slot];
        if (piece->bytes == bytes && memcmp(piece->text, text, bytes) == 0)
            return slot;
    }
}

int vocab_add(struct vocab *vocab, const char *text, size_t bytes, int32_t id, struct error *err)
{
    assert(id >= 0 && id < vocab->size && 2 * (uint32_t)vocab->count < vocab->slot_count);
    if (bytes > VOCAB_MAX_PIECE_BYTES)
        return error_set(err, ERR_INPUT, "piece \"%.40s\"... has %zu bytes; at most %d", text,
                         bytes, VOCAB_MAX_PIECE_BYTES);
    int32_t *slot = find_slot(vocab, text, bytes);
    if (*slot >= 0)
        return error_set(err, ERR_INPUT, "piece \"%.40s\" has two ids, %d and %d", text, *slot, id);
    if (vocab->pieces[id].text)
        return error_set(err, ERR_INPUT, "id %d has two pieces, \"%.40s\" and \"%.40s\"", id,
                         vocab->pieces[id].text, text);
    vocab->pieces[id] = (struct vocab_piece){text, (uint32_t)bytes};
    *slot = id;
    vocab->count++;
    return 0;
}

int32_t vocab_find(const struct vocab *vocab, const char *text, size_t bytes)
{
    return *find_slot(vocab, text, bytes);
}
