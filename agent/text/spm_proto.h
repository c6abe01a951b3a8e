/* What a SentencePiece model file says (sentencepiece_model.proto, in Protobuf's wire format), as
 * plain structs. Form and limits are checked here; what it means is for spm.h. */
#ifndef SHOAL_AGENT_TEXT_SPM_PROTO_H
#define SHOAL_AGENT_TEXT_SPM_PROTO_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum { SPM_MAX_PIECE_BYTES = 8000 }; /* sentencepiece's own limit */

enum spm_type {
    SPM_NORMAL = 1,
    SPM_UNKNOWN = 2,
    SPM_CONTROL = 3,
    SPM_USER_DEFINED = 4,
    SPM_UNUSED = 5,
    SPM_BYTE = 6,
};
enum { SPM_UNIGRAM = 1, SPM_BPE = 2 };

struct spm_text {
    const char *text; /* terminated; may have zeros within */
    size_t bytes;
};

struct spm_piece {
    struct spm_text text; /* well-formed UTF-8, not empty */
    float score;          /* finite */
    enum spm_type type;
};

struct spm_proto {
    struct spm_piece *pieces; /* by id */
    int32_t piece_count;      /* 1 .. VOCAB_MAX_IDS */
    int64_t model_type;
    bool byte_fallback, treat_whitespace_as_suffix;
    struct spm_text unk_surface, bos_piece, eos_piece, pad_piece;
    struct spm_text charsmap; /* of the normalizer */
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
    bool has_denormalizer; /* that does something */
};

/* Memory comes from the arena, where the content is copied. ERR_INPUT. */
int spm_proto_read(struct arena *arena, const void *content, size_t bytes,
                   struct spm_proto *ret_proto, struct error *err);
#endif
