/* Copies of this rank's weights and optimizer state to host memory, on a stream of their own beside
 * the training: behind the update that was queued last, and before the next one overwrites them.
 * For devices whose memory is not the host's. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_COPY_H
#define SHOAL_AGENT_TRAINER_MEMORY_COPY_H

#include "agent/trainer/host_state.h"

struct memory_copy {
    struct shard *shard;      /* not owned */
    struct stream *stream;    /* NULL: not open. Whoever uses a copy goes on there */
    struct event *updated;    /* on the update stream: what is copied is there */
    struct event *copied;     /* on this one */
    void *locked;             /* the host memory, page-locked; NULL: the system refused that */
    void *staging;            /* page-locked; instead */
    bool is_under_way;        /* the next update has to wait for it */
    int64_t begin_ns, end_ns; /* of that wait, on the device */
};

/* memory[bytes]: where copies go; starts at a page, and stays mapped until memory_copy_close().
 * Errors: ERR_MEMORY, and those of the device. */
int memory_copy_open(struct memory_copy *copy, struct shard *shard, void *memory, size_t bytes,
                     struct error *err);
void memory_copy_close(struct memory_copy *copy); /* also one that is all zero; waits */

/* Queues it. host: lies in the memory; it is read behind copy->stream only. */
void memory_copy_queue(struct memory_copy *copy, const struct host_state *host);
/* Before an update of weights or optimizer state is queued. */
void memory_copy_before_update(struct memory_copy *copy);
/* How long the update behind the last copy had to wait for it. The stream of updates is synced. */
int64_t memory_copy_delay_us(const struct memory_copy *copy);
#endif
