/* The communicator for what the ranks' devices hold, made from the one between their hosts: which
 * of those there are can move it, so that all ranks choose alike. */
#ifndef SHOAL_AGENT_COMM_DEVICE_H
#define SHOAL_AGENT_COMM_DEVICE_H

#include "agent/comm/comm_nccl.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum comm_device_how { COMM_DEVICE_AUTO, COMM_DEVICE_NCCL, COMM_DEVICE_HOST };

struct comm_device_options {
    struct comm *host;     /* of all ranks; outlives what is made of it */
    struct device *device; /* this rank's; NULL: it could not be opened, and *err says why */
    bool may_share;        /* other ranks may have the same */
    enum comm_device_how how;
    struct comm_nccl_options nccl; /* store NULL: there is none, and no NCCL; is_concurrent,
                                      registers: where every rank's NCCL can */
};

/* Collective. Ranks share a GPU if theirs have one device_identity(). *ret_comm may be
 * options->host itself, which stays the caller's; anything else is closed by comm_close().
 * *ret_notice (of at least COMM_NOTICE_BYTES): what people should know of the choice; "" if
 * nothing. Errors, the same on all ranks: a rank's *err; ERR_CONFIG if devices differ or are shared
 * and may not be. */
enum { COMM_NOTICE_BYTES = 400 };
int comm_device_open(const struct comm_device_options *options, struct comm **ret_comm,
                     char *ret_notice, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
