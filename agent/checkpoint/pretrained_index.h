/* model.safetensors.index.json: which file of a sharded model has which tensor. Private to
 * agent/checkpoint/pretrained*.c and what exports. */
#ifndef SHOAL_AGENT_CHECKPOINT_PRETRAINED_INDEX_H
#define SHOAL_AGENT_CHECKPOINT_PRETRAINED_INDEX_H

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

#define PRETRAINED_FILE  "model.safetensors"
#define PRETRAINED_INDEX "model.safetensors.index.json"
enum {
    PRETRAINED_INDEX_MAX_BYTES = 64 << 20,
    PRETRAINED_MAX_FILES = 4096,
};

struct pretrained_entry {
    const char *tensor;
    const char *file; /* a name within the directory */
};

struct pretrained_index {
    struct pretrained_entry *entries; /* ordered by tensor */
    int entry_count;
    const char **files; /* each once */
    int file_count;
};

/* path: for messages. Memory from `arena`. Errors: ERR_INPUT, for a file name that leads out of the
 * directory too. */
int pretrained_index_parse(struct arena *arena, const char *path, const char *text, size_t bytes,
                           struct pretrained_index *ret_index, struct error *err);
/* total_bytes: of all tensors' data. */
void pretrained_index_print(const struct pretrained_entry *entries, int count, int64_t total_bytes,
                            struct str *out);
#endif
