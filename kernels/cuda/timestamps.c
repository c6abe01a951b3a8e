#include "kernels/cuda/timestamps.h"

#include "base/mem.h"

#include <stdlib.h>

cudaError_t timestamps_record(struct timestamps *stamps, cudaStream_t stream, int64_t *ret_ns)
{
    if (stamps->count == stamps->capacity) {
        stamps->capacity = stamps->capacity ? 2 * stamps->capacity : 16;
        stamps->all = xrealloc(stamps->all, stamps->capacity * sizeof *stamps->all);
    }
    struct timestamp *stamp = &stamps->all[stamps->count];
    cudaError_t status = cudaSuccess;
    if (stamps->count == stamps->made) {
        status = cudaEventCreateWithFlags(&stamp->event, cudaEventDefault);
        stamps->made += status == cudaSuccess;
    }
    if (status == cudaSuccess)
        status = cudaEventRecord(stamp->event, stream);
    if (status != cudaSuccess)
        return status;
    stamp->ns = ret_ns;
    stamps->count++;
    return cudaSuccess;
}

cudaError_t timestamps_collect(struct timestamps *stamps, struct cuda_device *device,
                               bool are_passed)
{
    cudaError_t status = cudaSuccess;
    for (size_t i = 0; i < stamps->count && are_passed && status == cudaSuccess; i++) {
        struct timestamp *stamp = &stamps->all[i];
        float ms = 0;
        status = cudaEventElapsedTime(&ms, device->tick, stamp->event);
        *stamp->ns = device->tick_ns + (int64_t)((double)ms * 1e6);
        /* Beyond a second a float of milliseconds is coarser than 0.1 us: this event becomes the
         * one to count from. */
        if (ms > 1000) {
            cudaEvent_t old = device->tick;
            device->tick_ns = *stamp->ns;
            device->tick = stamp->event;
            stamp->event = old;
        }
    }
    stamps->count = 0;
    return status;
}

void timestamps_close(struct timestamps *stamps)
{
    for (size_t i = 0; i < stamps->made; i++)
        cudaEventDestroy(stamps->all[i].event);
    free(stamps->all);
}
