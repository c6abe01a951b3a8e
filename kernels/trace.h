/* What ran when on a device. A part of a stream's work is named where it is queued (a range): by
 * the unit, the collective, the step it belongs to. Whoever looks on gets the names: NVIDIA's tools
 * at once (NVTX), and a trace, which also has what the device itself can tell: each op on the CPU,
 * each kernel and copy of a GPU through CUPTI. Where nobody looks on, a range costs a look whether
 * somebody does.
 *
 * All times are of clock_monotonic_ns(), whatever the clocks of the device: they are compared with
 * it when a trace begins and when it ends. A part of kernels/device.h. */
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
    int64_t bytes;    /* it is about; 0: not told */
    int ranks;        /* that take part; 0: not told */
};

/* "forward layers.3", "ProfilerStep#7". */
static inline void stream_range_text(const struct stream_range *range, char *out, size_t out_bytes)
{
    const char *of = range->of ? range->of : "";
    int length = snprintf(out, out_bytes, "%s%s%s", range->what, of[0] ? " " : "", of);
    if (range->number && length > 0 && (size_t)length < out_bytes)
        snprintf(out + length, out_bytes - (size_t)length, "#%lld", (long long)range->number);
}

/* What is queued on the stream from here to the end that matches has this name, too. Ranges of a
 * stream nest; those of several streams that one thread queues on are ended in the opposite order.
 * Each begin has its end, unless what it is about has failed. */
void stream_range_begin(struct stream *stream, const struct stream_range *range);
void stream_range_end(struct stream *stream);

enum trace_kind {
    TRACE_RANGE,  /* its begin and end are points that the stream came to */
    TRACE_OP,     /* of the CPU; of a GPU: a kernel */
    TRACE_WAIT,   /* of the CPU, for another stream */
    TRACE_COPY,   /* a range of its own, so that it is told on any device */
    TRACE_MOVE,   /* of a GPU: a copy or a fill, as the GPU tells it */
    TRACE_MEMORY, /* `bytes` of the memory kind `what` (or "total") are in use from begin_ns on, as
                     the host sees it, which allocates ahead of the stream */
};

struct trace_event {
    enum trace_kind kind;
    char stream[16];           /* its name; "" : none */
    int64_t begin_ns, end_ns;  /* end >= begin */
    struct stream_range range; /* kernels: what, in the language of the source */
};

/* From now on what runs on the device's streams is noted, up to `most` events. Nothing is queued on
 * them. memory: the bytes in use, too. False if it cannot tell single kernels; ret_why says why,
 * and all else is noted. Host memory: sizeof(struct trace_event) for each event there is. */
bool device_trace_begin(struct device *device, int64_t most, bool memory, struct error *ret_why);
/* Waits for the device's streams and ends the trace. Calls `each` (NULL: nothing is told) for all
 * events, ordered by begin, then from the outside in; of a stream's events of TRACE_RANGE,
 * TRACE_COPY and, on the CPU, TRACE_OP and TRACE_WAIT, two either are apart or one is within the
 * other. What a failed stream did not come to is left out. Returns how many had no room. */
int64_t device_trace_end(struct device *device,
                         void (*each)(void *ctx, const struct trace_event *event), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
