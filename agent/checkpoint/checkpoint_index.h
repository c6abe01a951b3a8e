/* Where each tensor of a checkpoint lies: every box of every file, by name. Read off the files'
 * headers; reads no data. */
#ifndef SHOAL_AGENT_CHECKPOINT_CHECKPOINT_INDEX_H
#define SHOAL_AGENT_CHECKPOINT_CHECKPOINT_INDEX_H

#include "agent/checkpoint/checkpoint_files.h"
#include "agent/checkpoint/safetensors.h"

/* A box that a file holds. */
struct index_entry {
    const struct manifest_file *file;
    struct safetensors_tensor tensor; /* shape: the box's extent */
    int64_t offset[BOX_MAX_DIMS];     /* of the box in the whole tensor */
    int64_t first;                    /* the same as a place, row-major; set by index_find */
};

struct checkpoint_index {
    struct index_entry *entries; /* by name */
    int count;
};

/* Reads the headers of all files of a part of the checkpoint at `path`. Memory from `arena`; the
 * manifest must outlive the index. Errors: ERR_INPUT naming the file that is damaged. */
int index_build(struct arena *arena, const char *path, const struct manifest *manifest,
                enum checkpoint_part part, struct checkpoint_index *ret_index, struct error *err);

/* The boxes of the range's tensor, by place. Errors: ERR_CONFIG if there is no such tensor,
 * ERR_INPUT if its dtype is none of weights, ERR_SHAPE if its whole shape differs from the range's;
 * without file names, which the caller adds. */
int index_find(const struct checkpoint_index *index, const struct tensor_range *range,
               struct index_entry **ret_entries, int *ret_count, struct error *err);

/* Opens a file of the checkpoint at `path`; its header is then what was saved. */
int index_open_file(const char *path, const struct manifest_file *listed,
                    struct safetensors **ret_file, struct error *err);
/* Whether the whole file is what was saved. Errors: ERR_INPUT with both checksums. */
int index_verify_file(const char *path, const struct manifest_file *listed,
                      const struct safetensors *file, struct error *err);
#endif
