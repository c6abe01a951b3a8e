/* Whether all ranks were given one shared_config. Pods have arguments of their own, and a run whose
 * ranks disagree about the learning rate trains nothing that anybody asked for. */
#ifndef SHOAL_AGENT_CONFIG_CONSISTENCY_H
#define SHOAL_AGENT_CONFIG_CONSISTENCY_H

#include "agent/comm/store.h"
#include "agent/config/config.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compares the keys that decide what the ranks compute and save together with rank 0's. Of a place
 * (model.name_or_path, data.dataset, ...) only whether there is one: pods may mount it elsewhere.
 * All `size` ranks call it, once per store, and wait for each other, each at most timeout_ms for
 * any other. Errors, the same on all: ERR_CONFIG naming the first key that differs, both values and
 * the rank; and the store's own. */
int config_consistency_check(const struct config *config, struct store *store, int rank, int size,
                             int timeout_ms, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
