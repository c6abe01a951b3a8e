/* What a run says first: how it was configured, among whom, and what it leaves to
 * other libraries. */
#ifndef SHOAL_AGENT_REPORT_BANNER_H
#define SHOAL_AGENT_REPORT_BANNER_H

#include "agent/config/config.h"
#include "agent/launch/topology.h"
#include "base/str.h"

/* environment: as environ; of it, NCCL_* and FI_* are printed, which NCCL and its network plugins
 * read for themselves. */
void banner_print(const struct config *config, const struct topology *topology,
                  char *const *environment, bool is_hyperpod, struct str *out);
#endif
