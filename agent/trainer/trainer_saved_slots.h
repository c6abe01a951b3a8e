/* The reduction slots of the checkpoint that a run will go on from. */
#ifndef SHOAL_AGENT_TRAINER_TRAINER_SAVED_SLOTS_H
#define SHOAL_AGENT_TRAINER_TRAINER_SAVED_SLOTS_H

#include "agent/config/config.h"

#include <stdbool.h>
#include <stdint.h>

/* run: the run's id ("": not known); restarted: it began before this process. What is wrong with a
 * checkpoint is found later, by who loads it. 0: it has none, or there is no checkpoint that can be
 * read. */
int64_t trainer_saved_slots(const struct agent_config *config, const char *run, bool restarted);
#endif
