/* Pieces of text and their ids, both ways. A piece may hold any byte, zeros too. */
#ifndef SHOAL_AGENT_TEXT_VOCAB_H
#define SHOAL_AGENT_TEXT_VOCAB_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct arena;

enum {
    VOCAB_MAX_IDS = 1 << 21,       /* ids are 0 .. VOCAB_MAX_IDS - 1; the largest in use: 256 Ki */
    VOCAB_MAX_PIECE_BYTES = 65535, /* of a piece */
};

struct vocab_piece {
    const char *text; /* terminated; NULL: no piece has this id */
    uint32_t bytes;
};

struct vocab {
    struct arena *arena;        /* of all that is here; not owned */
    struct vocab_piece *pieces; /* [size], by id */
    int32_t size;               /* highest id + 1 */
    int32_t count;              /* pieces */
    int32_t *slots;             /* [slot_count]: ids by the hash of the piece; -1: free */
    uint32_t slot_count;        /* a power of two, at least twice `count` */
};

/* An empty one with room for ids below `size`. */
void vocab_init(struct vocab *vocab, struct arena *arena, int32_t size, size_t pieces);

/* Adds a piece, which is not copied, under an id below `size`. ERR_INPUT if the piece or the id is
 * there already, naming both. No more than `pieces` may be added. */
int vocab_add(struct vocab *vocab, const char *text, size_t bytes, int32_t id, struct error *err);

int32_t vocab_find(const struct vocab *vocab, const char *text, size_t bytes); /* -1: none */
#endif
