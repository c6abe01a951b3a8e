/* Which work ran when on a device. The caller names a part of a stream's work where it queues it (a
 * range): the unit, the collective, the step. NVIDIA's tools get the names at once (NVTX). A trace
 * records them, together with the device's own events: each op on the CPU, each kernel and copy of
 * a GPU (CUPTI). Without a trace or a tool, a range costs one comparison.
 *
 * All times are those of clock_monotonic_ns(): the device's clock is compared with it when a trace
 * begins and when it ends. A part of kernels/device.h. */
#ifndef SHOAL_KERNELS_TRACE_H
#define SHOAL_KERNELS_TRACE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct device;
struct stream;

/* A name for work. Texts outlive the trace. */
struct stream_range {
    const char *what; /* "forward", "all_gather" */
    const char *of;   /* "layers.3"; NULL: nothing */
    int64_t number;   /* which one, from 1; 0: they are not counted */
    int64_t bytes;    /* it is about; 0: not known */
    int ranks;        /* that take part; 0: not known */
};

/* "forward layers.3", "ProfilerStep#7". */
static inline void stream_range_text(const struct stream_range *range, char *out, size_t out_bytes)
{
    const char *of = range->of ? range->of : "";
    int length = snprintf(out, out_bytes, "%s%s%s", range->what, of[0] ? " " : "", of);
    if (range->number && length > 0 && (size_t)length < out_bytes)
        snprintf(out + length, out_bytes - (size_t)length, "#%lld", (long long)range->number);
}

/* Names the work that is queued on the stream from here to the matching end. Ranges of a stream
 * nest. A thread that queues on several streams ends their ranges in the opposite order. Each begin
 * has its end, unless the work failed. */
void stream_range_begin(struct stream *stream, const struct stream_range *range);
void stream_range_end(struct stream *stream);

enum trace_kind {
    TRACE_RANGE,  /* its begin and end are points that the stream came to */
    TRACE_OP,     /* of the CPU; of a GPU: a kernel */
    TRACE_WAIT,   /* of the CPU, for another stream */
    TRACE_COPY,   /* a range of its own, so that every device has it */
    TRACE_MOVE,   /* of a GPU: a copy or a fill, as CUPTI reports it */
    TRACE_MEMORY, /* `bytes` of the memory kind `what` (or "total") are in use from begin_ns on, as
                     the host sees it, which allocates ahead of the stream */
};

struct trace_event {
    enum trace_kind kind;
    char stream[16];           /* its name; "" : none */
    int64_t begin_ns, end_ns;  /* end >= begin */
    struct stream_range range; /* kernels: what, in the language of the source */
};

/* Records from now on what runs on the device's streams, up to `most` events. The streams are idle.
 * memory: records the bytes in use, too. False if single kernels cannot be recorded, with the
 * reason in ret_why; all else is. Takes sizeof(struct trace_event) of host memory per event. */
bool device_trace_begin(struct device *device, int64_t most, bool memory, struct error *ret_why);
/* Waits for the device's streams and ends the trace. Calls `each` (NULL: none) for all events,
 * ordered by begin, then from the outside in. Two events of a stream (TRACE_RANGE, TRACE_COPY and,
 * on the CPU, TRACE_OP and TRACE_WAIT) are either apart or nested. Work that a failed stream
 * skipped is left out. Returns how many events had no room. */
int64_t device_trace_end(struct device *device,
                         void (*each)(void *ctx, const struct trace_event *event), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
