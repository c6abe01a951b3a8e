/* Names and notes in a checkpoint's directory, for the parts of checkpoint_*.c that write and read
 * them. */
#ifndef SHOAL_AGENT_CHECKPOINT_FILES_H
#define SHOAL_AGENT_CHECKPOINT_FILES_H

#include "agent/checkpoint.h"
#include "agent/checkpoint_manifest.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CHECKPOINT_MANIFEST "COMPLETE"
#define CHECKPOINT_STATE    "state.json"
#define CHECKPOINT_TEMP     ".tmp-" /* in the name of a directory that is being written or removed */

/* The notes in a file's "__metadata__", as torch.distributed.checkpoint writes them: the second is
 * JSON text {tensor: {"saved_offsets": [first index in each dimension]}}. */
#define CHECKPOINT_NOTE_VERSION  "DCP_VERSION"
#define CHECKPOINT_NOTE_OFFSETS  "DCP_SHARDING_INFO"
#define CHECKPOINT_SAVED_OFFSETS "saved_offsets"

const char *checkpoint_part_name(enum checkpoint_part part); /* "model", "optimizer" */

/* Is this the name of a directory that counts for nothing? */
bool checkpoint_is_temp(const char *name);

/* Removes every directory in `dir` that checkpoint_is_temp. */
int checkpoint_remove_temps(const struct file_ops *files, const char *dir, struct error *err);

/* A name for a directory that no other has: "<name>.tmp-<16 random hex digits>". Caller frees. */
char *checkpoint_temp_name(const char *name);

/* The manifest of the checkpoint at `path`. Errors: ERR_NOT_FOUND if there is none, which means
 * that it is not complete; ERR_INPUT if it is damaged; ERR_UNSUPPORTED if it is somebody else's. */
int checkpoint_read_manifest(struct arena *arena, const char *path, struct manifest *ret_manifest,
                             struct error *err);

#ifdef __cplusplus
}
#endif
#endif
