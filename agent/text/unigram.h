/* A Unigram model: spells a word with those pieces of a vocabulary whose scores have the largest
 * sum (Viterbi); characters without a piece become bytes (<0xNN>) or unknown, several beside each
 * other one piece. Of two equal sums the first that is found counts. As the tokenizers library does
 * it, in double precision, or as SentencePiece does, in single. Words come from elsewhere. */
#ifndef SHOAL_AGENT_TEXT_UNIGRAM_H
#define SHOAL_AGENT_TEXT_UNIGRAM_H

#include "agent/text/tokens.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spec;
struct spec_piece;
struct vocab;
struct unigram;
struct unigram_workspace; /* what one thread needs */

enum {
    UNIGRAM_UNKNOWN_PENALTY = 10, /* what an unknown character costs more than the worst piece */
    UNIGRAM_MAX_WORD_BYTES = 64 << 20,  /* needs 16 bytes of memory for each */
    UNIGRAM_MAX_PIECES_BYTES = 1 << 26, /* of all pieces together: 32 bytes of memory for each */
};

/* vocab: has the spec's pieces; stays in use. Memory comes from its arena. ERR_INPUT names the
 * field that does not fit. */
int unigram_open(const struct spec *spec, const struct vocab *vocab, struct unigram **ret_unigram,
                 struct error *err);

/* A model by its parts. */
struct unigram_parts {
    const struct spec_piece *pieces; /* that words are spelled with */
    size_t piece_count;
    double unknown_score; /* of a character without a piece */
    int32_t unk;
    bool byte_fallback;
    bool is_sentencepiece; /* sums in single precision; what is unknown is no piece together */
};
/* The same from its parts; their texts stay in use. */
int unigram_open_parts(const struct unigram_parts *parts, const struct vocab *vocab,
                       struct unigram **ret_unigram, struct error *err);

struct unigram_workspace *unigram_workspace_open(void);
void unigram_workspace_close(struct unigram_workspace *work); /* NULL-safe */

/* Adds the ids of a well-formed word. ERR_LIMIT if it is too long. Many threads may encode with one
 * model, each with its own work. */
int unigram_encode(const struct unigram *unigram, struct unigram_workspace *work, const char *word,
                   size_t bytes, struct tokens *out, struct error *err);
#endif
