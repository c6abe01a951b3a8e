/* The numbers of a run as a TensorBoard event file. A process writes a file of its own; TensorBoard
 * reads all files of a directory as one run, so a resumed run goes on in the same curves. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_TENSORBOARD_H
#define SHOAL_AGENT_TELEMETRY_TENSORBOARD_H

#include "agent/telemetry/fields.h"
#include "base/str.h"

/* "DIR/events.out.tfevents.SECONDS.HOST.PID.MICROSECONDS", the form TensorBoard looks for. */
void tensorboard_path(const char *dir, int64_t wall_us, const char *host, int64_t pid,
                      struct str *out);

/* What a file begins with. */
void tensorboard_head(int64_t wall_us, struct str *out);
/* The event's record: the fields that have a tag (in WORDS_FABRIC: a name) and a known value;
 * nothing if there are none. */
void tensorboard_row(enum field_event event, enum field_words words, const struct run_state *state,
                     struct str *out);
#endif
