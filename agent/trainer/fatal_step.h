/* Names a step in which a run ends again and again, by the samples that it trains on: bad data and
 * a bug look like bad hardware otherwise. Pure. */
#ifndef SHOAL_AGENT_TRAINER_FATAL_STEP_H
#define SHOAL_AGENT_TRAINER_FATAL_STEP_H

#include "agent/trainer/data_cursor.h"
#include "base/str.h"

/* The end came behind this step, before the next one. times: that it did, in a row. */
void fatal_step_describe_end(int64_t step, int times, struct str *out);
/* step: the one that did not end, counted from 1, at or behind the cursor's position. times: that
 * it did not, in a row. */
void fatal_step_describe(const struct data_cursor *cursor, int64_t step, int times,
                         struct str *out);

#endif
