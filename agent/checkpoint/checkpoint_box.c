#include "agent/checkpoint/checkpoint_box.h"

#include <assert.h>

/* stride[d]: elements between neighbours in dimension d. Returns the number of all elements. */
static int64_t strides(int dims, const int64_t *shape, int64_t *stride)
{
    int64_t all = 1;
    for (int d = dims - 1; d >= 0; d--) {
        stride[d] = all;
        all *= shape[d];
    }
    return all;
}

/* The largest box that begins at `first` and has at most `left` elements: whole steps along the
 * outermost dimension d at whose border it begins. */
static struct box largest_box(int dims, const int64_t *shape, const int64_t *stride, int64_t first,
                              int64_t left)
{
    int d = 0;
    while (d < dims - 1 && (first % stride[d] != 0 || left < stride[d]))
        d++;
    struct box box = {.count = 1};
    for (int i = 0; i < dims; i++) {
        box.offset[i] = first / stride[i] % shape[i];
        box.extent[i] = i < d ? 1 : shape[i];
    }
    if (dims > 0) {
        int64_t most = shape[d] - box.offset[d], steps = left / stride[d];
        box.extent[d] = steps < most ? steps : most;
        box.count = box.extent[d] * stride[d];
    }
    return box;
}

int box_split(int dims, const int64_t *shape, int64_t first, int64_t count,
              struct box out[BOX_MAX_PER_RANGE])
{
    /* safetensors has only boxes, and a rank's slice of a flat buffer may begin and end within a
     * row. For a matrix that gives up to three: the rest of a row, whole rows, the beginning of a
     * row. */
    int64_t stride[BOX_MAX_DIMS];
    assert(dims >= 0 && dims <= BOX_MAX_DIMS && first >= 0 && count >= 0);
    int64_t all = strides(dims, shape, stride);
    assert(first + count <= all);
    int boxes = 0;
    for (int64_t end = first + count; first < end; first += out[boxes++].count) {
        assert(boxes < BOX_MAX_PER_RANGE);
        out[boxes] = largest_box(dims, shape, stride, first, end - first);
    }
    return boxes;
}

bool box_is_range(int dims, const int64_t *shape, const int64_t *offset, const int64_t *extent,
                  int64_t *ret_first)
{
    int64_t stride[BOX_MAX_DIMS], first = 0;
    assert(dims >= 0 && dims <= BOX_MAX_DIMS);
    strides(dims, shape, stride);
    bool one_so_far = true; /* contiguous: 1, ..., 1, any, whole, ..., whole */
    for (int d = 0; d < dims; d++) {
        if (offset[d] < 0 || extent[d] < 1 || offset[d] > shape[d] - extent[d])
            return false;
        if (!one_so_far && extent[d] != shape[d])
            return false;
        one_so_far = one_so_far && extent[d] == 1;
        first += offset[d] * stride[d];
    }
    *ret_first = first;
    return true;
}
