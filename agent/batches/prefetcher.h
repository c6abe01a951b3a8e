/* Brings micro-batches from the host to the device ahead of their use. While the device copies this
 * step's from one set of page-locked memory, the host fills the other set with the next step's.
 * Each micro-batch is copied on a stream of its own into one of two slots on the device, while
 * compute works on the other slot. Knows bytes and streams; not what is in a batch. */
#ifndef SHOAL_AGENT_BATCHES_PREFETCHER_H
#define SHOAL_AGENT_BATCHES_PREFETCHER_H

#include "base/error.h"
#include "kernels/device.h"

#include <stddef.h>
#include <stdint.h>

struct prefetcher;

/* For at most `max_batches` micro-batches a step, each of at most `bytes`. compute: the stream that
 * works on them, used until prefetcher_close(). Errors: ERR_MEMORY naming `what`. */
int prefetcher_open(struct stream *compute, size_t bytes, int64_t max_batches, const char *what,
                    struct prefetcher **ret_prefetcher, struct error *err);
void prefetcher_close(struct prefetcher *prefetcher); /* NULL-safe; compute has been synced */

enum { PREFETCHER_ALIGNMENT = 64 };
/* What a piece of a micro-batch takes up in it, so that the next one begins aligned. */
static inline size_t prefetcher_aligned(size_t bytes)
{
    return (bytes + PREFETCHER_ALIGNMENT - 1) / PREFETCHER_ALIGNMENT * PREFETCHER_ALIGNMENT;
}

/* ---- the next step's, on the host ---- */

/* Which of the two sets they go to: 0 or 1, for what their owner notes of each. */
int prefetcher_next_set(const struct prefetcher *prefetcher);
/* Host memory for micro-batch i of them, aligned, of zeros at first: to be written before
 * prefetcher_filled(). Compute has been synced since the last prefetcher_swap() but one. */
void *prefetcher_next(const struct prefetcher *prefetcher, int64_t i);
/* So many are ready. The first is sent at once, unless this step still has some to take. */
void prefetcher_filled(struct prefetcher *prefetcher, int64_t count);

/* ---- this step's, on the device ---- */

/* The step begins whose micro-batches were made ready; there may be none. */
void prefetcher_swap(struct prefetcher *prefetcher);
int prefetcher_set(const struct prefetcher *prefetcher); /* which set they are in */
/* Device memory of the step's micro-batch i, each taken once and in order: for what is queued on
 * compute from now on, until the next is taken. Sends the one behind it. */
void *prefetcher_take(struct prefetcher *prefetcher, int64_t i);

/* Forgets what was made ready and not taken. Waits until the host's memory is not read any more. */
void prefetcher_reset(struct prefetcher *prefetcher);
#endif
