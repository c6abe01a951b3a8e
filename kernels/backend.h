/* A backend behind device.h and ops.h: one table of functions. device.c finds the table and
 * forwards to it. memory.c counts memory and random.c names random numbers for every backend. Only
 * files of kernels/ include this. */
#ifndef SHOAL_KERNELS_BACKEND_H
#define SHOAL_KERNELS_BACKEND_H

#include "base/log.h"
#include "kernels/gpu_survey.h"
#include "kernels/memory.h"
#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct backend;
struct trace;
typedef void trace_add(void *ctx, const struct trace_event *event);

/* Backends put these first in their own structs, so that a handle leads to its table. */
struct device {
    const struct backend *backend;
    char uuid[DEVICE_UUID_BYTES];   /* see device_uuid(); set by device_open */
    char model[DEVICE_MODEL_BYTES]; /* see device_model(); likewise */
    int cuda_version;               /* see device_cuda_version(); likewise */
    int compute_capability;         /* see device_compute_capability(); likewise */
    int64_t library_attentions;     /* see device_library_attentions(); the backend counts */
    bool tunes_products;            /* see device_tune_products() */
    struct product_tuning tuning;   /* see device_product_tuning(); the backend counts */
    int threads;                    /* CPU threads an op may use */
    struct memory *memory;          /* counts and caches what the backend allocates */
    struct device *peer;    /* of device_open_host: whose host memory this one has; else NULL */
    struct stream *streams; /* all that are open */
    struct trace *trace;    /* NULL: none. Changes only while the streams are idle */
    int (*check_health)(void *ctx, struct error *err); /* see device_set_health_check() */
    void *check_health_ctx;
    /* For backends, which cannot see memory.c: scratch of an op, from the same allocator. The next
     * caller gets it at once, on any stream, so no queued work may use it when it is freed. Errors:
     * ERR_MEMORY. */
    int (*scratch_alloc)(struct device *device, size_t bytes, void **ret_memory, struct error *err);
    void (*scratch_free)(struct device *device, void *memory); /* NULL-safe */
};
enum { STREAM_MAX_RANGES = 16 }; /* within each other; deeper ones are not in a trace */
struct stream {
    struct device *device;
    struct stream *next;                           /* of the device */
    char name[16];                                 /* as much of it as a thread's name can have */
    struct trace_event *ranges[STREAM_MAX_RANGES]; /* those that the trace has begun */
    int open_ranges;
};
struct event {
    struct device *device;
};
struct graph {
    struct stream *stream;
};

struct backend {
    const char *name; /* as in device_open */
    const struct ops *ops;

    /* sizeof struct backend, struct ops and struct device: they differ in a shared object of
     * another build. */
    size_t table_bytes, ops_bytes, device_bytes;

    /* A shared object has a base/log.c of its own. NULL: this is none. */
    void (*set_log_level)(enum log_level level);
    /* Devices there are; 0 with the reason in *ret_reason. */
    int (*device_count)(struct error *ret_reason);
    /* Fills *ret but for backend_file; see gpu_survey(). NULL: no such devices. */
    void (*survey)(struct gpu_survey *ret);
    /* See device_pci(). NULL: no such devices. */
    bool (*device_pci)(int index, char *out);
    /* Opens device `index`, counted from 0. Fills *ret_device except for the fields of struct
     * device other than uuid, model, cuda_version and compute_capability. */
    int (*device_open)(int index, int threads, struct device **ret_device, struct error *err);
    void (*device_close)(struct device *device);
    bool (*data_error)(const struct device *device, struct error *ret); /* NULL: always false */
    /* The device's raw memory, without counts and caches; ctx: the device. */
    struct memory_source memory;
    bool is_host;
    int64_t (*memory_free_bytes)(const struct device *device, int64_t *ret_total);
    void *(*host_alloc)(struct device *device, size_t bytes); /* NULL if there is no more */
    void (*host_free)(struct device *device, void *memory);
    bool (*host_register)(struct device *device, void *memory, size_t bytes);
    void (*host_unregister)(struct device *device, void *memory);

    /* The namesakes in device.h. high_priority: stream_open_high_priority(). */
    int (*stream_open)(struct device *device, const char *name, bool high_priority,
                       struct stream **ret_stream, struct error *err);
    void (*stream_close)(struct stream *stream);
    void *(*stream_native)(struct stream *stream);
    int (*stream_sync)(struct stream *stream, struct error *err);
    void (*stream_call)(struct stream *stream, int (*function)(void *args, struct error *err),
                        const void *args, size_t bytes);
    void (*stream_copy)(struct stream *stream, void *dst, const void *src, size_t bytes);
    void (*stream_timestamp)(struct stream *stream, int64_t *ret_ns);
    int (*event_open)(struct device *device, struct event **ret_event, struct error *err);
    void (*event_close)(struct event *event);
    void (*event_record)(struct event *event, struct stream *stream);
    bool (*event_query)(const struct event *event);
    void (*stream_wait)(struct stream *stream, struct event *event);

    /* The namesakes in trace.h, for the vendor's tools; NULL: there are none. */
    void (*stream_range_begin)(struct stream *stream, const struct stream_range *range);
    void (*stream_range_end)(struct stream *stream);
    /* Called when the device has its trace: the backend records kernels from now on. -1 with the
     * reason if it cannot. NULL: there is nothing to begin. */
    int (*trace_begin)(struct device *device, struct error *ret_why);
    /* Called before the trace is read: adds all events of the backend. All streams are idle. */
    void (*trace_end)(struct device *device, trace_add *add, void *ctx);

    /* The namesakes in graph.h, for graphs that are not NULL. If graph_open always fails, the
     * others are NULL. */
    int (*graph_open)(struct stream *stream, struct graph **ret_graph, struct error *err);
    void (*graph_close)(struct graph *graph);
    void (*graph_begin)(struct graph *graph);
    void (*graph_end)(struct graph *graph);
    void (*graph_get_use)(const struct graph *graph, struct graph_use *ret_use);
};

/* The first fields of every table. */
#define BACKEND_TABLE_SIZES                                                                        \
    .table_bytes = sizeof(struct backend), .ops_bytes = sizeof(struct ops),                        \
    .device_bytes = sizeof(struct device)

extern const struct backend cpu_backend;

/* The CUDA backend is the shared object CUDA_LIBRARY_NAME, which exports this symbol alone. */
#define CUDA_LIBRARY_NAME   "libshoal_cuda.so"
#define CUDA_BACKEND_SYMBOL "shoal_cuda_backend"

#ifdef __cplusplus
}
#endif
#endif
