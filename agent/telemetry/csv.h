/* The numbers of a run as CSV (RFC 4180): a header, then a row for each step, evaluation and save,
 * empty where the event says nothing. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_CSV_H
#define SHOAL_AGENT_TELEMETRY_CSV_H

#include "agent/telemetry/fields.h"
#include "base/str.h"

void csv_header(enum field_words words, struct str *out);
void csv_row(enum field_event event, enum field_words words, const struct run_state *state,
             struct str *out);
#endif
