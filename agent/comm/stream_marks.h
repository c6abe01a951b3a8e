/* Counts how many collectives have ended on a GPU. Behind each collective lies an event, which
 * another thread queries. A host function in the stream would count, too, but would delay what
 * waits for the collective. One thread adds, another counts. */
#ifndef SHOAL_AGENT_COMM_STREAM_MARKS_H
#define SHOAL_AGENT_COMM_STREAM_MARKS_H

#include "kernels/device.h"

struct stream_marks;

struct stream_marks *stream_marks_open(struct device *device);
void stream_marks_close(struct stream_marks *marks); /* NULL-safe; no thread counts any more */

/* Marks the end of the collective that was queued last. Streams may differ: a collective counts
 * once all marked before it have ended, too. Errors: the device's. */
int stream_marks_add(struct stream_marks *marks, struct stream *stream, struct error *err);

/* How many have ended so far. Never blocks on the adding thread or the device. */
uint64_t stream_marks_count(struct stream_marks *marks);
#endif
