/* Ranks in a ring: each has a socket to the next rank and one from the previous rank. Every
 * collective is one pass of bytes around the ring. A rank forwards bytes as they arrive: no step
 * waits for a whole chunk. Knows sockets, deadlines and sums; knows no streams.
 *
 * One thread at a time uses a ring, apart from ring_abort(). After a pass has failed the ring
 * cannot be used again. */
#ifndef SHOAL_AGENT_COMM_RING_H
#define SHOAL_AGENT_COMM_RING_H

#include "agent/comm/net.h"
#include "agent/comm/store.h"
#include "kernels/dtype.h"

#include <stdbool.h>
#include <stdint.h>

struct ring;

struct ring_options {
    struct store *store;    /* for addresses, and to name missing ranks; outlives the ring */
    const char *id;         /* prefix of its keys in the store: the same on all its ranks, never
                               used before */
    int rank, size;         /* size >= 2 */
    const int *world_ranks; /* [size] the ranks' numbers in the job, for messages */
    int join_timeout_ms;    /* how long to wait for the others */
    int timeout_ms;         /* a pass in which no byte moves for so long fails */
    char interface[NET_INTERFACE_BYTES]; /* network interface others reach this process at; "": the
                                            one that leads to the store */
};

/* Connects to both neighbours; blocks until they are connected. Errors: ERR_TIMEOUT and ERR_PEER
 * name the rank; ERR_CONFIG names the interface. */
int ring_open(const struct ring_options *options, struct ring **ret_ring, struct error *err);
void ring_close(struct ring *r); /* NULL-safe */

/* Fails the running pass and all later ones with ERR_PEER and `reason`, at once.
 * From any thread. */
void ring_abort(struct ring *r, const char *reason);

/* A pass over `total` elements in `chunks` chunks: chunk i is [total * i / chunks, total * (i + 1)
 * / chunks). Step k sends chunk start - k and receives chunk start - k - 1, both modulo chunks. */
struct ring_pass {
    const char *name; /* of the collective: for messages, and compared between ranks */
    void *data;       /* total * element_bytes */
    const void *send; /* NULL, or an exchange of two ranks in one step: this rank's half of the
                         total lies here, and the other's half comes to `data` */
    int64_t total;    /* elements */
    int element_bytes;
    enum dtype dtype; /* if it is reduced */
    int chunks, start;
    int out_steps, in_steps; /* chunks to send and to receive. Step k + 1 sends the chunk that step
                                k has received; with one chunk, step k sends what it receives. A
                                rank that receives nothing sends its own data. */
    int reduce_steps;        /* the first so many received chunks are added to the chunk in place */
    bool mean;               /* the last of these sums is divided by the number of ranks */
};

/* Runs the pass. Errors: ERR_PEER if a neighbour is gone or the ring was aborted; ERR_TIMEOUT names
 * the ranks that did not start the pass; ERR_INPUT if the previous rank runs another collective. */
int ring_run(struct ring *r, const struct ring_pass *pass, struct error *err);
#endif
