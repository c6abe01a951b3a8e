/* Byte pair encoding: spells a word with the pieces of a vocabulary, by merging, again and again,
 * the adjacent pair that was learned first, the leftmost of several. Words come from elsewhere. */
#ifndef SHOAL_AGENT_TEXT_BPE_H
#define SHOAL_AGENT_TEXT_BPE_H

#include "agent/text/tokens.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpe_pair;
struct spec;
struct vocab;
struct bpe;
/* What one thread needs, with the words it has spelled lately; of one model. */
struct bpe_workspace;

enum {
    BPE_MAX_WORD_BYTES = 64 << 20, /* needs about 64 bytes of memory for each */
};

/* vocab: has the spec's pieces; stays in use. byte_level: words are spelled in the byte alphabet.
 * Memory comes from the vocabulary's arena. ERR_INPUT names the merge or field that does not fit
 * the vocabulary. */
int bpe_open(const struct spec *spec, const struct vocab *vocab, bool byte_level,
             struct bpe **ret_bpe, struct error *err);

/* A model by its pairs, as SentencePiece has them: several may have one rank. */
struct bpe_parts {
    const struct vocab *symbols; /* the model's pieces, and characters that are none */
    int32_t own; /* symbols from here on are such characters: unknown if they stay */
    const struct bpe_pair *pairs;
    size_t pair_count;
    int32_t unk; /* several beside each other are one */
    bool byte_fallback;
};
/* The same from its parts; the symbols stay in use. */
struct bpe *bpe_open_parts(const struct bpe_parts *parts);

struct bpe_workspace *bpe_workspace_open(void);
void bpe_workspace_close(struct bpe_workspace *work); /* NULL-safe */

/* Adds the ids of a well-formed word, in n log n of its length. ERR_LIMIT if it is too long. Many
 * threads may encode with one model, each with its own work. */
int bpe_encode(const struct bpe *bpe, struct bpe_workspace *work, const char *word, size_t bytes,
               struct tokens *out, struct error *err);
#endif
