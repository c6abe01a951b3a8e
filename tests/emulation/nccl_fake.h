/* What the parts of the fake NCCL share: nccl.c has NCCL's names, nccl_collective.c what runs on
 * streams, nccl_window.c symmetric windows. */
#ifndef SHOAL_TESTS_EMULATION_NCCL_FAKE_H
#define SHOAL_TESTS_EMULATION_NCCL_FAKE_H

#include "agent/comm/nccl_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { RANGES = 64, RANKS = 16, CHUNK_BYTES = 64 * 1024, REMOTE_ERROR = 6, WAIT_US = 50 };

/* What a rank shows the others; step is atomic, as all that other threads change below. */
struct slot {
    __attribute__((aligned(
        64))) unsigned long step; /* 2 n + 1: its chunk n is there; 2 n + 2: it has read all */
    struct header {
        char op[16];
        uint64_t number, count;
        int type, reduction, root;
        uint64_t launch; /* of all that the rank has launched; 0: not compared */
        struct place {
            uint64_t window, offset; /* counted from 1; 0: it lies in none */
        } send, recv;
    } header;
    unsigned long windows;       /* that it has registered, or begun to */
    size_t window_bytes[RANGES]; /* of each */
    __attribute__((aligned(64))) unsigned char data[CHUNK_BYTES];
};

struct meeting {
    int joined;
    struct slot slots[RANKS];
};

/* A rank: the thread that opened communicators, of which it may have several. */
struct owner {
    int comms;
    uint64_t launches;
    const struct ncclComm *runs; /* has a collective that has begun and not ended; or NULL */
};

struct range {
    const unsigned char *begin, *end; /* NULL: none */
};

/* Whoever frees memory looks at the ranges of all communicators, whichever thread they are of. */
static inline void range_set(struct range *range, struct range value)
{
    range->end = value.end;
    __atomic_store_n(&range->begin, value.begin, __ATOMIC_SEQ_CST);
}

struct ncclComm {
    struct owner *owner;
    struct range registered[RANGES];
    struct window {
        struct range range; /* NULL: it is deregistered */
        int number;         /* in their order, from 1 */
        int users;          /* collectives given that have not ended; atomic */
        void **ret_handle;
    } windows[RANGES];
    int window_count;
    struct window *registering; /* the one that other ranks may not have come to; or NULL */
    uint64_t windowed;          /* collectives with both buffers in windows */
    struct ncclComm *next;      /* of all: what was aborted may still lie on a stream */
    struct meeting *meeting;
    char name[sizeof(struct nccl_id)];
    int rank, size;
    uint64_t chunks;  /* done */
    uint64_t numbers; /* collectives given */
    bool is_aborted;  /* its collectives end at once */
    int error;
    const char *inside; /* the call that a thread is in; NULL: none is */
    int under_way;      /* collectives given that have not ended */
    bool has_launch;    /* its last collective is brought on its way by a thread of ours, */
    bool is_launched;   /* which has done so */
    pthread_t launch;
    /* The sends and receives of the group that is open: one of each with every rank. */
    struct peers {
        const unsigned char *send[RANKS]; /* NULL: none yet */
        unsigned char *recv[RANKS];
        size_t count;
        int type, sends, recvs;
        void *stream;
    } peers;
};

/* The text of a setting of FAKE_NCCL, up to a comma or its end; NULL: it is not there. */
const char *fake_nccl_setting(const char *name);

int fake_nccl_version(void);   /* as ncclGetVersion() gives it */
int fake_nccl_this_rank(void); /* of the calling thread, which has opened communicators; else -1 */
/* Says why in a line, and ends the test. */
void fake_nccl_end(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the test if a communicator has registered memory that begins there. */
void fake_nccl_must_be_free(const void *memory);

/* Whether other ranks have not come to its last window yet. Then it is the caller's. */
bool fake_nccl_is_registering(struct ncclComm *c);
bool fake_nccl_has_windows(const struct ncclComm *c);
/* The window that all of memory[bytes] lies in, at *ret_offset; NULL: none of it does. Ends the
 * test where a part of it does. */
struct window *fake_nccl_window_of(struct ncclComm *c, const void *memory, size_t bytes,
                                   uint64_t *ret_offset);

/* Memory of the emulated GPU, or of the host where there is none; NULL: there is no more. */
void *fake_nccl_alloc(size_t bytes);
void fake_nccl_free(void *memory);

/* A thread is in a call with the communicator: a second one at a time ends the test. */
void fake_nccl_enter(struct ncclComm *c, const char *call);
int fake_nccl_leave(struct ncclComm *c, int result);

/* Has a thread put a collective on the stream, or run it. total: elements of `send`. An NCCL
 * result: it is in progress. */
int fake_nccl_put(struct ncclComm *c, const struct header *header, const void *send, void *recv,
                  size_t total, void *stream);

/* ncclSend() of `send`, or ncclRecv() to `recv`; the other one is NULL. Ends the test where it does
 * not fit to those before: one of each with every rank, all alike. */
int fake_nccl_add_peer(struct ncclComm *c, int peer, const void *send, void *recv, size_t count,
                       int type, void *stream);
/* Has what was added so put on its stream, as one collective. An NCCL result. */
int fake_nccl_put_peers(struct ncclComm *c);
#endif
