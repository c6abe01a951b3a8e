/* The part of NCCL's interface that is used here, declared anew so that no build needs its header,
 * and found at run time. Everything in it but what says otherwise is in NCCL since 2.14 (2022), the
 * first that can be waited for with a deadline; names without the library's nccl before them are
 * its own values (nccl.h, versions 2.14 to 2.28). */
#ifndef SHOAL_AGENT_NCCL_API_H
#define SHOAL_AGENT_NCCL_API_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NCCL_OLDEST = 21400, /* 2.14.0, as ncclGetVersion() gives it */
    /* From here on NCCL_LAUNCH_ORDER_IMPLICIT=1 lets collectives of several communicators run at
     * once in the order in which the host called them. Before, or without it, they deadlock unless
     * events put them all into one order (NCCL's user guide, "Using multiple NCCL communicators
     * concurrently"). */
    NCCL_ORDERS_LAUNCHES = 22600,
    /* ... and if the driver knows this CUDA: NCCL lets them run one after the other before. */
    NCCL_ORDERS_DRIVER = 12030,
    /* From here on communicators may be aborted in one group: all are told to end before any is
     * waited for. Before, each waits for all that the device runs, the others' collectives too. */
    NCCL_ABORTS_TOGETHER = 22200,
};

enum nccl_result {
    NCCL_SUCCESS = 0,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_IN_PROGRESS = 7,
};
enum nccl_type { NCCL_UINT8 = 1, NCCL_FLOAT32 = 7, NCCL_FLOAT64 = 8, NCCL_BFLOAT16 = 9 };
enum nccl_op { NCCL_SUM = 0, NCCL_AVG = 4 };

struct nccl_id { /* ncclUniqueId; passed by value */
    char bytes[128];
};

/* ncclConfig_t as of 2.14: the library takes what it does not find in it for its defaults. */
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking; /* 0: calls return at once and are asked for */
};
enum { NCCL_CONFIG_MAGIC = 0xcafebeef };

typedef struct ncclComm *nccl_comm;

struct nccl_api {
    int (*get_version)(int *version);
    int (*get_unique_id)(struct nccl_id *id);
    int (*comm_init)(nccl_comm *comm, int size, struct nccl_id id, int rank,
                     struct nccl_config *config);
    int (*comm_finalize)(nccl_comm comm); /* what is under way ends */
    int (*comm_destroy)(nccl_comm comm);
    int (*comm_abort)(nccl_comm comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*comm_error)(nccl_comm comm, int *error);
    const char *(*error_text)(int result);
    const char *(*last_error)(nccl_comm comm); /* what went wrong last in this process */
    /* stream: a cudaStream_t. */
    int (*all_gather)(const void *send, void *recv, size_t count, int type, nccl_comm comm,
                      void *stream);
    int (*reduce_scatter)(const void *send, void *recv, size_t recv_count, int type, int op,
                          nccl_comm comm, void *stream);
    int (*all_reduce)(const void *send, void *recv, size_t count, int type, int op, nccl_comm comm,
                      void *stream);
    int (*broadcast)(const void *send, void *recv, size_t count, int type, int root, nccl_comm comm,
                     void *stream);
    /* Since 2.19; NULL before. */
    int (*comm_register)(nccl_comm comm, void *memory, size_t bytes, void **handle);
    int (*comm_deregister)(nccl_comm comm, void *handle);
    int version;          /* of the library: 22809 is 2.28.9 */
    bool orders_launches; /* see NCCL_ORDERS_LAUNCHES */
};

/* The library that is loaded, or the one library_open() finds. NCCL_LAUNCH_ORDER_IMPLICIT is set to
 * 1 unless the environment has it. Errors: ERR_UNSUPPORTED if there is none, or it is too old. */
int nccl_api_open(struct nccl_api *ret_api, struct error *err);

/* Sets *err to what a call for `what` returned, in NCCL's words; returns -1. comm: NULL if there is
 * none. ERR_CONFIG if the call itself was wrong, else ERR_PEER. */
int nccl_api_fail(const struct nccl_api *api, nccl_comm comm, int result, const char *what,
                  struct error *err);

/* "2.28.9". out: at least 16 bytes. */
void nccl_api_version_text(int version, char *out);

#ifdef __cplusplus
}
#endif
#endif
