/* A communicator for memory that the host cannot touch: what another communicator moves between
 * hosts, this one copies to and from page-locked memory on both sides, in pieces, two at a time, so
 * that a piece is copied while another is on its way. For GPUs without NCCL, and for several ranks
 * on one GPU. Sums come out with the bits of the communicator below. Knows copies; no network. */
#ifndef SHOAL_AGENT_COMM_STAGE_H
#define SHOAL_AGENT_COMM_STAGE_H

#include "agent/comm/comm.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { COMM_STAGE_BYTES = 4 << 20 }; /* of each of the two buffers, unless a test asks for less */

/* host: moves host memory, has more than one rank, and is used by nobody else; owned: closed with
 * this one. buffer_bytes: at least 128 per rank. Used on streams of `device` only. Errors:
 * ERR_MEMORY. */
int comm_stage_open(struct comm *host, bool owned, struct device *device, size_t buffer_bytes,
                    struct comm **ret_comm, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
