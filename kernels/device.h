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

/* What device memory is for; bytes are counted per kind. */
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
    int64_t peak_bytes[MEMORY_KINDS]; /* each kind's own peak, not all at the same moment */
    int64_t current_total_bytes;
    int64_t peak_total_bytes; /* the most that was alive at one moment */
    int64_t fresh_blocks;   /* requests that the system served; the others got freed memory. A loop
                               of equal steps should need none */
    int64_t reserved_bytes; /* by device_reserve(); 0: nothing */
    int64_t beyond_bytes;   /* held beside the reserve, since it had no room */
    bool reserve_is_lent;   /* it is from device_reserve_from()'s lender */
};

struct device;

/* Opens a device. name: "cpu"; "cuda" or "cuda:N", the Nth GPU this process may see (0 without N).
 * threads: how many CPU threads an op may use (>= 1). Errors: ERR_UNSUPPORTED with the reason: the
 * build has no such backend, there is no driver or no such GPU, or one of them is too old. */
int device_open(const char *name, int threads, struct device **ret_device, struct error *err);
/* Opens the CPU as a device with memory that copies to and from `peer` at full speed, without the
 * host's help (page-locked for a GPU). The caller closes it before the peer. */
int device_open_host(struct device *peer, int threads, struct device **ret_device,
                     struct error *err);
void device_close(struct device *device); /* NULL-safe; the caller has closed its streams */
const char *device_name(const struct device *device); /* "cpu", "cuda" */
/* "GPU-" and its UUID, unique over all machines; "" on the CPU. */
enum { DEVICE_UUID_BYTES = 48 };
const char *device_uuid(const struct device *device);
/* What its maker calls it ("NVIDIA H100 80GB HBM3"); "" on the CPU. */
enum { DEVICE_MODEL_BYTES = 128 };
const char *device_model(const struct device *device);
/* The newest CUDA that its driver knows: 12030 is 12.3; 0 on the CPU. */
int device_cuda_version(const struct device *device);
/* Its compute capability as 10 major + minor: 90 is 9.0; 0 on the CPU. */
int device_compute_capability(const struct device *device);
/* The oldest that multiplies bf16 in matrix units: Ampere. Older GPUs are for fp32. */
enum { DEVICE_BF16_CAPABILITY = 80 };
/* Likewise fp8: Ada; data centres have Hopper. */
enum { DEVICE_FP8_CAPABILITY = 89 };
/* Likewise a GELU in a product's epilogue that is faster than a kernel for it: Hopper. llm.c found
 * it slower on Ampere and Ada; no GPU has measured it here. */
enum { DEVICE_FUSED_GELU_CAPABILITY = 90 };
/* How many of the attention ops queued so far a library of the GPU's maker does (cuDNN): 0 on the
 * CPU. For tests and benches. */
int64_t device_library_attentions(const struct device *device);
/* From now on a matrix product that is met for the first time runs several of the library's
 * algorithms (cuBLASLt's), and keeps the fastest: times vary, and so do the last bits of a run.
 * Without use on the CPU. */
void device_tune_products(struct device *device);
/* What that found so far: of products, by shape, dtype and alignment. */
struct product_tuning {
    int64_t products;           /* that were timed */
    int64_t untimed;            /* that add to their result, and have no twin that overwrites it */
    int64_t changed;            /* take another algorithm than the library puts first */
    int64_t candidates, failed; /* algorithms that were to run; did not */
    int64_t first_ns, fastest_ns; /* one run of each product by the library's first algorithm, and
                                     by the one that is kept */
};
void device_product_tuning(const struct device *device, struct product_tuning *ret_tuning);
/* Whether an op met a number of a batch that it cannot use (kernels/data_error.h); *ret is it then:
 * for whoever sees other errors first, such as a peer's or a collective's. On the CPU the stream
 * fails by it, and nothing else does. */
bool device_data_error(const struct device *device, struct error *ret);
/* The PCI id, as Linux writes it ("0000:1b:00.0"), of the GPU that device_open(name) would open.
 * False if the name is no GPU's, or there is none. out: DEVICE_PCI_BYTES. */
enum { DEVICE_PCI_BYTES = 16 };
bool device_pci(const char *name, char *out);
/* GPUs that device_open("cuda:N") could open; 0 with the reason in ret_reason: ERR_NOT_FOUND if
 * there is none (no driver, no GPU, a build without them), else what keeps this process from those
 * that there may be. */
int device_count_gpus(struct error *ret_reason);
/* Whether the host may read and write the device's memory. False for a GPU: only stream_copy()
 * reaches its memory. */
bool device_is_host(const struct device *device);
/* Bytes that are free, of ret_total. */
int64_t device_memory_free_bytes(const struct device *device, int64_t *ret_total);

/* Takes `bytes` from the system at once. device_alloc() then cuts from this reserve, and asks the
 * system again only when the reserve has no room (see beyond_bytes). Once per device;
 * device_close() gives it back. Errors: ERR_MEMORY. */
int device_reserve(struct device *device, size_t bytes, struct error *err);

/* A library that moves memory of its own faster (NCCL's ncclMemAlloc). Both functions return 0 or
 * the library's error; the device is the thread's current one. */
struct memory_lender {
    int (*alloc)(void **ret_memory, size_t bytes);
    int (*free)(void *memory);
};
/* device_reserve() asks the lender first, and the system where that has nothing. The library stays
 * loaded until the device is closed. NULL: none. */
void device_reserve_from(struct device *device, const struct memory_lender *lender);

/* Allocates memory on the device, 64-byte aligned, not zeroed. `what` names it in errors ("fc1
 * gradient"). The allocator caches and is stream-ordered: the caller may free memory while queued
 * work still uses it, and the next caller gets it at once. So all users are on one stream, or
 * events order them. Errors: ERR_MEMORY names what, the bytes asked for and the bytes in use. Not
 * thread-safe. */
int device_alloc(struct device *device, enum memory_kind kind, size_t bytes, const char *what,
                 void **ret_memory, struct error *err);
void device_free(struct device *device, void *memory); /* NULL-safe */

/* Bytes that device_alloc() gave and nobody freed, and their peaks since device_open() or the last
 * reset. Without the allocator's cache and without the scratch of ops. */
void device_memory_use(const struct device *device, struct memory_use *ret_use);
void device_memory_reset_peak(struct device *device);
/* From now on an allocation that would put more than `bytes` in use fails (ERR_MEMORY); 0: no
 * limit. For a device that others share. */
void device_memory_set_limit(struct device *device, int64_t bytes);
/* Widens memory[bytes], a part of what device_alloc() gave, to the whole reserve, if it was cut
 * from there: for libraries that register memory (ncclCommRegister). */
void device_memory_whole_block(const struct device *device, const void **memory, size_t *bytes);
/* Sets the callback that device_alloc() and device_close() make before they give freed memory back
 * to the system. Nothing uses the memory then; a library that registered it deregisters it. There
 * is one callback; NULL: none. */
void device_memory_on_release(struct device *device,
                              void (*on_release)(void *ctx, void *block, size_t bytes), void *ctx);

/* Allocates host memory that copies to and from the device asynchronously (page-locked for a GPU),
 * 64-byte aligned, not zeroed, not counted. Errors: ERR_MEMORY naming `what` and the bytes. */
int device_host_alloc(struct device *device, size_t bytes, const char *what, void **ret_memory,
                      struct error *err);
void device_host_free(struct device *device, void *memory); /* NULL-safe; no queued copy uses it */
/* Makes host memory of the caller's like that (page-locks it for a GPU), until it is unregistered,
 * before it is unmapped. memory: where a page begins. False: the system refuses, nothing has
 * changed. */
bool device_host_register(struct device *device, void *memory, size_t bytes);
void device_host_unregister(struct device *device, void *memory); /* NULL-safe; likewise */

/* ---- streams and events ---- */

struct stream;
struct event;

/* Opens a stream. Who queues work on a stream that is far behind (about a thousand ops on the CPU)
 * waits for room. */
int stream_open(struct device *device, const char *name, struct stream **ret_stream,
                struct error *err);
/* Likewise with high priority, for work that others wait for (collectives): its kernels start
 * before those of other streams, without interrupting any. On the CPU all streams run
 * side by side. */
int stream_open_high_priority(struct device *device, const char *name, struct stream **ret_stream,
                              struct error *err);
void stream_close(struct stream *stream); /* NULL-safe; waits for what is queued */
struct device *stream_device(const struct stream *stream);
/* The backend's own handle (cudaStream_t), for libraries that queue work themselves (NCCL); NULL on
 * the CPU. Launches what a graph has captured so far. */
void *stream_native(struct stream *stream);

/* Waits until everything queued so far is done. Returns the stream's first failure since it was
 * opened (a failed stream stays failed and skips all later work), else the guard's
 * result, else 0. */
int stream_sync(struct stream *stream, struct error *err);
/* Sets the health check: check_health(ctx, err) reports failures of libraries that queue work
 * themselves, which a stream cannot see. stream_sync() calls it on the caller's thread. There is
 * one; NULL: none. */
void device_set_health_check(struct device *device,
                             int (*check_health)(void *ctx, struct error *err), void *ctx);

enum { STREAM_CALL_MAX_BYTES = 256 };
/* Queues a host function. It runs in stream order on a thread of the backend, with a copy of the
 * `bytes` (<= STREAM_CALL_MAX_BYTES) at `args`. A negative result fails the stream with *err. The
 * function may use host memory (device_is_host) but must not call this header. For collectives over
 * the host. */
void stream_call(struct stream *stream, int (*function)(void *args, struct error *err),
                 const void *args, size_t bytes);

/* Queues a copy; dst and src may be on different devices. The caller frees neither
 * before it ran. */
void stream_copy(struct stream *stream, void *dst, const void *src, size_t bytes);

/* *ret_ns = the time at which the stream reaches this point, in nanoseconds of the device's clock:
 * only differences mean something. ret_ns is host memory, valid when stream_sync() returns; a
 * failed stream does not write it. */
void stream_timestamp(struct stream *stream, int64_t *ret_ns);

int event_open(struct device *device, struct event **ret_event, struct error *err);
void event_close(struct event *event); /* NULL-safe */
/* Marks the point that the stream has reached; an event can be recorded again. */
void event_record(struct event *event, struct stream *stream);
/* Whether the stream has passed the point last recorded, or never will (no record: true). From any
 * thread, while no other thread records it. */
bool event_query(const struct event *event);
/* Work that is queued on `stream` from now on waits for the point last recorded in `event` (no
 * record: it does not wait). If the recorded stream has failed, this one fails with its error. */
void stream_wait(struct stream *stream, struct event *event);

#ifdef __cplusplus
}
#endif
#endif
