/* Names and notes in a checkpoint's directory, for the parts of checkpoint_*.c that write and read
 * them. */
#ifndef SHOAL_AGENT_CHECKPOINT_CHECKPOINT_FILES_H
#define SHOAL_AGENT_CHECKPOINT_CHECKPOINT_FILES_H

#include "agent/checkpoint/checkpoint.h"
#include "agent/checkpoint/checkpoint_manifest.h"

#define CHECKPOINT_MANIFEST "COMPLETE"
#define CHECKPOINT_STATE    "state.json"

/* The notes in a file's "__metadata__", as torch.distributed.checkpoint writes them: the second is
 * JSON text {tensor: {"saved_offsets": [first index in each dimension]}}. */
#define CHECKPOINT_METADATA_VERSION "DCP_VERSION"
#define CHECKPOINT_METADATA_OFFSETS "DCP_SHARDING_INFO"
#define CHECKPOINT_SAVED_OFFSETS    "saved_offsets"

const char *checkpoint_part_name(enum checkpoint_part part); /* "model", "optimizer" */

/* Whether `path` is a directory that holds nothing but what saving puts there, complete or not.
 * Only such a directory may ever be removed. */
bool checkpoint_is_own(const char *path);

/* Locks a directory that is being written, so that no other run's save takes it for left over.
 * Returns a descriptor whose end, or the process's, is that of the lock; -1 with errno if it is
 * locked already (EWOULDBLOCK) or the file system has no locks. */
int checkpoint_lock_temp(const char *path);

/* Removes every directory in `dir` with a temporary name (durable_is_temp) that checkpoint_is_own
 * and that nobody has locked. */
int checkpoint_remove_temps(const struct file_ops *files, const char *dir, struct error *err);

/* Makes `path` free for a save, or replaceable by it. A complete checkpoint of ours stays until it
 * is replaced; one that lacks its manifest, and so can never be loaded, is renamed to
 * "<path>.incomplete", with a warning. Errors: ERR_EXISTS if anything else is there, or at that
 * name. */
int checkpoint_clear_path(const struct file_ops *files, const char *path, struct error *err);

/* Errors: ERR_NOT_FOUND names a file of PyTorch's, Trainer's or accelerate's in `dir` or in a
 * directory there. We do not read their checkpoints; the message says how weights come from
 * them. */
int checkpoint_check_foreign(const char *dir, struct error *err);

/* The manifest of the checkpoint at `path`. Errors: ERR_NOT_FOUND if there is none: it is not
 * complete, or somebody else's; ERR_INPUT if it is damaged. */
int checkpoint_read_manifest(struct arena *arena, const char *path, struct manifest *ret_manifest,
                             struct error *err);
#endif
