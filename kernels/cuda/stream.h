/* Devices, streams and events of the CUDA backend, as its own host files see them. */
#ifndef SHOAL_KERNELS_CUDA_STREAM_H
#define SHOAL_KERNELS_CUDA_STREAM_H

#include "kernels/cuda/blas.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/data_fault.h"
#include "kernels/cuda/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel that may have that much dynamic shared memory. */
struct cuda_sharing {
    const void *kernel;
    int64_t bytes;
};
enum { CUDA_SHARING_MAX = 128 }; /* of a device; more are asked for at each launch */

struct cuda_device {
    struct device base;
    int index;           /* CUDA's number of it, among those this process may see */
    int multiprocessors; /* see cuda_multiprocessors() */
    int shared_bytes;    /* see cuda_shared_bytes() */
    /* The device's clock: `tick` was reached at `tick_ns`. A float of milliseconds is exact enough
     * over a second only, so the tick moves on with the stamps. */
    cudaEvent_t tick;
    int64_t tick_ns;
    struct cuda_sharing sharing[CUDA_SHARING_MAX];
    size_t sharing_count;
    struct blas *blas;        /* matrix products; its own */
    struct cudnn *cudnn;      /* attention, where it is cuDNN's; its own */
    struct data_fault *fault; /* its own */
};

/* Makes the device current for this thread's CUDA calls. */
void cuda_use(const struct cuda_device *device);

/* Sets *err from a failed CUDA call and returns -1. A lost or faulty GPU is ERR_DEVICE: a restart,
 * perhaps on another GPU, may help. If a kernel has stopped for a number that it met, that is what
 * is told. what: the call. */
int cuda_error(const struct cuda_device *device, struct error *err, cudaError_t status,
               const char *what);

/* Whether the build has code for the current GPU. probe.cu */
cudaError_t cuda_probe(void);

/* The namesakes in struct backend. */
int cuda_stream_open(struct device *device, const char *name, bool high_priority,
                     struct stream **ret_stream, struct error *err);
void cuda_stream_close(struct stream *stream);
void *cuda_stream_native(struct stream *stream);
int cuda_stream_sync(struct stream *stream, struct error *err);
void cuda_stream_call(struct stream *stream, int (*function)(void *args, struct error *err),
                      const void *args, size_t bytes);
void cuda_stream_copy(struct stream *stream, void *dst, const void *src, size_t bytes);
void cuda_stream_timestamp(struct stream *stream, int64_t *ret_ns);
int cuda_event_open(struct device *device, struct event **ret_event, struct error *err);
void cuda_event_close(struct event *event);
void cuda_event_record(struct event *event, struct stream *stream);
bool cuda_event_query(const struct event *event);
void cuda_stream_wait(struct stream *stream, struct event *event);

/* Waits for all of the device's streams. For the thread that queues on them. */
void cuda_streams_wait_idle(const struct cuda_device *device);

/* The stream's cudaStream_t for what no graph can hold: ends a capture and launches
 * what it took. */
cudaStream_t cuda_uncaptured(struct stream *s);
/* The graph that the stream's ops go to from now on, or NULL. */
void cuda_stream_set_graph(struct stream *s, struct cuda_graph *graph);
/* Ends a capture; from now on the stream's ops go to no graph. Returns that of before, for
 * cuda_stream_set_graph(). */
struct cuda_graph *cuda_stream_pause_graph(struct stream *s);

#ifdef __cplusplus
}
#endif
#endif
