/* Whole files into memory, and the three files that every program begins with. */
#ifndef SHOAL_BASE_FILE_H
#define SHOAL_BASE_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a file, or standard input for "-". *ret_bytes gets a terminating zero behind its *ret_size
 * bytes; the caller frees. Errors name the path: ERR_NOT_FOUND, ERR_IO, and ERR_INPUT for a
 * directory or more than max_bytes. */
int file_read(const char *path, size_t max_bytes, char **ret_bytes, size_t *ret_size,
              struct error *err);

/* Maps a regular file for reading; it must keep its size until file_unmap. Errors name the path:
 * ERR_NOT_FOUND, ERR_IO, and ERR_INPUT for what is empty or no regular file. */
int file_map(const char *path, const uint8_t **ret_bytes, size_t *ret_size, struct error *err);
void file_unmap(const uint8_t *bytes, size_t size); /* NULL-safe */

/* Links are followed. */
bool file_is_directory(const char *path);

/* The path from the root, without "./" at its beginning; links stay as they are. The path itself if
 * the working directory is gone. The caller frees. */
char *file_absolute(const char *path);

/* Opens /dev/null for each of stdin, stdout and stderr that the parent left closed: otherwise the
 * next file that is opened would get its number, and what is printed. Call it first. */
int file_open_standard(struct error *err);
/* Writes out what stdout still holds. ERR_IO if something that was printed is lost, but to a reader
 * that went away by its own will. Call it last. */
int file_flush_standard(struct error *err);
#endif
