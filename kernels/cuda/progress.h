/* What CUDA does not know of a stream: failures of ours (a host function that failed), which go
 * where CUDA's order goes. A stream's calls, records and waits are numbered points; an event
 * carries the point it was recorded at, and what fails in a stream up to there fails those that
 * waited for it. From any thread: host functions run on others. */
#ifndef SHOAL_KERNELS_CUDA_PROGRESS_H
#define SHOAL_KERNELS_CUDA_PROGRESS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct progress; /* of a stream */

struct progress *progress_open(void);
/* The stream is gone. Those who keep a reference may go on asking. */
void progress_close(struct progress *p);

struct progress *progress_reference(struct progress *p); /* returns p */
void progress_unreference(struct progress *p);           /* NULL-safe */

/* The stream's next point. */
uint64_t progress_step(struct progress *p);
/* From now on p waits for `source` to reach `point`: if that fails, so does p. */
void progress_wait(struct progress *p, struct progress *source, uint64_t point);

/* Point `at` failed, unless one before it has, and with it who waits for it. */
void progress_fail(struct progress *p, uint64_t at, const struct error *err);
/* Whether a point up to this one failed. */
bool progress_has_failed(struct progress *p, uint64_t point);

/* When all of the stream is done: its failure, if there is one; else what it waited for is
 * forgotten, which did not fail either. */
bool progress_end(struct progress *p, struct error *ret_failure);

#ifdef __cplusplus
}
#endif
#endif
