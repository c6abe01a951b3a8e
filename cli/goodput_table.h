/* Where the time of a job went, as text: the kinds of goodput. Pure. */
#ifndef SHOAL_CLI_GOODPUT_TABLE_H
#define SHOAL_CLI_GOODPUT_TABLE_H

#include "base/str.h"
#include "operator/job/goodput.h"

/* Adds a line with the sum and the share of steps, and one for each kind that took time, the
 * longest first. Nothing, if nothing is known but that a program ran. */
void goodput_table(const struct goodput *goodput, struct str *out);
#endif
