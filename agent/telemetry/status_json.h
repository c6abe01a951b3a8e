/* All a run knows of itself as one JSON object, for /status. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_STATUS_JSON_H
#define SHOAL_AGENT_TELEMETRY_STATUS_JSON_H

#include "agent/telemetry/run_state.h"
#include "base/str.h"

#ifdef __cplusplus
extern "C" {
#endif

void status_json(const struct run_state *state, struct str *out);

#ifdef __cplusplus
}
#endif
#endif
