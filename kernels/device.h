/* Device memory, streams and events: with kernels/ops.h the only door to a device.
 *
 * A backend (cpu, cuda) is one table of functions behind the two headers; both backends can live
 * in one process. All device work is asynchronous: the caller queues it on a stream, and it runs
 * in stream order. Queueing cannot fail. A shape that does not fit is a bug (assert). The stream
 * remembers a failure on the device, skips all later work, and stream_sync() reports the failure.
 *
 * Pointers are device pointers, 16-byte aligned, unless a comment says host. Nothing here knows
 * tensors, models, ranks or files. */
#ifndef SHOAL_KERNELS_DEVICE_H
#define SHOAL_KERNELS_DEVICE_H

#include "base/error.h"
#include "kernels/graph.h"
#include "kernels/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices and their memory ---- */

/* What a piece of device memory is for. Bytes are counted per kind. */
enum memory_kind {
    MEMORY_SHARD,      /* this rank's slice of the parameters, fp32 */
    MEMORY_UNIT,       /* gathered parameters of a unit */
    MEMORY_GRADIENT,   /* gradients, gathered and sharded */
    MEMORY_OPTIMIZER,  /* optimizer state */
    MEMORY_ACTIVATION, /* what forward keeps for backward, and gradients of activations */
    MEMORY_INPUT,      /* batches, and sums of a step */
    MEMORY_KINDS,
};
const char *memory_kind_name(enum memory_kind kind); /* "shard", "unit", ... */

struct memory_use {
    int64_t current_bytes[MEMORY_KINDS];
    int64_t
        peak_bytes[MEMORY_KINDS]; /* each kind's own peak; they need not be at the same moment */
    int64_t current_total_bytes;
    int64_t peak_total_bytes; /* the most that was alive at one moment */
    int64_t fresh_blocks;     /* requests so far that the system had to serve: what was freed is
                                 given out again, so a loop of equal steps should need none */
    int64_t reserved_bytes;   /* by device_reserve(); 0: nothing */
    int64_t beyond_bytes;     /* held beside it, asked for since then: they had no room in it */
};

struct device;

/* Opens a device. name: "cpu"; "cuda" or "cuda:N", the Nth GPU this process may see (0 without N).
 * threads: how many threads an op may use on the CPU (>= 1). Errors: ERR_UNSUPPORTED, naming the
 * reason: no such backend in this build, no driver, a driver or GPU that is too old, no such
 * GPU. */
int device_open(const char *name, int threads, struct device **ret_device, struct error *err);
/* Opens the CPU as a device whose memory copies to and from `peer` use at full speed, beside the
 * host (page-locked for a GPU): for what lives on the host and visits the peer. Closed before the
 * peer. */
int device_open_host(struct device *peer, int threads, struct device **ret_device,
                     struct error *err);
void device_close(struct device *device); /* NULL-safe; all its streams are closed before */
const char *device_name(const struct device *device); /* "cpu", "cuda" */
/* Which piece of hardware it is: "GPU-" and its UUID, which no other has on any machine; "" on the
 * CPU. */
enum { DEVICE_IDENTITY_BYTES = 48 };
const char *device_identity(const struct device *device);
/* The newest CUDA that its driver knows: 12030 is 12.3; 0 on the CPU. */
int device_driver(const struct device *device);
/* Its compute capability as 10 major + minor: 90 is 9.0; 0 on the CPU. */
int device_architecture(const struct device *device);
/* The PCI id of the GPU that device_open(name) would open, as Linux writes it ("0000:1b:00.0"),
 * without opening it. False if that is no GPU, or there is none. out: DEVICE_PCI_BYTES. */
enum { DEVICE_PCI_BYTES = 16 };
bool device_pci(const char *name, char *out);
/* GPUs that device_open("cuda:N") could open; 0 with the reason in ret_reason (error's text). */
int device_count_gpus(struct error *ret_reason);
/* Whether the host may read and write the device's memory: false for a GPU, whose memory only
 * stream_copy() reaches. */
bool device_is_host(const struct device *device);
/* Bytes the device could still give, of ret_total: for refusing early what does not fit. */
int64_t device_memory_free_bytes(const struct device *device, int64_t *ret_total);

/* Asks the system at once for all the memory that is expected to be needed: from now on memory on
 * the device comes from it, and only what has no room there is asked for apart (see beyond_bytes).
 * Once a device, given back when it is closed. Errors: ERR_MEMORY. */
int device_reserve(struct device *device, size_t bytes, struct error *err);

/* Memory on the device, 64-byte aligned, not zeroed. `what` names it in errors ("fc1 gradient").
 * Stream-ordered like a caching allocator: memory may be freed while work that uses it is still
 * queued, and is given out again at once, so it must be used on the one stream that queued that
 * work, or events must order its users. Errors: ERR_MEMORY names what, the bytes asked for and the
 * bytes in use. Not thread-safe. */
int device_alloc(struct device *device, enum memory_kind kind, size_t bytes, const char *what,
                 void **ret_memory, struct error *err);
void device_free(struct device *device, void *memory); /* NULL-safe */

/* Bytes asked for by device_alloc and not yet freed, and their peaks since device_open or the last
 * reset. Not in it: what the allocator keeps for the next request, and an op's own scratch. */
void device_memory_use(const struct device *device, struct memory_use *ret_use);
void device_memory_reset_peak(struct device *device);
/* Allocations that would put more than `bytes` in use fail from now on (ERR_MEMORY); 0: no limit.
 * For a device that is shared with others. */
void device_memory_set_limit(struct device *device, int64_t bytes);
/* Widens memory[bytes], which lies in what device_alloc() gave, to all of what device_reserve()
 * asked for, if it was cut from there: for libraries that are told of memory. */
void device_memory_widen(const struct device *device, const void **memory, size_t *bytes);
/* leaves(ctx, block, bytes) is called, by who calls device_alloc() or device_close(), before memory
 * that was freed goes back to the system, and nothing uses it any more: for libraries that were
 * told of it. One at a time; NULL: nobody. */
void device_memory_on_release(struct device *device,
                              void (*leaves)(void *ctx, void *block, size_t bytes), void *ctx);

/* Host memory that copies to and from the device run beside the host (page-locked for a GPU),
 * 64-byte aligned, not zeroed, not counted. Errors: ERR_MEMORY naming `what` and the bytes. */
int device_host_alloc(struct device *device, size_t bytes, const char *what, void **ret_memory,
                      struct error *err);
void device_host_free(struct device *device, void *memory); /* NULL-safe; no copy uses it */

/* ---- streams and events ---- */

struct stream;
struct event;

/* What is queued waits for room when a stream is very far behind (about a thousand ops on the CPU).
 */
int stream_open(struct device *device, const char *name, struct stream **ret_stream,
                struct error *err);
/* Likewise, for work that others will wait for (collectives): where it and that of other streams
 * could begin it goes first. What runs is not interrupted; the CPU's streams run side by side. */
int stream_open_first(struct device *device, const char *name, struct stream **ret_stream,
                      struct error *err);
void stream_close(struct stream *stream); /* NULL-safe; waits for what is queued */
struct device *stream_device(const struct stream *stream);
/* The backend's own name for it, for libraries that put work on it (NCCL's cudaStream_t); NULL on
 * the CPU. Launches what a graph has captured so far. */
void *stream_native(struct stream *stream);

/* Waits until everything queued so far is done. Returns the first failure of the stream since it
 * was opened (the stream stays failed and skips all later work), else what the device's guard says,
 * else 0. */
int stream_sync(struct stream *stream, struct error *err);
/* is_well(ctx, err) knows of failures that streams do not: those of libraries that put work on
 * them. When a stream of the device is done, stream_sync() asks it, on its own thread. One at a
 * time; NULL: nobody. */
void device_guard(struct device *device, int (*is_well)(void *ctx, struct error *err), void *ctx);

enum { STREAM_CALL_MAX_BYTES = 256 };
/* Puts a host function on the stream: it runs in stream order on a thread of the backend's
 * choosing, with a copy of the `bytes` (<= STREAM_CALL_MAX_BYTES) at `args`. A negative result
 * fails the stream with *err. It may touch host memory (device_is_host) but must not call into this
 * header. For collectives over the host. */
void stream_call(struct stream *stream, int (*function)(void *args, struct error *err),
                 const void *args, size_t bytes);

/* dst and src may be of different devices; neither may be freed before the copy ran. */
void stream_copy(struct stream *stream, void *dst, const void *src, size_t bytes);

/* *ret_ns = when the stream reaches this point, in nanoseconds of the device's clock: only
 * differences mean something. Host memory, written when stream_sync() returns; a failed stream does
 * not write it. */
void stream_stamp(struct stream *stream, int64_t *ret_ns);

int event_open(struct device *device, struct event **ret_event, struct error *err);
void event_close(struct event *event); /* NULL-safe */
/* Marks the point the stream has reached; an event can be recorded again and again. */
void event_record(struct event *event, struct stream *stream);
/* Whether the stream has come to the point last recorded, or never will (no record: true). From any
 * thread, while no other records it. */
bool event_has_passed(const struct event *event);
/* What is queued on `stream` from now on waits for the point last recorded in `event` (no record:
 * does not wait). If the recorded stream has failed, this one fails with the same error. */
void stream_wait(struct stream *stream, struct event *event);

#ifdef __cplusplus
}
#endif
#endif
