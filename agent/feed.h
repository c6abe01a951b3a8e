/* Takes batches of bytes from a loader to the device and makes them the model's input there. */
#ifndef SHOAL_AGENT_FEED_H
#define SHOAL_AGENT_FEED_H

#include "agent/dataset/dataset.h"
#include "agent/model.h"
#include "base/error.h"
#include "kernels/ops.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct feed;

/* max_rows: the most rows of a batch; pixels: of a sample. */
int feed_open(struct stream *stream, int64_t max_rows, int64_t pixels, struct feed **ret_feed,
              struct error *err);
void feed_close(struct feed *feed); /* NULL-safe; the stream has been synced */

/* Queues batch b of the loader's current epoch. The stream must have been synced since the last
 * call: its host buffers are written again. The batch is valid until the next call. */
struct batch feed_batch(struct feed *feed, const struct loader *loader, int64_t b);

#ifdef __cplusplus
}
#endif
#endif
