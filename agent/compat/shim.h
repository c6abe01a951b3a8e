/* Command lines of torchrun and accelerate, as manifests have them. Under the names torchrun,
 * hyperpodrun and python (argv[0] or the first argument) the agent takes "[FLAGS] SCRIPT
 * [ARGUMENTS]"; as accelerate, "launch [FLAGS] SCRIPT [ARGUMENTS]". The flags become keys. The
 * script's name selects a preset; the script is not run. Of files, only the existence of
 * accelerate's own configuration is checked.
 *
 *   torchrun --nnodes=2 --nproc_per_node 8 train.py --lr 1e-4
 *   shoal-agent --runtime.nnodes=2 --runtime.nproc_per_node=8 --preset=hyperpod
 *     --runtime.script=train.py --lr 1e-4
 *
 *   accelerate launch --config_file fsdp.yaml train_bert.py --model_name_or_path bert
 *   shoal-agent --preset=accelerate --config_file=fsdp.yaml --preset=trainer
 *     --runtime.script=train_bert.py
 * --model_name_or_path bert */
#ifndef SHOAL_AGENT_COMPAT_SHIM_H
#define SHOAL_AGENT_COMPAT_SHIM_H

#include "base/environment.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdbool.h>

/* Rewrites such a command line. argv: all of it, NULL-terminated. *ret_is_shim: whether it is one;
 * then *ret_argv is the agent's own command line (from `arena`, NULL-terminated), else argv. Flags
 * that are absent are read from PET_<NAME>. Errors: ERR_CONFIG names the mistake and the known
 * scripts. */
int shim_rewrite(char *const *argv, getenv_fn *lookup, void *ctx, struct arena *arena,
                 bool *ret_is_shim, char *const **ret_argv, struct error *err);

/* Adds torchrun's variables, a blank before each: PET_<FLAG>. */
void shim_variables(struct str *out);
#endif
