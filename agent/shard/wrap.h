/* Wrap policies: choose the modules that become units, as PyTorch's auto_wrap_policy. Pure: they
 * read the module tree and set module.unit, numbered from the root (always 0) in the order of the
 * tree. */
#ifndef SHOAL_AGENT_SHARD_WRAP_H
#define SHOAL_AGENT_SHARD_WRAP_H

#include "agent/nn/module.h"
#include "base/error.h"

#include <stdint.h>

/* One unit: the root. */
void wrap_none(struct module *root);

/* torch.distributed.fsdp.wrap.size_based_auto_wrap_policy: from the leaves up, a module becomes a
 * unit if at least min_num_params elements below it have no unit yet. A ModuleList never becomes
 * one, nor does a MultiheadAttention or a module below it. */
void wrap_by_size(struct module *root, int64_t min_num_params);

/* Units of fewer elements are not worth a collective of their own. */
enum { WRAP_SMALL_UNIT = 30000000 };

/* Modules whose class is one of `classes` become units; class_count 0: the model's own blocks, and
 * of the rest what is no small unit: an embedding and a head that are not tied.
 * Errors: ERR_CONFIG names the model's classes, if one of `classes` is not among them or only the
 * root is chosen. */
int wrap_by_class(struct module *root, const char *const *classes, int class_count,
                  struct error *err);
#endif
