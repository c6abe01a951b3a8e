/* A training that the hang detector watches, simulated: ranks that compute and meet in collectives,
 * read data, evaluate and save; machines that are paused, memory that is paged in, slow storage, a
 * clock that jumps, heartbeats that come late; and hangs at random times. */
#ifndef SHOAL_TESTS_AGENT_HANG_SIMULATION_H
#define SHOAL_TESTS_AGENT_HANG_SIMULATION_H

#include <stdint.h>
#include <stdio.h>

/* What is injected. */
enum hang_kind {
    HANG_IN_STEP,
    HANG_IN_DATA,
    HANG_IN_EVALUATION,
    HANG_IN_SAVE,
    HANG_SILENT,
    HANG_KINDS
};

/* What came of many hours. */
struct hang_tally {
    int64_t hours, ticks, segments;
    int64_t page_ins, slow_data, slow_saves, paused_machines, paused_observers, clock_jumps,
        late_beats;
    int64_t false_alarms; /* nothing hung, or another rank */
    int64_t missed;       /* not named within the bound and 4 s */
    int64_t hangs[HANG_KINDS];
    double delay_s[HANG_KINDS], longest_s[HANG_KINDS]; /* from the hang to its name: sum, most */
};

/* Adds `hours` of one job, whose shape is drawn from the seed as all else is. */
void hang_simulation_run(uint64_t seed, int hours, struct hang_tally *tally);
void hang_simulation_print(const struct hang_tally *tally, FILE *out);
#endif
