/* The bytes of the file that `wandb sync` uploads: protobuf messages (Record of wandb's
 * wandb_internal.proto), framed as LevelDB frames its log, but with zlib's CRC-32:
 *
 *   ":W&B" | u16 0xBEE1 | u8 0                               the head of the file;
 *   u32 crc of type and data | u16 length | u8 type | data   a frame, all little-endian
 *
 * A frame lies within a block of 32768 bytes of the file; a record that does not is split (types
 * FULL, FIRST, MIDDLE, LAST). Bytes at a block's end that are too few for a frame are zero. Pure:
 * adds bytes to `out`, and remembers in the log where in the file they will lie. */
#ifndef SHOAL_AGENT_TELEMETRY_WANDB_RECORD_H
#define SHOAL_AGENT_TELEMETRY_WANDB_RECORD_H

#include "base/str.h"

#include <stdint.h>

enum { WANDB_RECORD_MAX_BYTES = 256 * 1024 };

struct wandb_log {
    int64_t offset;  /* bytes of the file so far */
    int64_t records; /* likewise */
};

/* A value under its name, as JSON. */
struct wandb_item {
    const char *key;  /* "train/loss" */
    const char *json; /* "0.5", "\"text\"" */
};

/* Texts: "" if there is none. */
struct wandb_run {
    const char *id, *entity, *project, *name, *group, *job_type, *notes, *host;
    const char *tags; /* separated by commas */
    int64_t start_wall_us;
    const struct wandb_item *config;
    int config_count;
};

/* What a file begins with: its head, and the run. */
void wandb_begin(struct wandb_log *log, const struct wandb_run *run, struct str *out);
/* The row of a step, and the same as the last known values. */
void wandb_row(struct wandb_log *log, int64_t step, const struct wandb_item *items, int count,
               struct str *out);
/* What it ends with. */
void wandb_end(struct wandb_log *log, int exit_code, double runtime_s, struct str *out);
#endif
