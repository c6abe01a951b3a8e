/* Command lines of torchrun, as manifests have them: this program under the names torchrun,
 * hyperpodrun or python, in argv[0] or as the first argument, takes "[FLAGS] SCRIPT [ARGUMENTS]",
 * and as accelerate "launch [FLAGS] SCRIPT [ARGUMENTS]". The script's name stands for a preset and
 * is not run; the flags become keys. Looks at no file but whether accelerate's own is there.
 *
 *   torchrun --nnodes=2 --nproc_per_node 8 train.py --lr 1e-4
 *   shoal-agent --runtime.nnodes=2 --runtime.nproc_per_node=8 --preset=hyperpod
 *     --runtime.script=train.py --lr 1e-4
 *
 *   accelerate launch --config_file fsdp.yaml train_bert.py --model_name_or_path bert
 *   shoal-agent --preset=accelerate --config_file=fsdp.yaml --preset=trainer
 *     --runtime.script=train_bert.py --model_name_or_path bert
 */
#ifndef SHOAL_AGENT_COMPAT_SHIM_H
#define SHOAL_AGENT_COMPAT_SHIM_H

#include "base/error.h"
#include "base/mem.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The environment, as getenv. */
typedef const char *(*shim_getenv)(void *ctx, const char *name);

/* argv: the whole command line, NULL behind its end. *ret_is_shim: it is such a one; then *ret_argv
 * is the agent's own command line in its stead (from `arena`, NULL behind its end), else it is
 * argv. Flags that are not given are read from PET_<NAME>. Errors: ERR_CONFIG names what is wrong,
 * and which scripts are known. */
int shim_rewrite(char *const *argv, shim_getenv lookup, void *ctx, struct arena *arena,
                 bool *ret_is_shim, char *const **ret_argv, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
