/* Doubles as JSON writes them: with a point, whatever the locale of the process says. For
 * base/json*.c, and for YAML's numbers that JSON lacks. */
#ifndef SHOAL_BASE_JSON_REAL_H
#define SHOAL_BASE_JSON_REAL_H

#include <stddef.h>

enum { JSON_REAL_BYTES = 40 };

/* The number nearest to the text of a JSON number; infinite if it is too large. */
double json_real_value(const char *text);
/* A finite number with so many significant digits, 17 at most, as printf's %g has it. */
void json_real_format(double number, int digits, char out[JSON_REAL_BYTES]);
/* The same with a point or exponent in every case. */
void json_real_print(double number, int digits, char out[JSON_REAL_BYTES]);
#endif
