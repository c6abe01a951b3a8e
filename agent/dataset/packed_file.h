/* The bytes of a file, unpacked where it is gzipped, which its first two bytes say: members behind
 * one another (RFC 1952), and zeros behind the last, as tar fills up blocks. Anything else behind a
 * member is damage: zlib's gzread() ends there without a word. */
#ifndef SHOAL_AGENT_DATASET_PACKED_FILE_H
#define SHOAL_AGENT_DATASET_PACKED_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packed_file;

int packed_file_open(const char *path, struct packed_file **ret_file, struct error *err);
/* From where the descriptor stands, which may be a pipe or a socket. It is the file's from then on,
 * also after an error. */
int packed_file_open_fd(int fd, const char *name, struct packed_file **ret_file, struct error *err);
void packed_file_close(struct packed_file *file); /* NULL-safe */

/* At most `room` bytes; *ret_bytes 0: the end. ERR_INPUT: where and how the gzip stream is damaged
 * ("offset 80: the gzip stream is cut off: download it again"); ERR_IO: where. */
int packed_file_read(struct packed_file *file, void *buffer, size_t room, size_t *ret_bytes,
                     struct error *err);
/* Passes over so many unpacked bytes; of a gzipped file all are unpacked. ERR_INPUT also if there
 * are fewer. Only before the first read. */
int packed_file_skip(struct packed_file *file, int64_t bytes, struct error *err);

bool packed_file_is_gzip(const struct packed_file *file);
#endif
