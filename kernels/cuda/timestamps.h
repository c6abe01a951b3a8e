/* Points of a stream whose time is asked for (stream_timestamp), until it is read. */
#ifndef SHOAL_KERNELS_CUDA_TIMESTAMPS_H
#define SHOAL_KERNELS_CUDA_TIMESTAMPS_H

#include "kernels/cuda/stream.h"

struct timestamp {
    cudaEvent_t event;
    int64_t *ns;
};

/* Of one stream; zeroed: none. */
struct timestamps {
    struct timestamp *all; /* the first `count` wait to be read; the events are kept */
    size_t count, capacity, made;
};

/* The stream's time now goes to *ret_ns when it is read. */
cudaError_t timestamps_record(struct timestamps *stamps, cudaStream_t stream, int64_t *ret_ns);
/* Writes all times, if `are_passed`: the stream is idle; and moves the device's tick on to the
 * last. Forgets them in any case. */
cudaError_t timestamps_collect(struct timestamps *stamps, struct cuda_device *device,
                               bool are_passed);
void timestamps_close(struct timestamps *stamps);
#endif
