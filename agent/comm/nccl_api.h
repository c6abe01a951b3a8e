/* The part of NCCL that the agent calls, declared again so that no build needs nccl.h, and loaded
 * at run time. All of it is in NCCL since 2.14 (2022) unless noted: the first version whose calls
 * can be polled until a deadline. Values are those of nccl.h, versions 2.14 to 2.28. */
#ifndef SHOAL_AGENT_COMM_NCCL_API_H
#define SHOAL_AGENT_COMM_NCCL_API_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    NCCL_OLDEST = 21400, /* 2.14.0, as ncclGetVersion() gives it */
    /* Since 2.26, with NCCL_LAUNCH_ORDER_IMPLICIT=1, collectives of several communicators run at
     * once in the order in which the host called them. Before, or without it, they can deadlock
     * unless events put all of them into one order (NCCL's user guide, "Using multiple NCCL
     * communicators concurrently"). */
    NCCL_ORDERS_LAUNCHES = 22600,
    /* The CUDA version (12.3) that the driver must support for that. With an older driver NCCL runs
     * the collectives one after the other. */
    NCCL_ORDERS_DRIVER = 12030,
    /* Since 2.22, ncclCommAbort() works between ncclGroupStart() and ncclGroupEnd(): NCCL signals
     * all communicators before it waits for any. Before, each abort waits for everything on the
     * device, also for the other communicators' collectives. */
    NCCL_ABORTS_TOGETHER = 22200,
    /* Since 2.27 at the latest, ncclMemAlloc() rounds up to the granularity of cuMemCreate() alone
     * (src/allocator.cc): 2 MiB. Before it was multicast's, which can be much more than the plan of
     * memory has room for. */
    NCCL_ROUNDS_LITTLE = 22700,
    /* Since 2.27, ncclCommWindowRegister() (NCCL's release notes). The rules: comm_nccl.h. */
    NCCL_HAS_WINDOWS = 22700,
    /* Since 2.28 that call answers success at once, also of a communicator that is not blocking,
     * while a thread still registers (src/dev_runtime.cc): ncclCommGetAsyncError() knows. */
    NCCL_WINDOW_SAYS_DONE = 22800,
};

enum { NCCL_MEMORY_GRANULE = 2 << 20 /* bytes */ };
enum { NCCL_WIN_COLL_SYMMETRIC = 1 }; /* winFlags: the same offset on all ranks */

enum nccl_result {
    NCCL_SUCCESS = 0,
    NCCL_UNHANDLED_CUDA_ERROR = 1,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_IN_PROGRESS = 7,
};
enum nccl_type { NCCL_UINT8 = 1, NCCL_FLOAT32 = 7, NCCL_FLOAT64 = 8, NCCL_BFLOAT16 = 9 };
enum nccl_op { NCCL_SUM = 0, NCCL_AVG = 4 };

struct nccl_id { /* ncclUniqueId; passed by value */
    char bytes[128];
};

/* ncclConfig_t as of 2.14. A newer library uses its defaults for the fields that
 * `size` leaves out. */
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking; /* 0: calls return NCCL_IN_PROGRESS and are polled with comm_error */
};
enum { NCCL_CONFIG_MAGIC = 0xcafebeef };

typedef struct ncclComm *nccl_comm;

struct nccl_api {
    int (*get_version)(int *version);
    int (*get_unique_id)(struct nccl_id *id);
    int (*comm_init)(nccl_comm *comm, int size, struct nccl_id id, int rank,
                     struct nccl_config *config);
    int (*comm_finalize)(nccl_comm comm); /* completes queued collectives */
    int (*comm_destroy)(nccl_comm comm);
    int (*comm_abort)(nccl_comm comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*comm_error)(nccl_comm comm, int *error);
    const char *(*error_text)(int result);
    const char *(*last_error)(nccl_comm comm); /* the last error of this process, as text */
    /* stream: a cudaStream_t. */
    int (*all_gather)(const void *send, void *recv, size_t count, int type, nccl_comm comm,
                      void *stream);
    int (*reduce_scatter)(const void *send, void *recv, size_t recv_count, int type, int op,
                          nccl_comm comm, void *stream);
    int (*all_reduce)(const void *send, void *recv, size_t count, int type, int op, nccl_comm comm,
                      void *stream);
    int (*broadcast)(const void *send, void *recv, size_t count, int type, int root, nccl_comm comm,
                     void *stream);
    /* Between group_start() and group_end() alone: only then NCCL does several of them at once, and
     * ranks that send to each other do not wait for each other. */
    int (*send)(const void *send, size_t count, int type, int peer, nccl_comm comm, void *stream);
    int (*recv)(void *recv, size_t count, int type, int peer, nccl_comm comm, void *stream);
    /* Since 2.19; NULL before. */
    int (*comm_register)(nccl_comm comm, void *memory, size_t bytes, void **handle);
    int (*comm_deregister)(nccl_comm comm, void *handle);
    /* Memory that NVLink SHARP can use, too, of the thread's current GPU; NULL before
     * NCCL_ROUNDS_LITTLE. A multiple of NCCL_MEMORY_GRANULE loses nothing. */
    int (*mem_alloc)(void **ret_memory, size_t bytes);
    int (*mem_free)(void *memory);
    /* Since NCCL_HAS_WINDOWS; NULL before. Registering is collective. *window is written by the
     * time the call is settled; NULL: NCCL has registered nothing, which is no error. */
    int (*window_register)(nccl_comm comm, void *memory, size_t bytes, void **window, int flags);
    int (*window_deregister)(nccl_comm comm, void *window); /* by each rank for itself */
    void *library;                                          /* NULL: none was found */
    int version;                                            /* of the library: 22809 is 2.28.9 */
    bool orders_launches;                                   /* see NCCL_ORDERS_LAUNCHES */
};

/* Uses the NCCL that the process has loaded, else the one that library_open() finds. Sets
 * NCCL_LAUNCH_ORDER_IMPLICIT=1 unless the environment has it. Errors: library_open()'s;
 * ERR_UNSUPPORTED if it is too old. *ret_api has `library` and `version` as far as they are known
 * then. */
int nccl_api_open(struct nccl_api *ret_api, struct error *err);

/* Whether this process has loaded NCCL, by whatever way. From any thread. */
bool nccl_api_is_loaded(void);

/* Describes the failed call with NCCL's own text in *err; returns -1. what: its purpose. comm: may
 * be NULL. ERR_CONFIG for an invalid argument or usage, ERR_DEVICE where a CUDA call of NCCL's
 * failed, else ERR_PEER. */
int nccl_api_fail(const struct nccl_api *api, nccl_comm comm, int result, const char *what,
                  struct error *err);

/* Whether this process may register symmetric windows. If not, *ret_why says why: no functions, or
 * a variable with which NCCL does not register any (NCCL_WIN_ENABLE, NCCL_CUMEM_ENABLE,
 * NCCL_LOCAL_REGISTER; user guide, "Environment Variables"). A rank that stayed away from a
 * registration would let the others wait. */
enum { NCCL_WHY_BYTES = 96 };
bool nccl_api_has_windows(const struct nccl_api *api, char ret_why[NCCL_WHY_BYTES]);

/* "2.28.9". out: at least 16 bytes. */
void nccl_api_version_text(int version, char *out);
#endif
