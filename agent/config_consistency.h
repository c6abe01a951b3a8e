/* Checks that all ranks have the same configuration. Each pod has arguments of its own: without the
 * check, ranks with different learning rates would train together unnoticed. */
#ifndef SHOAL_AGENT_CONFIG_CONSISTENCY_H
#define SHOAL_AGENT_CONFIG_CONSISTENCY_H

#include "agent/comm/store.h"
#include "agent/config/config.h"
#include "base/error.h"

/* Compares the keys that decide what the ranks compute and save with rank 0's. Of a path
 * (model.name_or_path, data.dataset, ...) it only compares whether it is set: pods may mount it
 * elsewhere. All `size` ranks call it, once per store. Each waits at most timeout_ms for any other.
 * Errors, the same on all ranks: ERR_CONFIG names the first key that differs, both values and the
 * rank; and the store's. */
int config_consistency_check(const struct config *config, struct store *store, int rank, int size,
                             int timeout_ms, struct error *err);
#endif
