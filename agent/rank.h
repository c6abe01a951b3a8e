/* One rank of a run, from the banner to the end: it meets the others, opens the trainer, trains,
 * tells the others if it fails, and parts. What its words mean is known elsewhere: configuration,
 * topology and signals come from main. */
#ifndef SHOAL_AGENT_RANK_H
#define SHOAL_AGENT_RANK_H

#include "agent/config/config.h"
#include "agent/launch/topology.h"

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* start_us: when the process started, of clock_monotonic_us(): the run's elapsed time counts from
 * there. Errors: any of the run's; err->shared if every rank found the same for itself. */
int rank_run(const struct config *config, const struct topology *topology, int64_t start_us,
             struct error *err);

#ifdef __cplusplus
}
#endif
#endif
