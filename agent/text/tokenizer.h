/* From text to token ids and back: the one door to the tokenizers of language models. Opens what
 * lies in a model's directory; the ids are those that the tokenizers library and SentencePiece
 * give for the same files. Knows no models and no data sets.
 *
 * A text that is no well-formed UTF-8 is read with each ill-formed part replaced by U+FFFD, as
 * Python's errors="replace" does. */
#ifndef SHOAL_AGENT_TEXT_TOKENIZER_H
#define SHOAL_AGENT_TEXT_TOKENIZER_H

#include "agent/text/tokens.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOKENIZER_MAX_FILE_BYTES = 128 << 20, /* of each file; Llama 3's has 9 MB, Gemma's 34 */
    TOKENIZER_MAX_TEXT_BYTES = 256 << 20, /* of one text */
};

struct tokenizer;

/* Opens a file, or the first of these that a directory has: tokenizer.json (BPE, Unigram,
 * WordPiece), spiece.model, tokenizer.model (SentencePiece), vocab.json with merges.txt (GPT-2's),
 * vocab.txt (BERT's). Special tokens come from special_tokens_map.json and tokenizer_config.json
 * beside it. Errors name the file and the field: ERR_NOT_FOUND lists what was looked for;
 * ERR_INPUT; ERR_UNSUPPORTED says what works. */
int tokenizer_open(const char *path, struct tokenizer **ret_tokenizer, struct error *err);
/* The same from the content of a tokenizer.json, with nothing beside it; `name` is for errors. */
int tokenizer_open_json(const char *name, const char *text, size_t bytes,
                        struct tokenizer **ret_tokenizer, struct error *err);
/* A file of a tokenizer, and the name by which it is found in a directory. */
struct tokenizer_file {
    const char *path, *name;
};
enum { TOKENIZER_FILES_MAX = 10 };
/* What tokenizer_open() reads for this path, for a copy: all that a directory has, or the file with
 * what it reads beside it. Also a chat template, which others read. Texts from `arena`. Returns how
 * many there are; 0: nothing is there. */
int tokenizer_list_files(const char *path, struct arena *arena,
                         struct tokenizer_file ret_files[TOKENIZER_FILES_MAX]);
void tokenizer_close(struct tokenizer *tokenizer); /* NULL-safe; no thread may be using it */

/* Highest id + 1: a model needs an embedding with at least so many rows. */
int32_t tokenizer_vocabulary(const struct tokenizer *tokenizer);
/* ERR_INPUT, naming the file and the highest piece, if a model with this vocabulary
 * is too small. */
int tokenizer_check_fits(const struct tokenizer *tokenizer, int64_t vocabulary, struct error *err);

struct tokenizer_special {
    int32_t bos, eos, pad, unk, mask; /* -1: there is none */
};
/* As the files beside the tokenizer name them; else the ids that it puts around a text (so BERT's
 * bos is [CLS] and its eos [SEP]), or its model's, or well-known names: <|endoftext|>,
 * <|begin_of_text|>, <|end_of_text|>, <s>, </s>, [PAD], <pad>, [MASK], <mask>. */
struct tokenizer_special tokenizer_special(const struct tokenizer *tokenizer);

/* Adds the ids of the text to `out`. add_special: with what the tokenizer puts around a text, for
 * example bos. Many threads may encode with one tokenizer. Errors: ERR_LIMIT; ids that were added
 * before stay, others may be there. */
int tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t bytes,
                     bool add_special, struct tokens *out, struct error *err);

/* Adds the text of the ids to `out`, without special tokens if skip_special. Bytes of a character
 * that is not whole stay as they are. ERR_INPUT for an id without a piece. Many threads may. */
int tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, size_t count,
                     bool skip_special, struct str *out, struct error *err);

/* The piece of an id as the files spell it; NULL: no piece has this id. The tokenizer's. */
const char *tokenizer_piece(const struct tokenizer *tokenizer, int32_t id, size_t *ret_bytes);
#endif
