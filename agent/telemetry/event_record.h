/* The bytes of TensorBoard's event files: protobuf messages (Event, Summary), each in a record with
 * its length and masked CRC-32Cs (tensorflow/core/lib/io/record_writer). Pure.
 *
 *   u64 length | u32 crc of those 8 bytes | data | u32 crc of data       all little-endian */
#ifndef SHOAL_AGENT_TELEMETRY_EVENT_RECORD_H
#define SHOAL_AGENT_TELEMETRY_EVENT_RECORD_H

#include "base/str.h"

#include <stdint.h>

enum { EVENT_MAX_BYTES = 16 * 1024 }; /* of a record */

struct event_scalar {
    const char *tag; /* "train/loss" */
    float value;
};

/* The first record of a file: its version. wall_s: since 1970. */
void event_version_record(double wall_s, struct str *out);
/* One record with all the scalars of a step. */
void event_scalars_record(double wall_s, int64_t step, const struct event_scalar *scalars,
                          int count, struct str *out);
#endif
