/* From the configuration to a model cut into units, and its tokenizer. Touches no data, device or
 * network, but for the directory of a model that is named. */
#ifndef SHOAL_AGENT_TRAINER_BUILD_H
#define SHOAL_AGENT_TRAINER_BUILD_H

#include "agent/config/config.h"
#include "agent/models/architecture.h"
#include "agent/models/model.h"
#include "agent/shard/shard.h"
#include "base/error.h"

/* The language model that model.* means, without its units. Errors: ERR_CONFIG. */
int build_architecture(const struct agent_config *config, struct arena *arena,
                       struct architecture *ret_architecture, struct error *err);

/* Adds to the warnings what has no effect on that model. A model that cannot be read is left to
 * build_model() to report. */
void build_warn(struct config *config, struct arena *arena);

/* The configured model with its wrap policy applied. Memory from `arena`. Errors: ERR_CONFIG. */
int build_model(const struct agent_config *config, struct arena *arena, struct model **ret_model,
                struct error *err);

/* The tokenizer that the configuration names, or the model's own; NULL: neither is there, which
 * data of token ids does not need. Errors: ERR_NOT_FOUND, ERR_INPUT, a vocabulary that the model
 * does not have. */
struct tokenizer;
int build_tokenizer(const struct agent_config *config, const struct model *model,
                    struct tokenizer **ret_tokenizer, struct error *err);

/* The strategy that is configured or, where that is auto, the guide's for a model of its size. */
enum shard_strategy build_strategy(const struct agent_config *config, const struct model *model);

/* What --dry_run prints: the resolved configuration as YAML, the units and the number of parameters
 * of each. */
void build_describe(const struct config *config, const struct model *model, struct str *out);
#endif
