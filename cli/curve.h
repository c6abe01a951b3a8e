/* How the loss went, as one line of text. Pure. */
#ifndef SHOAL_CLI_CURVE_H
#define SHOAL_CLI_CURVE_H

#include <stdbool.h>

#include "base/series.h"
#include "base/str.h"

enum { CURVE_COLUMNS_MAX = 60 };

/* Adds the losses, at most `width` characters wide: eight heights from the least to the greatest,
 * as blocks of Unicode or, if not `unicode`, as ASCII. A character is the mean of what it stands
 * for. Nothing of fewer than two that are known. */
void curve_draw(const struct series *series, int width, bool unicode, struct str *out);
#endif
