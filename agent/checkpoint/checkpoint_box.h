/* A run of a tensor's elements as boxes. Ranks own flat ranges of row-major elements, while a
 * sharded checkpoint stores boxes (an offset and an extent in each dimension): a range that begins
 * or ends inside a row is several of them. Pure. */
#ifndef SHOAL_AGENT_CHECKPOINT_CHECKPOINT_BOX_H
#define SHOAL_AGENT_CHECKPOINT_CHECKPOINT_BOX_H

#include <stdbool.h>
#include <stdint.h>

enum { BOX_MAX_DIMS = 4, BOX_MAX_PER_RANGE = 2 * BOX_MAX_DIMS - 1 };

struct box {
    int64_t offset[BOX_MAX_DIMS]; /* of its first element in the whole tensor */
    int64_t extent[BOX_MAX_DIMS]; /* each >= 1 */
    int64_t count;                /* elements: the product of the extents */
};

/* Cuts elements first .. first + count - 1 of a tensor into boxes, in the order of the elements, as
 * few as there can be: at most 2 * dims - 1. Each is contiguous, so their elements follow each
 * other as the range's do. A scalar (dims 0) is one box. Returns how many. */
int box_split(int dims, const int64_t *shape, int64_t first, int64_t count,
              struct box out[BOX_MAX_PER_RANGE]);

/* The other way: true and the flat place of the box's first element, if the box lies within the
 * tensor and is contiguous in it. */
bool box_is_range(int dims, const int64_t *shape, const int64_t *offset, const int64_t *extent,
                  int64_t *ret_first);
#endif
