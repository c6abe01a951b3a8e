/* Finds the files of a model or a tokenizer: by a path, or by a Hugging Face id in one of the hub's
 * caches on this machine. Downloads nothing. Reads names of files and the cache's refs. */
#ifndef SHOAL_AGENT_CONFIG_MODEL_PATH_H
#define SHOAL_AGENT_CONFIG_MODEL_PATH_H

#include "agent/config/config.h"
#include "base/error.h"
#include "base/mem.h"

/* *ret_path: `name` if that path exists; else, for "ORG/NAME" or "NAME", the directory
 * models--ORG--NAME/snapshots/REF of the first cache that has it. REF is the content of refs/main.
 * The caches: $HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $TRANSFORMERS_CACHE,
 * $XDG_CACHE_HOME/huggingface/hub, $HOME/.cache/huggingface/hub; "~/" in front of one is $HOME's.
 * Errors: ERR_NOT_FOUND lists the places that were searched. Where a directory has no config.json,
 * as Trainer's output_dir, it names the newest checkpoint-STEP in it that has one. */
int resolve_model_path(const char *name, getenv_fn *lookup, void *ctx, struct arena *arena,
                       const char **ret_path, struct error *err);

/* Replaces ids by paths: model.name_or_path, model.init_weights, data.tokenizer and, unless
 * data.root has it, data.dataset (datasets--ORG--NAME in the same caches). The paths of the model
 * and the tokenizer become absolute, since checkpoints keep them for a later export. A tokenizer
 * that only a preset names may be absent, as some data needs none: it becomes "", and
 * config->no_tokenizer says why. A data.dataset_config_name beside a file is a warning. Errors: as
 * above, with the key's name. */
int resolve_config_paths(struct config *config, getenv_fn *lookup, void *ctx, struct arena *arena,
                         struct error *err);
#endif
