/* Collectives between ranks, as a struct of functions: processes on CPUs over a ring of sockets
 * (comm_ring, also threads of one process in tests), GPUs over NCCL (comm_nccl) or through their
 * hosts (comm_stage). Knows bytes and ranks, not models.
 *
 * Every collective is put on a stream and runs in stream order; all ranks of a communicator must
 * call the same collectives in the same order. A peer that dies, a deadline that passes or an abort
 * fails the stream: the error (ERR_PEER, ERR_TIMEOUT) names the collective and the rank and comes
 * out of stream_sync(). After that the communicator is dead for good. A communicator of one rank
 * needs no network and its collectives are copies. */
#ifndef SHOAL_AGENT_COMM_H
#define SHOAL_AGENT_COMM_H

#include "base/error.h"
#include "kernels/device.h"
#include "kernels/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum comm_reduce { COMM_SUM, COMM_MEAN };

/* What a communicator did since it was opened: for tests of the schedule, and for the summary of a
 * run. */
struct comm_stats {
    int64_t all_gathers, reduce_scatters, all_reduces, broadcasts;
    int64_t bytes_sent; /* by this rank, payload only */
};

struct comm;

struct comm_functions {
    /* Elements of dtype t: recv[r * count .. (r + 1) * count) on every rank = rank r's send[0 ..
     * count). send may be the element rank * count of recv (in place). */
    void (*all_gather)(struct comm *c, struct stream *s, enum dtype t, void *recv, const void *send,
                       int64_t count);
    /* recv[0 .. count) on rank r = reduction over all ranks of their send[r * count .. (r + 1) *
     * count). recv may be the element rank * count of send. send is scratch: its content is lost.
     * The order of the sum depends only on the world size and the chunk, so repeated runs give the
     * same bits. Of bf16 two are added in fp32 and their sum, or mean, is rounded. */
    void (*reduce_scatter)(struct comm *c, struct stream *s, enum dtype t, void *recv, void *send,
                           int64_t count, enum comm_reduce how);
    /* data[0 .. count) on every rank = reduction over all ranks; the same bits on each. In place.
     */
    void (*all_reduce)(struct comm *c, struct stream *s, enum dtype t, void *data, int64_t count,
                       enum comm_reduce how);
    /* The same for doubles, summed in rank order; count <= 64. For losses and counts. */
    void (*all_reduce_f64)(struct comm *c, struct stream *s, double *data, int64_t count);
    /* data[0 .. bytes) on every rank = root's. */
    void (*broadcast)(struct comm *c, struct stream *s, void *data, int64_t bytes, int root);
    /* No rank's stream passes before all have reached it. */
    void (*barrier)(struct comm *c, struct stream *s);
    /* A new communicator of the ranks that pass the same color, ordered by rank; blocks until all
     * ranks of c called it. */
    int (*split)(struct comm *c, int color, struct comm **ret_comm, struct error *err);
    /* Makes every pending and later collective of this rank fail with ERR_PEER and `reason`, at
     * once; may be called from any thread. */
    void (*abort)(struct comm *c, const char *reason);
    void (*close)(struct comm *c);
};

/* The common head of every implementation. */
struct comm {
    const struct comm_functions *fn;
    int rank, size;
    /* Collectives of this one and of those split from it may be under way at once, on streams of
     * their own, if every rank calls all of them in the same order from one thread. False: events
     * order what two of them are given, or each waits on a rank that is busy with the other. */
    bool is_concurrent;
    struct comm_stats stats; /* counted when a collective is queued; read by the queueing thread */
    int64_t ranges;          /* so far */
};

/* The one-rank communicator. */
int comm_self_open(struct comm **ret_comm, struct error *err);
/* NULL-safe. The streams it was used on are synced before, also when they have failed. */
void comm_close(struct comm *c);

/* For implementations: names what they queue for a collective, until stream_range_end(). op: lives
 * on. bytes: of the whole tensor, which an all_gather gives to each rank and a reduce_scatter takes
 * from each. */
void comm_range_begin(struct comm *c, struct stream *s, const char *op, int64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
