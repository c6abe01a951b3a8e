/* The file COMPLETE of a checkpoint: its list of files, written last. It is the proof that the
 * checkpoint is whole, so it also proves itself by a checksum over its own text. Text in, structs
 * out; no files.
 *
 *   shoal-checkpoint 1
 *   step 120
 *   file state.json 312 9f0c5d1b2a3e4f50 9f0c5d1b2a3e4f50
 *   file model/shard-00001-model-00001-of-00003.safetensors 4799152 00c1... 5d2e...
 *   end 1b2c3d4e5f607182
 *
 * A file's line: path, bytes, xxh64 of all of it, xxh64 of its head (a safetensors header; else all
 * of it). The last line: xxh64 of everything before it. */
#ifndef SHOAL_AGENT_CHECKPOINT_CHECKPOINT_MANIFEST_H
#define SHOAL_AGENT_CHECKPOINT_CHECKPOINT_MANIFEST_H

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

enum { MANIFEST_MAX_BYTES = 256 << 20, MANIFEST_MAX_PATH_BYTES = 128 };

struct manifest_file {
    const char *path; /* below the checkpoint's directory; no "..", no spaces */
    int64_t bytes;
    uint64_t xxh64, head_xxh64;
};

struct manifest {
    int64_t step; /* optimizer steps: which of several checkpoints is the newest */
    struct manifest_file *files;
    int file_count;
};

void manifest_print(const struct manifest *manifest, struct str *out);

/* name: for errors. Memory from `arena`. Errors: ERR_INPUT if anything is not as printed. */
int manifest_parse(struct arena *arena, const char *name, const char *text, size_t bytes,
                   struct manifest *ret_manifest, struct error *err);
#endif
