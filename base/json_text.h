/* JSON's strings and numbers at the end of a text, for what writes it piece by piece: json_print,
 * and rows and streams that need no values. */
#ifndef SHOAL_BASE_JSON_TEXT_H
#define SHOAL_BASE_JSON_TEXT_H

#include "base/str.h"

/* Adds the text as JSON has it, with its quotes. Each byte that belongs to no well-formed UTF-8
 * character becomes '?', but for C0 80, which is a NUL (see json_restore_nul). */
void json_text(const char *text, struct str *out);
/* Adds the number with ten significant digits; null for what JSON has not. */
void json_number(double value, struct str *out);
#endif
