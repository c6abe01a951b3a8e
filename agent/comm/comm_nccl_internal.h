/* Private to comm_nccl.c (collectives, opening, closing), comm_nccl_call.c (one call into NCCL,
 * errors and aborts while it runs) and comm_nccl_window.c (symmetric windows). */
#ifndef SHOAL_AGENT_COMM_COMM_NCCL_INTERNAL_H
#define SHOAL_AGENT_COMM_COMM_NCCL_INTERNAL_H

#include "agent/comm/comm_nccl.h"
#include "agent/comm/comm_split.h"
#include "agent/comm/nccl_buffers.h"
#include "agent/comm/stream_marks.h"

#include <pthread.h>
#include <stdbool.h>

/* Shared by a communicator and all that were split from it. */
struct comm_nccl_shared {
    struct nccl_api api;
    struct comm_nccl_options options;
    struct device *device;
    struct watchdog *watchdog;
    struct nccl_buffers *buffers; /* NULL: memory is not registered */
    int references;               /* communicators that are open; used by one thread */
    /* Held from a call into NCCL until NCCL has taken it. A non-blocking communicator allows one
     * call at a time, ncclCommGetAsyncError() included, and must not be aborted during one. */
    pthread_mutex_t calls;
    /* The first call that NCCL refused; ERR_NONE: none. Its output was never written, so the run
     * must fail even if collectives are not aborted. Guarded by `refusal`. */
    struct error refused;
    pthread_mutex_t refusal;
};

struct comm_nccl {
    struct comm head;
    struct comm_nccl_shared *shared;
    struct comm_group group;
    int splits; /* done */
    int told;   /* exchanges about windows, done */
    nccl_comm nccl;
    void *token;                      /* a float on the device, for barriers */
    struct comm_nccl_window *windows; /* the newest first */
    struct stream_marks *marks;
    struct watched_comm watched;
};

/* Polls until NCCL has taken a call that gave `result`; the caller holds `calls`. NCCL_IN_PROGRESS:
 * the watchdog has found a failure meanwhile, and will abort. */
int comm_nccl_settle(struct comm_nccl *c, int result);
/* Called before a call into NCCL on stream s. bytes: this rank's share of whole_bytes. false: a
 * failure was found, do not call NCCL. */
bool comm_nccl_begin(struct comm_nccl *c, struct stream *s, const char *op, int64_t bytes,
                     int64_t whole_bytes);
/* The same; also registers the memory if options.registers. *ret_result: NCCL's result of that.
 * all[whole_bytes]: the buffer of all ranks' shares; other[other_bytes]: this rank's share, or
 * what it sends them. */
bool comm_nccl_begin_registered(struct comm_nccl *c, struct stream *s, const char *op,
                                const void *all, int64_t whole_bytes, const void *other,
                                int64_t other_bytes, int *ret_result);
/* Called after either in every case. Waits until NCCL has taken the call; reports a refused call to
 * the watchdog. result: the call's, or *ret_result, or NCCL_SUCCESS. */
void comm_nccl_end(struct comm_nccl *c, struct stream *s, const char *op, int result);

/* As comm_open_window(). Errors: also what NCCL refuses. */
int comm_nccl_open_window(struct comm *c, struct stream *s, size_t bytes,
                          struct comm_window *ret_window, struct error *err);
/* Whether all of memory[bytes] lies in a window of this communicator. */
bool comm_nccl_in_window(const struct comm_nccl *c, const void *memory, int64_t bytes);
/* Before the communicator is destroyed, with all it was used for ended; not after an abort. */
void comm_nccl_deregister_windows(struct comm_nccl *c);
/* Gives their memory back, after the communicator is destroyed or aborted. */
void comm_nccl_free_windows(struct comm_nccl *c);

/* For the watchdog; ctx: a struct comm_nccl. -1 if NCCL reports an asynchronous error. */
int comm_nccl_check(void *ctx, struct error *err);
/* How many collectives have ended on the device. */
uint64_t comm_nccl_count_ended(void *ctx);
void comm_nccl_abort_all(const struct watched_comm *first);

/* For the device; ctx: a struct comm_nccl_shared. The device returns this block to the driver. */
void comm_nccl_deregister(void *ctx, void *block, size_t bytes);
/* -1 after an abort or a refused call: results on the device's streams may then be wrong. */
int comm_nccl_check_health(void *ctx, struct error *err);
#endif
