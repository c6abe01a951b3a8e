/* The replacements that a SentencePiece model brings along ("precompiled_charsmap" in a
 * tokenizer.json): a double array (https://github.com/s-yata/darts-clone) from texts to what they
 * become. Applied as the tokenizers library does: to grapheme clusters shorter than 6 bytes as a
 * whole, else to each of their characters. utf8proc has the clusters of Unicode 15. */
#ifndef SHOAL_AGENT_TEXT_PRECOMPILED_H
#define SHOAL_AGENT_TEXT_PRECOMPILED_H

#include "base/error.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct precompiled;
struct str;

/* base64: a u32 of the array's bytes, the array of u32, then the replacements, each ended by a zero
 * byte; little-endian. ERR_INPUT. */
int precompiled_open(const char *base64, struct precompiled **ret_precompiled, struct error *err);
void precompiled_close(struct precompiled *precompiled); /* NULL-safe */

/* Adds the text with what is replaced; the text is well-formed. */
void precompiled_run(const struct precompiled *precompiled, const char *text, size_t bytes,
                     struct str *out);

#ifdef __cplusplus
}
#endif
#endif
