/* A file that is there whole or not at all, compressed on the way if that is asked for. Knows no
 * formats but gzip's. */
#ifndef SHOAL_AGENT_TELEMETRY_TRACE_FILE_H
#define SHOAL_AGENT_TELEMETRY_TRACE_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct trace_file;

/* Makes the path's folders if need be. */
int trace_file_create(const char *path, bool gzip, struct trace_file **ret_file, struct error *err);
/* After a failure the file can only be abandoned. */
int trace_file_write(struct trace_file *file, const void *data, size_t bytes, struct error *err);
/* Gives the file its name, in place of one that has it. Frees `file` either way. */
int trace_file_finish(struct trace_file *file, struct error *err);
void trace_file_abandon(struct trace_file *file); /* NULL-safe */
#endif
