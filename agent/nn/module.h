/* The module tree of a model, as torch.nn.Module's: named modules with parameters. The model
 * declares it once. The wrap policy reads which modules become units, and the shard engine binds
 * values and gradients to it. Checkpoints read names and shapes, as does the printed tree. It holds
 * no values. */
#ifndef SHOAL_AGENT_NN_MODULE_H
#define SHOAL_AGENT_NN_MODULE_H

#include "base/mem.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct fp8_scale; /* kernels/fp8.h */

enum { MODULE_MAX_DIMS = 4, MODULE_MAX_PARAMS = 4, MODULE_MAX_CHILDREN = 512 };

/* Where initial values come from. */
struct param_init {
    enum { INIT_UNIFORM, INIT_NORMAL } kind;
    float a, b; /* uniform: from a to b (a = b: that constant); normal: mean, standard deviation */
};

/* A parameter. Shape, name and initial distribution come from the model. The shard engine binds
 * value and gradient while the parameter's unit is gathered; they are NULL otherwise. */
struct param {
    const char *name; /* full name, as in PyTorch's state_dict: "conv1.weight" */
    int dims;
    int64_t shape[MODULE_MAX_DIMS];
    int64_t count; /* elements */
    struct param_init init;
    int64_t zero_first, zero_count; /* elements that start as 0 whatever `init` says */
    uint64_t index; /* place in the model's declaration order; names its random numbers */
    bool fp8;       /* a weight that is multiplied in fp8 (nn_fp8.h) */
    /* Of so many weights that multiply one x side by side it is this one (nn_linears_join); 0: it
     * is alone. */
    int beside_count, beside_place;

    const void *value; /* device; the gathered tensor, of the dtype the model computes in */
    const struct fp8_scale *scale; /* device; NULL, or value is in e4m3, and this is its scale */
    float *gradient;               /* device, fp32; NULL outside backward */
    bool gradient_written;         /* false: the next gradient op writes, true: it adds */
};

struct module {
    const char *name;        /* in its parent: "fc1"; "" for the root */
    const char *path;        /* from the root: "layers.0.fc1"; "" for the root */
    const char *class_name;  /* "Linear", "Net" */
    const char *description; /* what PyTorch prints for a leaf: "Linear(in_features=9216, ...)";
                                else NULL */
    bool is_list;            /* a ModuleList: never a unit itself */
    bool is_block;           /* a transformer block: what TRANSFORMER_BASED_WRAP wraps by default */
    bool is_shared;          /* used at several places of a pass (a tied embedding), so never a unit
                                of its own: it stays in its parent's */
    bool is_head;            /* a task's head: weights for another task lack it, and it then keeps
                                its initial values */
    bool is_linear;          /* a matrix product with a weight of its own */
    float dropout;           /* a Dropout: its probability; else 0 */
    struct param *params[MODULE_MAX_PARAMS];
    int param_count;
    struct module **children; /* child_count entries of MODULE_MAX_CHILDREN at most */
    int child_count;

    int unit; /* index of the unit whose root this module is, -1 if it is none; set by the wrap
                 policy */
};

/* All memory from `arena`, texts copied. description: NULL for a module with
 * children. unit is -1. */
struct module *module_new(struct arena *arena, const char *name, const char *class_name,
                          const char *description);
/* Appends `child` to the children of `parent`, sets its path and returns it. */
struct module *module_add(struct arena *arena, struct module *parent, struct module *child);
/* name: within the module ("weight"). The full name begins with the module's path, so the module is
 * in its tree already. index: the caller counts, 0, 1, ... in declaration order. */
struct param *module_add_param(struct arena *arena, struct module *m, const char *name,
                               uint64_t index, int dims, const int64_t *shape,
                               struct param_init init);

/* All parameters in the order of the tree. The array is from `arena`. */
struct param **module_list_params(struct arena *arena, struct module *root, int *ret_count);

int64_t module_param_count(const struct module *m); /* elements, children included */

/* Its path, or the class name of the root, which has none: for people. */
const char *module_label(const struct module *m);

/* The tree as Python's repr() of the module gives it, no newline at the end; entries of a
 * ModuleList that print alike are one, "(0-3): 4 x Block(...)". As PyTorch shows what wraps them:
 * each unit is "FullyShardedDataParallel(\n  (_fsdp_wrapped_module): ...\n)", or the root
 * "DistributedDataParallel(\n  (module): ...\n)". */
enum module_wrapped { MODULE_BARE, MODULE_UNITS, MODULE_COPIED };
void module_print(const struct module *root, enum module_wrapped wrapped, struct str *out);
#endif
