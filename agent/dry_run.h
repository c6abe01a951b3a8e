/* --dry_run: what a run would be, before anything is trained. Reads the model's and the tokenizer's
 * files and looks for the data's; asks the driver for the GPU's name, but opens no device and no
 * network. */
#ifndef SHOAL_AGENT_DRY_RUN_H
#define SHOAL_AGENT_DRY_RUN_H

#include "agent/config/config.h"
#include "base/error.h"
#include "base/str.h"

/* Adds the resolved configuration as YAML, the units, the memory of a rank by its plan, and what
 * the run would read. Where the model of time knows the GPU, adds the time of a step, too. What the
 * run would miss or ask too much of the GPU is logged. world_size, local_size: ranks in all and of
 * this node; min_ranks: the fewest of an elastic run, else 0. Errors: a model that cannot be built,
 * a group that does not divide the ranks, a tokenizer that does not fit the model. */
int dry_run(const struct config *config, int world_size, int local_size, int min_ranks,
            struct str *out, struct error *err);
#endif
