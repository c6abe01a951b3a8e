/* What a rank does when rank 0 asks it to look at one that hangs: itself, or another of its pod. */
#ifndef SHOAL_AGENT_HEALTH_RANK_INSPECTION_H
#define SHOAL_AGENT_HEALTH_RANK_INSPECTION_H

#include "agent/comm/rendezvous_health.h"

/* self: this rank. Shows the stacks of the rank that hangs. If that is to end, kills it, but only
 * if this process's launcher has started it as that rank. */
void rank_inspection_carry_out(const struct rendezvous_inspection *inspection, int self);
#endif
