/* Bytes of others as UTF-8. */
#ifndef SHOAL_BASE_UTF8_H
#define SHOAL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much of a character is at the beginning of text[0..bytes), bytes >= 1: at least 1; *ret_whole
 * says whether it is all of a well-formed one (The Unicode Standard, table 3-7). */
size_t utf8_measure(const char *text, size_t bytes, bool *ret_whole);

/* The character at the beginning of text[0..bytes), bytes >= 1. Returns its length, or 0 if what is
 * there is no well-formed character. */
size_t utf8_decode(const char *text, size_t bytes, uint32_t *ret_character);

/* Makes one line of it that a terminal and grep can take, of the same length: an ASCII control
 * character becomes a space; each byte of another control character, of a mark of direction or end
 * of line (U+202E, U+2028), and of no well-formed character becomes '?'. */
void utf8_make_printable(char *text, size_t bytes);
#endif
