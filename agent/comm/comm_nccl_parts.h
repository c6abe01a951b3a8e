/* What comm_nccl.c (collectives, opening and closing) and comm_nccl_call.c (one call into NCCL, and
 * what becomes of a communicator meanwhile) share. */
#ifndef SHOAL_AGENT_COMM_NCCL_PARTS_H
#define SHOAL_AGENT_COMM_NCCL_PARTS_H

#include "agent/comm/comm_nccl.h"
#include "agent/comm/comm_split.h"
#include "agent/comm/nccl_buffers.h"
#include "agent/comm/stream_marks.h"

#include <pthread.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a communicator shares with those that it was split into. */
struct comm_nccl_shared {
    struct nccl_api api;
    struct comm_nccl_options options;
    struct device *device;
    struct watchdog *watchdog;
    struct nccl_buffers *buffers; /* NULL: they are not registered */
    int references;               /* of communicators: opened and closed by one thread */
    /* Held while NCCL is called with a communicator that is watched, until the call is settled: one
     * takes no two calls at a time, not even a question for its state, and is not aborted under
     * one. */
    pthread_mutex_t calls;
    /* The first call that NCCL refused: it left its result unwritten, so nothing is well any more,
     * whether or not collectives are aborted. ERR_NONE: none; under `refusal`. */
    struct error refused;
    pthread_mutex_t refusal;
};

struct comm_nccl {
    struct comm head;
    struct comm_nccl_shared *shared;
    struct comm_group group;
    int splits; /* done */
    nccl_comm nccl;
    void *token; /* a float on the device, for barriers */
    struct stream_marks *marks;
    struct watched_comm watched;
};

/* Before NCCL is called, on stream s. bytes: this rank's part of whole_bytes. False: there is
 * nothing to call any more. */
bool comm_nccl_begin(struct comm_nccl *c, struct stream *s, const char *op, int64_t bytes,
                     int64_t whole_bytes);
/* The same, and registers the memory if it is to be; *ret_result: how that went. all: what all
 * ranks have of a collective, part: this rank's, [bytes]. */
bool comm_nccl_begin_with(struct comm_nccl *c, struct stream *s, const char *op, const void *all,
                          const void *part, int64_t bytes, int *ret_result);
/* Always, behind either; waits until NCCL has taken the call. result: of the call, or what
 * comm_nccl_begin_with() gave, or NCCL_SUCCESS. What NCCL refuses is told to the watch. */
void comm_nccl_end(struct comm_nccl *c, struct stream *s, const char *op, int result);

/* For the watch; ctx: a struct comm_nccl. Whether NCCL tells of an error between ranks. */
int comm_nccl_check(void *ctx, struct error *err);
/* Collectives that the device is done with. */
uint64_t comm_nccl_count_ended(void *ctx);
void comm_nccl_abort_all(const struct watched_comm *first);

/* For the device; ctx: a struct comm_nccl_shared. A block is given back to the system. */
void comm_nccl_forget_memory(void *ctx, void *block, size_t bytes);
/* Whether what has ended on the device's streams is to be trusted. */
int comm_nccl_is_well(void *ctx, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
