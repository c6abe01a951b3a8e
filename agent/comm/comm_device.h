/* Opens the communicator for device memory: NCCL, staging (comm_stage.h), or the hosts' own
 * communicator. All ranks make the same choice, over the communicator between their hosts. */
#ifndef SHOAL_AGENT_COMM_COMM_DEVICE_H
#define SHOAL_AGENT_COMM_COMM_DEVICE_H

#include "agent/comm/comm_nccl.h"

#include <stdbool.h>

enum comm_device_how { COMM_DEVICE_AUTO, COMM_DEVICE_NCCL, COMM_DEVICE_HOST };

struct comm_device_options {
    struct comm *host;     /* of all ranks; outlives the new communicator */
    struct device *device; /* this rank's; NULL: it could not be opened, and *err says why */
    bool may_share;        /* several ranks may share a GPU */
    enum comm_device_how how;
    struct comm_nccl_options nccl; /* store NULL: no NCCL; is_concurrent, registers and
                                      has_windows hold only where every rank's NCCL can */
};

/* Collective. Two ranks share a GPU if their device_uuid() is the same. *ret_comm may be
 * options->host, which stays the caller's; comm_close() any other one. *ret_notice (of at least
 * COMM_NOTICE_BYTES): a line for the log about the choice, and about GPUs of different kinds; "":
 * none. Errors, the same on all ranks:
 * the *err of a rank without a device; ERR_CONFIG if the ranks' kinds of device differ or ranks
 * share a GPU that they may not share. */
enum { COMM_NOTICE_BYTES = 1000 };
int comm_device_open(const struct comm_device_options *options, struct comm **ret_comm,
                     char *ret_notice, struct error *err);
#endif
