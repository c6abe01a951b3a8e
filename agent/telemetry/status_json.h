/* All a run knows of itself as one JSON object, for /status. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_STATUS_JSON_H
#define SHOAL_AGENT_TELEMETRY_STATUS_JSON_H

#include "agent/telemetry/run_state.h"
#include "base/str.h"

void status_json(const struct run_state *state, struct str *out);

/* Of it what the operator shows in the job's status, in one line: see TRAINING_PATH. */
void status_json_training(const struct run_state *state, struct str *out);
#endif
