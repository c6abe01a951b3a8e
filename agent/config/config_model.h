/* The language model that a configuration asks for. Pure. */
#ifndef SHOAL_AGENT_CONFIG_CONFIG_MODEL_H
#define SHOAL_AGENT_CONFIG_CONFIG_MODEL_H

#include "agent/config/config.h"
#include "agent/models/families.h"

/* Sizes from the first that there is: model.architecture, `published` (a config.json's; NULL: there
 * is none), the defaults of model.type; then what model.config_overrides, model.rope_scaling and
 * model.dropout say instead. Not for mnist_cnn. Errors: ERR_CONFIG if the sizes make no model, if
 * their family is not model.type's, or if the family lacks a size that is given. */
int config_architecture(const struct agent_config *config, const struct architecture *published,
                        struct architecture *ret_architecture, struct error *err);

/* The family that model.type names; NULL: none (auto). */
const struct model_family *config_family(const struct agent_config *config);
void config_set_family(struct agent_config *config, const struct model_family *family);

/* Whether a model of the family (NULL: any) can learn what model.head says. Errors: ERR_CONFIG
 * names the heads it can have. */
int config_check_head(const struct agent_config *config, const struct model_family *family,
                      struct error *err);

/* Adds to the warnings what has no effect on that model, where only its config.json says so. */
void config_warn_architecture(struct config *config, const struct architecture *architecture,
                              struct arena *arena);

/* Whether the family has what the key at that index overrides. */
bool config_model_has(const struct model_family *family, int index);
#endif
