/* The language model that a configuration asks for. Pure. */
#ifndef SHOAL_AGENT_CONFIG_MODEL_H
#define SHOAL_AGENT_CONFIG_MODEL_H

#include "agent/config.h"
#include "agent/models/architecture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes from the first that there is: model.architecture, `published` (a config.json's; NULL: there
 * is none), the defaults of model.type; then what model.config_overrides, model.rope_scaling and
 * model.dropout say instead. Not for mnist_cnn. Errors: ERR_CONFIG if the sizes make no model, or
 * if model.type is another kind than the sizes are of. */
int config_architecture(const struct agent_config *config, const struct architecture *published,
                        struct architecture *ret_architecture, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
