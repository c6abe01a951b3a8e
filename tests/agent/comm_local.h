/* Ranks that are threads of one process. They meet in a store in memory; comm_ring does the
 * rest. */
#ifndef SHOAL_TESTS_AGENT_COMM_LOCAL_H
#define SHOAL_TESTS_AGENT_COMM_LOCAL_H

#include "agent/comm/comm_ring.h"

/* What the ranks of one group share. */
struct comm_local;

struct comm_local *comm_local_open(void);
/* NULL-safe. All communicators are closed before. */
void comm_local_close(struct comm_local *group);

/* The store of the group: comm_local_join is comm_ring_open over it. */
struct store *comm_local_store(struct comm_local *group);

/* Called by one thread for each rank: blocks until all `size` have called it. Errors as
 * comm_ring_open. */
int comm_local_join(struct comm_local *group, int rank, int size, int timeout_ms,
                    struct comm **ret_comm, struct error *err);
#endif
