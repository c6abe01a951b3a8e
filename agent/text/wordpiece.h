/* WordPiece: spells a word with the pieces of a vocabulary, each time the longest one that is
 * there, those within a word behind a prefix ("##"); a word that cannot be spelled so is one
 * unknown piece (BERT's tokenization.py). Words come from elsewhere. */
#ifndef SHOAL_AGENT_TEXT_WORDPIECE_H
#define SHOAL_AGENT_TEXT_WORDPIECE_H

#include "agent/text/tokens.h"
#include "base/error.h"

#include <stddef.h>

struct spec;
struct str;
struct vocab;
struct wordpiece;

/* vocab: has the spec's pieces; stays in use. Memory comes from its arena. ERR_INPUT if the unknown
 * piece is not in it. */
int wordpiece_open(const struct spec *spec, const struct vocab *vocab,
                   struct wordpiece **ret_wordpiece, struct error *err);

/* Adds the ids of a well-formed word. work: a text of one thread. Many threads may encode with one
 * model. */
void wordpiece_encode(const struct wordpiece *wordpiece, struct str *work, const char *word,
                      size_t bytes, struct tokens *out);
#endif
