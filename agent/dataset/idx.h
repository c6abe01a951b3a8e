/* Reads IDX files, the format of MNIST and its likes: a big-endian magic number, the sizes, then
 * bytes (http://yann.lecun.com/exdb/mnist). Plain or gzipped, recognized by content and not by
 * name. A file is read whole and checked whole. Knows nothing of images, labels or batches. */
#ifndef SHOAL_AGENT_DATASET_IDX_H
#define SHOAL_AGENT_DATASET_IDX_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { IDX_MAX_DIMS = 3, IDX_MAX_BYTES = 1 << 30 };

/* Unsigned bytes in 1 dimension (labels: count) or 3 (images: count, rows, columns). */
struct idx {
    int dims;
    int64_t shape[IDX_MAX_DIMS]; /* each >= 1; the product is at most IDX_MAX_BYTES */
    uint8_t *bytes;              /* row-major; freed by idx_free */
};

/* Reads a file that must have `dims` (1 or 3) dimensions. *ret_idx is written on success only.
 * Errors name the file: ERR_NOT_FOUND, ERR_IO, or ERR_INPUT. The last is for a wrong magic number,
 * sizes that are zero or beyond the cap, a truncated file, bytes left over, and broken gzip. */
int idx_read(const char *path, int dims, struct idx *ret_idx, struct error *err);

/* The same for a file's content in memory. `name` is for errors. Never reads beyond `size` and
 * never allocates more than the content can justify. */
int idx_parse(const char *name, const uint8_t *content, size_t size, int dims, struct idx *ret_idx,
              struct error *err);

void idx_free(struct idx *idx); /* NULL-safe */
#endif
