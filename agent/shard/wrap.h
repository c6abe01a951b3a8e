/* Which modules become units: PyTorch's auto-wrap policies. Pure: they read the module tree and set
 * module.unit, numbered from the root (always 0) in the order of the tree. Knows neither what a
 * unit costs nor what is done with it. */
#ifndef SHOAL_AGENT_WRAP_H
#define SHOAL_AGENT_WRAP_H

#include "agent/nn/module.h"
#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One unit: the root. */
void wrap_none(struct module *root);

/* torch.distributed.fsdp.wrap.size_based_auto_wrap_policy: from the leaves up, a module becomes a
 * unit if at least min_num_params elements below it are in no unit yet; a ModuleList never does,
 * and nothing in or below a MultiheadAttention does. */
void wrap_by_size(struct module *root, int64_t min_num_params);

/* The modules whose class is one of `classes`; class_count 0: the model's own blocks.
 * Errors: ERR_CONFIG, naming the classes that the model has, if one of `classes` is none of them,
 * or no module but the root is chosen. */
int wrap_by_class(struct module *root, const char *const *classes, int class_count,
                  struct error *err);

#ifdef __cplusplus
}
#endif
#endif
