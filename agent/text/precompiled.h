/* The replacements that a SentencePiece model brings along ("precompiled_charsmap" in a
 * tokenizer.json): a double array (https://github.com/s-yata/darts-clone) from texts to what they
 * become. Applied as the tokenizers library does: to grapheme clusters shorter than 6 bytes as a
 * whole, else to each of their characters. utf8proc has the clusters of Unicode 15. */
#ifndef SHOAL_AGENT_TEXT_PRECOMPILED_H
#define SHOAL_AGENT_TEXT_PRECOMPILED_H

#include "base/error.h"

#include <stddef.h>

struct precompiled;
struct str;

/* content: a u32 of the array's bytes, the array of u32, then the replacements, each ended by a
 * zero byte; little-endian. It is copied. ERR_INPUT. */
int precompiled_open(const void *content, size_t bytes, struct precompiled **ret_precompiled,
                     struct error *err);
/* The same from base64. */
int precompiled_open_base64(const char *base64, struct precompiled **ret_precompiled,
                            struct error *err);
void precompiled_close(struct precompiled *precompiled); /* NULL-safe */

/* What the longest beginning of the text that has a replacement becomes, and how long that is; NULL
 * and 0: none has. This is SentencePiece's own way. */
const char *precompiled_find_longest(const struct precompiled *precompiled, const char *text,
                                     size_t bytes, size_t *ret_length);

/* Adds the text with what is replaced; the text is well-formed. */
void precompiled_run(const struct precompiled *precompiled, const char *text, size_t bytes,
                     struct str *out);
#endif
