/* What model a Hugging Face directory holds: its config.json, and what only its weights show. */
#ifndef SHOAL_AGENT_CHECKPOINT_PRETRAINED_CONFIG_H
#define SHOAL_AGENT_CHECKPOINT_PRETRAINED_CONFIG_H

#include "agent/models/architecture.h"
#include "base/error.h"
#include "base/lines.h"
#include "base/mem.h"

/* Reads dir/config.json. transformers 5 calls every T5 tied, whatever its head: as there, one whose
 * files have a head with values of its own is not (modeling_utils.py, tie_weights). warnings: as
 * config_json_read's. Memory from `arena`. Errors: ERR_CONFIG, also for what is no directory;
 * ERR_NOT_FOUND without a config.json; ERR_IO. */
int pretrained_read_config(const char *dir, struct arena *arena,
                           struct architecture *ret_architecture, struct lines *warnings,
                           struct error *err);
#endif
