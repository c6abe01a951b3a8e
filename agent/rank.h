/* One rank of a run, from the banner to the end: it initializes the process group, trains, reports
 * its failure to the other ranks, and leaves the group. main hands it the configuration, the
 * topology and the signals. */
#ifndef SHOAL_AGENT_RANK_H
#define SHOAL_AGENT_RANK_H

#include "agent/config/config.h"
#include "agent/launch/topology.h"
#include "base/error.h"

#include <stdint.h>

/* The reduction slots that the run's checkpoint has; 0: none, or there is no checkpoint. */
int64_t rank_saved_slots(const struct agent_config *config, const struct topology *topology);

/* start_us: clock_monotonic_us() at the start of the process, from which elapsed time counts.
 * Errors: the run's; err->shared if every rank has the same error. */
int rank_run(const struct config *config, const struct topology *topology, int64_t start_us,
             struct error *err);
#endif
