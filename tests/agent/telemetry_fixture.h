/* A run that tells how it goes, for tests, on a clock of their own. */
#ifndef SHOAL_TESTS_AGENT_TELEMETRY_FIXTURE_H
#define SHOAL_TESTS_AGENT_TELEMETRY_FIXTURE_H

#include "agent/telemetry/telemetry.h"

/* Microseconds since the run began: a second goes by between two looks. */
extern int64_t telemetry_fixture_us;

/* Of rank 0 of run_fixture_facts, which prints plain lines to `out`, each second step, and writes
 * no files. Sets the clock back. */
struct telemetry_setting telemetry_fixture_setting(FILE *out);
struct telemetry *telemetry_fixture_open(const struct telemetry_setting *setting);

/* Steps first .. last, an evaluation and a save. */
void telemetry_fixture_run(struct telemetry *telemetry, int64_t first, int64_t last);
#endif
