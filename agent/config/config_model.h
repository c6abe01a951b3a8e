/* The language model that a configuration asks for. Pure. */
#ifndef SHOAL_AGENT_CONFIG_MODEL_H
#define SHOAL_AGENT_CONFIG_MODEL_H

#include "agent/config/config.h"
#include "agent/models/architecture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes from the first that there is: model.architecture, `published` (a config.json's; NULL: there
 * is none), the defaults of model.type; then what model.config_overrides, model.rope_scaling and
 * model.dropout say instead. Not for mnist_cnn. Errors: ERR_CONFIG if the sizes make no model, if
 * model.type is another kind than the sizes are of, or if one is given that the kind has not. */
int config_architecture(const struct agent_config *config, const struct architecture *published,
                        struct architecture *ret_architecture, struct error *err);

/* The kind that model.type names; Llama for those that name none. */
enum architecture_kind config_model_kind(int64_t type);
/* And back. */
enum config_model config_model_of(enum architecture_kind kind);

/* Whether a model of `type` (enum config_model; AUTO: any) can learn what model.head says. Errors:
 * ERR_CONFIG names the heads it can have. */
int config_check_head(const struct agent_config *config, int64_t type, struct error *err);

/* Whether the kind has what the field at that offset of struct agent_config overrides. */
bool config_model_has(enum architecture_kind kind, size_t offset);

#ifdef __cplusplus
}
#endif
#endif
