/* The layout of parameters: each one's unit, its offset in the unit's flat buffer, and the slices
 * that it lies in. Pure arithmetic over the module tree, with the same result on every rank. */
#ifndef SHOAL_AGENT_SHARD_SHARD_LAYOUT_H
#define SHOAL_AGENT_SHARD_SHARD_LAYOUT_H

#include "agent/nn/module.h"

#include <stdint.h>

/* Elements: parameters and slices start on 16 bytes, also in bf16; and in fp8, where the tree has
 * weights that are multiplied in it. */
enum { LAYOUT_ALIGN = 8, LAYOUT_ALIGN_FP8 = 16 };

struct layout_param {
    struct param *param;
    int64_t offset; /* first element in the flat buffer; a multiple of the layout's align */
};

struct layout_unit {
    struct module *module;
    struct layout_param *params; /* param_count entries, in the order of the module tree */
    int param_count;
    int64_t count;       /* elements of the parameters */
    int64_t flat_count;  /* with padding behind each parameter and at the end; 0: no parameters */
    int64_t shard_count; /* flat_count / group_size; a multiple of the layout's align */
};

struct shard_layout {
    struct layout_unit *units; /* by module.unit */
    int unit_count;
    int group_size;
    int align; /* LAYOUT_ALIGN or LAYOUT_ALIGN_FP8 */
};

/* The range of a parameter's elements in one rank's slice of its unit. */
struct param_range {
    const struct param *param;
    int unit;
    int64_t shard_offset; /* first element within the slice */
    int64_t param_offset; /* the same element within the parameter, row-major */
    int64_t count;        /* elements; >= 1 */
};

/* Elements of the unit's weights that are multiplied in fp8. */
int64_t layout_fp8_count(const struct layout_unit *unit);

/* A parameter belongs to the innermost unit around its module. root->unit is 0; the other units are
 * numbered in the order of the tree (wrap.h). Flat buffers can also be cut into `parts` equal parts
 * as aligned as slices; a multiple of group_size, and group_size itself if nobody needs that.
 * Allocates in `arena`. */
void shard_layout_make(struct arena *arena, struct module *root, int group_size, int parts,
                       struct shard_layout *ret_layout);

/* The ranges in the slices of `group_rank`, in the parameters' declaration order. In `arena`. */
struct param_range *shard_layout_ranges(struct arena *arena, const struct shard_layout *layout,
                                        int group_rank, int *ret_count);
#endif
