/* How many of the works that were queued have ended, as of collectives on a GPU, which no host
 * sees: behind each lies an event that another thread asks for, so that no host function stands
 * between a work and what waits for it. One thread adds, another counts. */
#ifndef SHOAL_AGENT_STREAM_MARKS_H
#define SHOAL_AGENT_STREAM_MARKS_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct stream_marks;

struct stream_marks *stream_marks_open(struct device *device);
void stream_marks_close(struct stream_marks *marks); /* NULL-safe; nobody counts */

/* Marks the end of what was queued last. The streams may differ: it counts when all before it has
 * ended, too. Errors: the device's. */
int stream_marks_add(struct stream_marks *marks, struct stream *stream, struct error *err);

/* How many have ended so far. Does not wait for who adds, nor for the device. */
uint64_t stream_marks_count(struct stream_marks *marks);

#ifdef __cplusplus
}
#endif
#endif
