/* Where the time of a job went, as text: the kinds of goodput. Pure. */
#ifndef SHOAL_CLI_GOODPUT_TABLE_H
#define SHOAL_CLI_GOODPUT_TABLE_H

#include "base/str.h"
#include "operator/job/goodput.h"
#include "operator/job/training.h"

enum { GOODPUT_SHORT_MS = 10 * 1000 /* where whole seconds would say little */ };

/* "9.6s" below GOODPUT_SHORT_MS, else as training_duration_text; cut, not rounded. Not negative. */
void goodput_time_text(int64_t ms, char out[TRAINING_TEXT_BYTES]);

/* Adds a line with the sum and the share of steps, and one for each kind that took time, the
 * longest first. Nothing, if nothing is known but that a program ran. */
void goodput_table(const struct goodput *goodput, struct str *out);
#endif
