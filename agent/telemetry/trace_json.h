/* A trace as Chrome's trace event format has it, which Perfetto and chrome://tracing open: complete
 * events ("X"), counters ("C") and names ("M") in one object. Writes text; knows no device and no
 * clock. Pure.
 *
 * The format: "Trace Event Format" (Google, 2016); what else is at the top is as PyTorch's profiler
 * has it. Times in a file are microseconds since base_ns, which baseTimeNanoseconds has. */
#ifndef SHOAL_AGENT_TELEMETRY_TRACE_JSON_H
#define SHOAL_AGENT_TELEMETRY_TRACE_JSON_H

#include "base/str.h"

#include <stdint.h>

struct trace_json {
    struct str *out;
    int64_t base_ns; /* of the times it is given; since 1970 */
};

/* What a row is within: a process of the viewer. */
struct trace_row {
    int pid, tid;
};

struct trace_span {
    struct trace_row row;
    const char *category; /* a word */
    const char *name;
    int64_t begin_ns, end_ns; /* end >= begin */
    int64_t bytes;            /* 0: not known; likewise: */
    int64_t number;
    int ranks;
};

/* The head of the file, and the name of its first process, which is that of the ranks' hosts.
 * device: "cpu"; memory_bytes: of all of it. */
void trace_json_begin(const struct trace_json *t, int rank, int world_size, const char *device,
                      int64_t memory_bytes, int pid);
/* Names, and the order in which they are shown: by pid, by tid. */
void trace_json_process(const struct trace_json *t, int pid, const char *name);
void trace_json_thread(const struct trace_json *t, struct trace_row row, const char *name);
void trace_json_span(const struct trace_json *t, const struct trace_span *span);
/* From at_ns on the counter is `bytes`. */
void trace_json_bytes(const struct trace_json *t, int pid, const char *name, int64_t at_ns,
                      int64_t bytes);
void trace_json_end(const struct trace_json *t);
#endif
