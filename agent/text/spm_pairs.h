/* The merges of a SentencePiece BPE model. Its file has none: two neighbours merge if both together
 * are a piece, the one with the highest score first. */
#ifndef SHOAL_AGENT_TEXT_SPM_PAIRS_H
#define SHOAL_AGENT_TEXT_SPM_PAIRS_H

#include "base/error.h"

struct arena;
struct bpe;
struct spm_proto;

/* unk: the unknown piece. Memory comes from the arena. ERR_INPUT, ERR_LIMIT, ERR_UNSUPPORTED. */
int spm_pairs_open(struct arena *arena, const struct spm_proto *proto, int unk,
                   struct bpe **ret_bpe, struct error *err);
#endif
