/* Names a step in which a run ends again and again, by the samples that it trains on: bad data and
 * a bug look like bad hardware otherwise. Pure. */
#ifndef SHOAL_AGENT_TRAINER_FATAL_STEP_H
#define SHOAL_AGENT_TRAINER_FATAL_STEP_H

#include "agent/trainer/data_cursor.h"
#include "base/str.h"

/* Both add what may follow RANK_NOTE_ENDS (rank_note.h). */

/* The end came behind this step, before the next one: "behind step 4, which was done: ...". */
void fatal_step_describe_end(int64_t step, struct str *out);
/* step: the one that did not end, counted from 1, at or behind the cursor's position: "in step 7,
 * which trains on samples 25 to 36 of epoch 2, in the order of the epoch". */
void fatal_step_describe(const struct data_cursor *cursor, int64_t step, struct str *out);

#endif
