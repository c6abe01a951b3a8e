/* Batches on the device under test, made of ones in host memory. */
#ifndef SHOAL_TESTS_AGENT_DEVICE_BATCH_H
#define SHOAL_TESTS_AGENT_DEVICE_BATCH_H

#include "agent/models/model.h"

enum { DEVICE_BATCH_TENSORS = 8 };

struct device_batch {
    struct batch batch; /* the host's numbers, and where its tensors are on the device */
    struct device *device;
    void *memory[DEVICE_BATCH_TENSORS];
};

/* Copies what the host's batch has but logits; done when it returns. image_bytes: 0 for
 * language models. Closed in any case. */
int device_batch_open(struct device_batch *ret_batch, struct stream *stream,
                      const struct batch *host, int64_t image_bytes, struct error *err);
/* What is queued on the stream may still read it. */
void device_batch_close(struct device_batch *batch);
#endif
