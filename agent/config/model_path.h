/* Where the files of a model or a tokenizer lie: a path, or a Hugging Face id that one of the hub's
 * caches on this machine has. Nothing is downloaded. Reads names of files and the cache's refs. */
#ifndef SHOAL_AGENT_MODEL_PATH_H
#define SHOAL_AGENT_MODEL_PATH_H

#include "agent/config/config.h"
#include "base/error.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `name` if it is there; else, for "ORG/NAME" or "NAME", the directory
 * models--ORG--NAME/snapshots/REF of the first of these caches that has it, REF being the content
 * of refs/main: $HF_HUB_CACHE, $HF_HOME/hub, $TRANSFORMERS_CACHE, $XDG_CACHE_HOME/huggingface/hub,
 * $HOME/.cache/huggingface/hub. Errors: ERR_NOT_FOUND lists where it was looked for, or
 * names the newest DIR/checkpoint-STEP with a config.json where DIR has none (Trainer's
 * output_dir).
 */
int resolve_model_path(const char *name, config_getenv lookup, void *ctx, struct arena *arena,
                       const char **ret_path, struct error *err);

/* Puts paths in the place of the ids of model.name_or_path, model.init_weights, data.tokenizer and,
 * where data.root has it not, data.dataset (datasets--ORG--NAME in the same caches). Those of the
 * model and of the tokenizer become absolute: checkpoints keep them for who exports from elsewhere.
 * A tokenizer that only a preset names and that is not here becomes "", and config->no_tokenizer
 * says why: data that needs none can do without. A data.dataset_config_name that was given with a
 * file adds to config->warning. Errors: as above, with the key's name. */
int resolve_config_paths(struct config *config, config_getenv lookup, void *ctx,
                         struct arena *arena, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
