/* Failures of host functions, which CUDA does not know, and how they spread along streams and
 * events. A stream numbers its calls, records and waits (points). An event carries the point it was
 * recorded at. If the stream failed up to that point, every stream that waited for the event fails.
 * Any thread may call: host functions run on threads of their own. */
#ifndef SHOAL_KERNELS_CUDA_STREAM_PROGRESS_H
#define SHOAL_KERNELS_CUDA_STREAM_PROGRESS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct stream_progress; /* of a stream */

struct stream_progress *stream_progress_open(void);
/* The stream is closed. Holders of a reference may still ask. */
void stream_progress_close(struct stream_progress *p);

struct stream_progress *stream_progress_reference(struct stream_progress *p); /* returns p */
void stream_progress_unreference(struct stream_progress *p);                  /* NULL-safe */

/* The stream's next point. */
uint64_t stream_progress_step(struct stream_progress *p);
/* From now on p waits for `source` to reach `point`: if that fails, so does p. */
void stream_progress_wait(struct stream_progress *p, struct stream_progress *source,
                          uint64_t point);

/* Point `at` failed, unless an earlier one has; so did every stream that waits for it. */
void stream_progress_fail(struct stream_progress *p, uint64_t at, const struct error *err);
/* Whether a point up to this one failed. */
bool stream_progress_has_failed(struct stream_progress *p, uint64_t point);

/* Called when the stream is idle: its failure, if there is one; else forgets what it waited for. */
bool stream_progress_end(struct stream_progress *p, struct error *ret_failure);
#endif
