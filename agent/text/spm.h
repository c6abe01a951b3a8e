/* SentencePiece models, Unigram and BPE: the ids and texts that sentencepiece 0.2.3 gives. */
#ifndef SHOAL_AGENT_TEXT_SPM_H
#define SHOAL_AGENT_TEXT_SPM_H

#include "agent/text/tokens.h"
#include "base/error.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

struct bpe_workspace;
struct spm;
struct unigram_workspace;

enum { SPM_MAX_BPE_PIECE_BYTES = 512, SPM_MAX_BPE_PAIRS = 1 << 24 };

/* Opens a model from the content of its file. ERR_INPUT if it is none, ERR_UNSUPPORTED with what it
 * asks for. */
int spm_open(const void *content, size_t bytes, struct spm **ret_model, struct error *err);
void spm_close(struct spm *model); /* NULL-safe */

int32_t spm_size(const struct spm *model); /* ids are 0 .. size - 1 */
/* The piece of an id; the model's. NULL: this id has none. */
const char *spm_piece(const struct spm *model, int32_t id, size_t *ret_bytes);

struct spm_special {
    int32_t bos, eos, pad, unk; /* -1: there is none */
};
struct spm_special spm_get_special(const struct spm *model);

/* What one thread needs. */
struct spm_workspace {
    struct unigram_workspace *unigram;
    struct bpe_workspace *bpe; /* of this model alone */
    struct str *text;
};

/* Adds the ids of a well-formed text. Many threads may encode with one model. ERR_LIMIT. */
int spm_encode(const struct spm *model, const struct spm_workspace *work, const char *text,
               size_t bytes, struct tokens *out, struct error *err);
/* Adds the text of ids below the size. */
void spm_decode(const struct spm *model, const int32_t *ids, size_t count, struct str *out);
#endif
