/* Ranks in a ring: each has one socket to the next rank and one from the previous one, and every
 * collective is one pass of bytes around them. Bytes are passed on as they come in: no step waits
 * for a whole chunk. Knows sockets, deadlines and sums; knows no streams.
 *
 * A ring is used by one thread at a time, apart from ring_abort. Once a pass has failed the ring is
 * dead for good. */
#ifndef SHOAL_AGENT_RING_H
#define SHOAL_AGENT_RING_H

#include "agent/comm/net.h"
#include "agent/comm/store.h"
#include "kernels/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ring;

/* What a ring is made of. */
struct ring_options {
    struct store *store;    /* to meet, and to find out who is missing; outlives the ring */
    const char *id;         /* of this ring in the store: the same on all its ranks, never used
                               before */
    int rank, size;         /* size >= 2 */
    const int *world_ranks; /* [size] the ranks' numbers in the job, for messages */
    int join_timeout_ms;    /* how long to wait for the others */
    int timeout_ms;         /* a pass in which nothing moves for so long has failed */
    char interface[NET_INTERFACE_BYTES]; /* network interface others reach this process at; "": the
                                            one that leads to the store */
};

/* Meets the other ranks. Blocks until all neighbours are connected. Errors: ERR_TIMEOUT and
 * ERR_PEER name the rank; ERR_CONFIG names the interface. */
int ring_open(const struct ring_options *options, struct ring **ret_ring, struct error *err);
void ring_close(struct ring *r); /* NULL-safe */

/* Makes the pass that runs and all later ones fail with ERR_PEER and `reason`, at once. From any
 * thread. */
void ring_abort(struct ring *r, const char *reason);

/* A pass over `total` elements that lie in `chunks` chunks: chunk i is [total * i / chunks, total *
 * (i + 1) / chunks). Step k sends chunk start - k and receives chunk start - k - 1, modulo chunks
 * (with one chunk: itself). */
struct ring_pass {
    const char *name; /* of the collective, for messages and to check that all agree */
    void *data;       /* total * element_bytes */
    int64_t total;    /* elements */
    int element_bytes;
    enum dtype dtype; /* if it is reduced */
    int chunks, start;
    int out_steps, in_steps; /* how many chunks to send and to receive. What step k receives is what
                                step k + 1 sends (with one chunk: step k itself), except that a rank
                                that receives nothing sends what is its own. */
    int reduce_steps;        /* the first so many chunks received are added to what lies there */
    bool mean;               /* the last of these is then divided by the number of ranks */
};

/* Runs the pass. Errors: ERR_PEER if a neighbour is gone or the ring was aborted; ERR_TIMEOUT names
 * the rank that did not come; ERR_INPUT if the previous rank runs another collective. */
int ring_run(struct ring *r, const struct ring_pass *pass, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
