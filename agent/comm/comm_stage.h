/* A communicator for device memory over one that moves host memory. It copies a part of the data to
 * a page-locked buffer, lets the host communicator run its collective there, and copies the result
 * back. Two buffers take turns, so that copies and collectives overlap. For GPUs without NCCL and
 * for several ranks on one GPU. Sums have the bits of the host communicator. Knows no network. */
#ifndef SHOAL_AGENT_COMM_COMM_STAGE_H
#define SHOAL_AGENT_COMM_COMM_STAGE_H

#include "agent/comm/comm.h"

#include <stdbool.h>
#include <stddef.h>

enum { COMM_STAGE_BYTES = 4 << 20 }; /* of each of the two buffers, unless a test asks for less */

/* host: moves host memory, has more than one rank, and has no other user. owned: comm_close() of
 * this one closes it, too. buffer_bytes: at least 128 per rank. For streams of `device` only.
 * Errors: ERR_MEMORY. */
int comm_stage_open(struct comm *host, bool owned, struct device *device, size_t buffer_bytes,
                    struct comm **ret_comm, struct error *err);
#endif
