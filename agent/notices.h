/* What is logged of a configuration: what matters most first, a line each. */
#ifndef SHOAL_AGENT_NOTICES_H
#define SHOAL_AGENT_NOTICES_H

#include "agent/config/config.h"

/* Adds to the headline what only a run has to report: that nothing keeps what it trains. */
void notices_complete(struct config *config, struct arena *arena);
void notices_log(const struct config *config);
#endif
