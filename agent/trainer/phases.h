/* Where the time of a step goes, as the compute stream sees it: the stream is notified when a phase
 * begins, and notes the time when it gets there. Knows the stream; not what the phases do. */
#ifndef SHOAL_AGENT_TRAINER_PHASES_H
#define SHOAL_AGENT_TRAINER_PHASES_H

#include "agent/telemetry/run_numbers.h"
#include "kernels/device.h"

struct phases;

struct phases *phases_open(struct stream *stream);
void phases_close(struct phases *phases); /* NULL-safe; the stream has been synced */

/* After a sync: forgets all marks. */
void phases_begin(struct phases *phases);

/* What is queued from now on belongs to `phase`. Returns the phase it was, to come back to. */
enum run_phase phases_mark(struct phases *phases, enum run_phase phase);

/* After a sync: seconds of each phase since the first mark, and begins anew. What came after the
 * last mark is not in it. */
void phases_take(struct phases *phases, double ret_s[RUN_STEP_PHASES]);
#endif
