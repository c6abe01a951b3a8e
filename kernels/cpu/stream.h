/* The CPU's streams and events, for the device that hands them out. The functions are those of
 * struct backend. */
#ifndef SHOAL_KERNELS_CPU_STREAM_H
#define SHOAL_KERNELS_CPU_STREAM_H

#include "kernels/cpu/cpu.h"

struct cpu_device {
    struct device base;
    size_t capacity_bytes; /* the machine's memory */
};

int cpu_stream_open(struct device *device, const char *name, bool high_priority,
                    struct stream **ret_stream, struct error *err);
void cpu_stream_close(struct stream *stream);
void *cpu_stream_native(struct stream *stream);
int cpu_stream_sync(struct stream *stream, struct error *err);
void cpu_stream_call(struct stream *s, int (*function)(void *args, struct error *err),
                     const void *args, size_t bytes);
void cpu_stream_copy(struct stream *s, void *dst, const void *src, size_t bytes);
void cpu_stream_timestamp(struct stream *s, int64_t *ret_ns);
int cpu_event_open(struct device *device, struct event **ret_event, struct error *err);
void cpu_event_close(struct event *event);
void cpu_event_record(struct event *event, struct stream *stream);
bool cpu_event_query(const struct event *event);
void cpu_stream_wait(struct stream *stream, struct event *event);

/* Returns when all that is queued on the device's streams is done. */
void cpu_streams_wait_idle(const struct device *device);

#endif
