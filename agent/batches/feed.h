/* Micro-batches on their way to the device. The host makes those of the next step ready in one set
 * of page-locked memory while the device gets this step's from the other set; each goes over a
 * stream of its own into one of two places on the device, while compute works on what is in the
 * other. Knows bytes and streams; not what is in a batch. */
#ifndef SHOAL_AGENT_BATCHES_FEED_H
#define SHOAL_AGENT_BATCHES_FEED_H

#include "base/error.h"
#include "kernels/device.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct feed;

/* For at most `most` micro-batches a step, each of at most `bytes`. compute: the stream that works
 * on them, used until feed_close(). Errors: ERR_MEMORY naming `what`. */
int feed_open(struct stream *compute, size_t bytes, int64_t most, const char *what,
              struct feed **ret_feed, struct error *err);
void feed_close(struct feed *feed); /* NULL-safe; compute has been synced */

enum { FEED_ALIGNMENT = 64 };
/* What a piece of a micro-batch takes up in it, so that the next one begins aligned. */
static inline size_t feed_piece(size_t bytes)
{
    return (bytes + FEED_ALIGNMENT - 1) / FEED_ALIGNMENT * FEED_ALIGNMENT;
}

/* ---- the next step's, on the host ---- */

/* Which of the two sets they go to: 0 or 1, for what their owner notes of each. */
int feed_next_set(const struct feed *feed);
/* Host memory for micro-batch i of them, aligned, of zeros at first: to be written before
 * feed_filled(). Compute has been synced since the last feed_turn() but one. */
void *feed_next(const struct feed *feed, int64_t i);
/* So many are ready. The first is sent at once, unless this step still has some to take. */
void feed_filled(struct feed *feed, int64_t count);

/* ---- this step's, on the device ---- */

/* The step begins whose micro-batches were made ready; there may be none. */
void feed_turn(struct feed *feed);
int feed_set(const struct feed *feed); /* which set they are in */
/* Device memory of the step's micro-batch i, each taken once and in order: for what is queued on
 * compute from now on, until the next is taken. Sends the one behind it. */
void *feed_take(struct feed *feed, int64_t i);

/* Forgets what was made ready and not taken. Waits until the host's memory is not read any more. */
void feed_reset(struct feed *feed);

#ifdef __cplusplus
}
#endif
#endif
