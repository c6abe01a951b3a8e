/* A file of rows that outlives the process: opened for appending, written whole rows at a time.
 * Knows no formats. */
#ifndef SHOAL_AGENT_TELEMETRY_APPEND_FILE_H
#define SHOAL_AGENT_TELEMETRY_APPEND_FILE_H

#include "base/error.h"

#include <stddef.h>

struct append_file;

/* Opens or makes the file; directories above it are made. A file with nothing in it gets `head`
 * (text; "": none); one with rows must begin with it, and a last row that a killed process left
 * half written is ended. Errors: ERR_EXISTS if the file begins with something else;
 * of the system. */
int append_file_open(const char *path, const char *head, struct append_file **ret_file,
                     struct error *err);
void append_file_close(struct append_file *file); /* NULL-safe */

/* Adds all of the bytes; when it returns 0, whoever reads the file sees them. */
int append_file_write(struct append_file *file, const void *bytes, size_t count, struct error *err);
#endif
