/* Protobuf's wire format, as far as writing needs it: what TensorBoard's and Weights & Biases'
 * files are made of (protobuf.dev/programming-guides/encoding). Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_PROTOBUF_H
#define SHOAL_AGENT_TELEMETRY_PROTOBUF_H

#include "base/str.h"

#include <stdint.h>

/* One field of a message each. */
void protobuf_int(struct str *out, int field, int64_t value);
void protobuf_double(struct str *out, int field, double value);
void protobuf_float(struct str *out, int field, float value);
void protobuf_bytes(struct str *out, int field, const void *bytes, size_t count);
void protobuf_text(struct str *out, int field, const char *text); /* "": no field */
void protobuf_message(struct str *out, int field, const struct str *message);

/* The lowest `bytes` bytes of the value: for the frames around messages. */
void protobuf_little_endian(struct str *out, uint64_t value, int bytes);
#endif
