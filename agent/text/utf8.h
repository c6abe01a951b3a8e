/* More of UTF-8, and the two classes of characters that added tokens ask for. Knows
 * no tokenizers. */
#ifndef SHOAL_AGENT_TEXT_UTF8_H
#define SHOAL_AGENT_TEXT_UTF8_H

#include "base/utf8.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str;

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
enum { UTF8_MAX_BYTES = 4 };            /* of a character */

/* The last character of a well-formed text[0..bytes), bytes >= 1: its length. */
size_t utf8_decode_last(const char *text, size_t bytes, uint32_t *ret_character);

/* Writes a character; returns its length. */
size_t utf8_encode(uint32_t character, char out[UTF8_MAX_BYTES]);

/* How many bytes from the beginning are well-formed. */
size_t utf8_well_formed(const char *text, size_t bytes);

/* Adds the text with each ill-formed part replaced by U+FFFD. A part is the longest beginning of a
 * character that is there, or one byte (The Unicode Standard, 3.9, "Substitution of Maximal
 * Subparts"; Python's errors="replace"). */
void utf8_repair(const char *text, size_t bytes, struct str *out);

/* The property White_Space. */
bool utf8_is_space(uint32_t character);
/* What regular expressions call a word character (UTS #18): alphabetic, mark, decimal digit,
 * connector, join control. */
bool utf8_is_word(uint32_t character);
#endif
