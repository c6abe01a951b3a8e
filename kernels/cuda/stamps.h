/* Points of a stream whose time is asked for (stream_timestamp), until it is read. */
#ifndef SHOAL_KERNELS_CUDA_STAMPS_H
#define SHOAL_KERNELS_CUDA_STAMPS_H

#include "kernels/cuda/stream.h"

struct stamp {
    cudaEvent_t event;
    int64_t *ns;
};

/* Of one stream; zeroed: none. */
struct stamps {
    struct stamp *all; /* the first `count` wait to be read; the events are kept */
    size_t count, room, made;
};

/* The stream's time now goes to *ret_ns when it is read. */
cudaError_t stamps_put(struct stamps *stamps, cudaStream_t stream, int64_t *ret_ns);
/* Writes all times, if `are_passed`: the stream is idle; and moves the device's tick on to the
 * last. Forgets them in any case. */
cudaError_t stamps_take(struct stamps *stamps, struct cuda_device *device, bool are_passed);
void stamps_close(struct stamps *stamps);
#endif
