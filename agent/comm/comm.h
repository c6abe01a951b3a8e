/* Collectives between ranks, as a struct of functions. CPU ranks use a ring of sockets (comm_ring),
 * GPUs use NCCL (comm_nccl) or host memory (comm_stage). Knows bytes and ranks, not models.
 *
 * A collective is queued on a stream and runs in stream order. All ranks of a communicator must
 * call the same collectives in the same order. If a peer dies, a deadline passes or a rank aborts,
 * the stream fails: stream_sync() returns ERR_PEER or ERR_TIMEOUT, which names the collective and
 * the rank. The communicator cannot be used after that. With one rank, collectives are copies. */
#ifndef SHOAL_AGENT_COMM_COMM_H
#define SHOAL_AGENT_COMM_COMM_H

#include "base/error.h"
#include "kernels/device.h"
#include "kernels/dtype.h"

#include <stdbool.h>
#include <stdint.h>

enum comm_reduce { COMM_SUM, COMM_MEAN };

/* The collectives that move data, X(KIND, name): counters, metrics and reports follow this list. */
/* clang-format off */
#define COMM_COLLECTIVES(X)           \
    X(ALL_GATHER, all_gather)         \
    X(REDUCE_SCATTER, reduce_scatter) \
    X(ALL_REDUCE, all_reduce)         \
    X(BROADCAST, broadcast)           \
    X(ALL_TO_ALL, all_to_all)
/* clang-format on */
enum comm_collective {
#define COMM_COLLECTIVE_KIND(kind, name) COMM_##kind,
    COMM_COLLECTIVES(COMM_COLLECTIVE_KIND)
#undef COMM_COLLECTIVE_KIND
        COMM_COLLECTIVE_KINDS
};
const char *comm_collective_name(enum comm_collective collective); /* "all_gather", ... */

/* Counters of a communicator since it was opened: for tests of the schedule and the
 * run's summary. */
struct comm_stats {
    int64_t calls[COMM_COLLECTIVE_KINDS]; /* all_reduce_f64 is an all_reduce */
    int64_t bytes_sent;                   /* by this rank, payload only */
};
/* Adds `more` to *stats. */
void comm_stats_add(struct comm_stats *stats, const struct comm_stats *more);

struct comm;

/* Memory of the device that all ranks of a communicator have registered with it at once. A gather
 * or reduction may then be faster, if its buffers lie there at the same offsets on all ranks: where
 * one rank's do and another's do not, the ranks wait for each other forever. */
struct comm_window {
    void *memory; /* NULL: the ranks do without */
    size_t bytes;
    char why[160]; /* they do without */
};

struct comm_functions {
    /* Elements of dtype t, here also DTYPE_E4M3, and nowhere else: recv[r * count .. (r + 1) *
     * count) on every rank = rank r's send[0 .. count). send may be the element rank * count of
     * recv (in place). */
    void (*all_gather)(struct comm *c, struct stream *s, enum dtype t, void *recv, const void *send,
                       int64_t count);
    /* recv[0 .. count) on rank r = reduction over all ranks of their send[r * count .. (r + 1) *
     * count). recv may be the element rank * count of send. send is overwritten. The order of the
     * sum depends only on the number of ranks and the chunk, so repeated runs give the same bits.
     * bf16: each addition is done in fp32 and rounded to bf16. */
    void (*reduce_scatter)(struct comm *c, struct stream *s, enum dtype t, void *recv, void *send,
                           int64_t count, enum comm_reduce how);
    /* data[0 .. count) on every rank = reduction over all ranks; the same bits on
     * each. In place. */
    void (*all_reduce)(struct comm *c, struct stream *s, enum dtype t, void *data, int64_t count,
                       enum comm_reduce how);
    /* The same for doubles, summed in rank order; count <= 64. For losses and counts. */
    void (*all_reduce_f64)(struct comm *c, struct stream *s, double *data, int64_t count);
    /* data[0 .. bytes) on every rank = root's. */
    void (*broadcast)(struct comm *c, struct stream *s, void *data, int64_t bytes, int root);
    /* recv[r * count .. (r + 1) * count) = what rank r's send has for this rank. send has for rank
     * q the `count` elements from places[q] * stride on; places NULL: from q * stride on. stride:
     * the same on all ranks, >= count. recv and send do not overlap. places: used until the stream
     * has done it. */
    void (*all_to_all)(struct comm *c, struct stream *s, enum dtype t, void *recv, const void *send,
                       int64_t count, int64_t stride, const int *places);
    /* Every rank's stream waits until the streams of all ranks have reached it. */
    void (*barrier)(struct comm *c, struct stream *s);
    /* Opens a communicator of the ranks that pass the same color, in the order of their ranks.
     * Blocks until all ranks of c have called it. */
    int (*split)(struct comm *c, int color, struct comm **ret_comm, struct error *err);
    /* As comm_open_window(); NULL where has_windows is never true. */
    int (*open_window)(struct comm *c, struct stream *s, size_t bytes, struct comm_window *ret,
                       struct error *err);
    /* Fails every pending and later collective of this rank with ERR_PEER and `reason`, at once.
     * From any thread. */
    void (*abort)(struct comm *c, const char *reason);
    void (*close)(struct comm *c);
};

/* The common head of every implementation. */
struct comm {
    const struct comm_functions *fn;
    int rank, size;
    /* true: collectives of this communicator and of those split from it may run at once on
     * different streams. Every rank must then call all of them in one order from one thread. false:
     * the caller must order them by events, or two ranks wait for each other in different
     * collectives. */
    bool is_concurrent;
    bool has_windows; /* comm_open_window() may give memory */
    /* Whose tensors the collectives move that are queued next, for who watches them; NULL:
     * nobody's. Set by the queueing thread; lives until they have ended. */
    const char *unit;
    struct comm_stats stats; /* counted when a collective is queued; read by the queueing thread */
    int64_t ranges;          /* profiler ranges so far */
};

/* The one-rank communicator. */
int comm_self_open(struct comm **ret_comm, struct error *err);
/* NULL-safe. The caller has synced the streams that it was used on, also failed ones. */
void comm_close(struct comm *c);

/* Opens a window of so many bytes, or of none where not every rank can. Collective, on the thread
 * and the device on which the communicator was opened; the caller waits for `s`. `bytes` is the
 * same on all ranks. The memory lives until comm_close(). Errors: ERR_CONFIG if `bytes` differs,
 * ERR_TIMEOUT, ERR_PEER. */
int comm_open_window(struct comm *c, struct stream *s, size_t bytes, struct comm_window *ret_window,
                     struct error *err);

/* For implementations: begins a profiler range around a collective, until stream_range_end(). op: a
 * string literal. bytes: of the whole tensor, that is an all_gather's output or a reduce_scatter's
 * input. */
void comm_range_begin(struct comm *c, struct stream *s, const char *op, int64_t bytes);
#endif
