/* The numbers of a run as a page of Prometheus metrics. What is one for the whole job (loss, rates,
 * checkpoints) only rank 0 exports, so that sums over pods are right; what is a rank's own carries
 * its rank. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_RUN_METRICS_H
#define SHOAL_AGENT_TELEMETRY_RUN_METRICS_H

#include "agent/telemetry/run_state.h"
#include "base/str.h"

/* How many ranks hang and how many are slow, as rank 0 knows. */
void run_metrics_print_health(const struct run_facts *facts, int hung, int straggling,
                              struct str *out);
/* resident_bytes: of this process; -1: not known. */
void run_metrics_print(const struct run_state *state, int64_t resident_bytes, struct str *out);
#endif
