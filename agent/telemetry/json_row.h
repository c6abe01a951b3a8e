/* What an event holds, as one JSON object: a line of the JSONL file, a message of the stream of
 * steps. A number that is not known, and one that is no number, is null. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_JSON_ROW_H
#define SHOAL_AGENT_TELEMETRY_JSON_ROW_H

#include "agent/telemetry/fields.h"
#include "base/str.h"

/* {"step":3,"loss":0.5,...}, no newline at the end. */
void json_row(enum field_event event, enum field_words words, const struct run_state *state,
              struct str *out);
#endif
