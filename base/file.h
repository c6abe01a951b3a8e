/* Whole files into memory. */
#ifndef SHOAL_BASE_FILE_H
#define SHOAL_BASE_FILE_H

#include "base/error.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a file, or standard input for "-". *ret_bytes gets a terminating zero behind its *ret_size
 * bytes; the caller frees. Errors name the path: ERR_NOT_FOUND, ERR_IO, and ERR_INPUT for more than
 * max_bytes. */
int file_read(const char *path, size_t max_bytes, char **ret_bytes, size_t *ret_size,
              struct error *err);

#ifdef __cplusplus
}
#endif
#endif
