/* The 256 printable characters that stand for bytes in the pieces of a byte-level BPE: bytes
 * 33-126, 161-172 and 174-255 stand for themselves, the other 68 become U+0100, U+0101 and so on,
 * in order (GPT-2's bytes_to_unicode). */
#ifndef SHOAL_AGENT_TEXT_BYTE_ALPHABET_H
#define SHOAL_AGENT_TEXT_BYTE_ALPHABET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str;

enum { BYTE_ALPHABET_MAX_CHARACTER = 0x143 };

/* The character that stands for the byte. */
uint32_t byte_alphabet_character(uint8_t byte);

/* Adds the characters that stand for the bytes, as UTF-8. */
void byte_alphabet_spell(const char *bytes, size_t count, struct str *out);

/* Adds the bytes that the characters of a well-formed text stand for; if one of them stands for
 * none, the text itself. */
void byte_alphabet_read(const char *text, size_t bytes, struct str *out);
#endif
