/* Memory that a rank leaves behind: the launcher holds a file without a name (memfd) for each local
 * rank, and hands it to the rank at each start. Its pages stay while either has it open, and count
 * to the container's memory. Knows not what is in it. */
#ifndef SHOAL_AGENT_LAUNCH_RANK_MEMORY_H
#define SHOAL_AGENT_LAUNCH_RANK_MEMORY_H

#include "base/error.h"

#include <stdint.h>

/* ---- in the launcher ---- */

/* An empty one, above 0; the caller closes it. Errors: ERR_IO. */
int rank_memory_open(int local_rank, int *ret_fd, struct error *err);
/* Hands it to the program that this process executes next: called in the child, between fork and
 * exec. 0: it gets none. */
void rank_memory_set_inheritable(int fd);

/* ---- in the rank ---- */

/* What rank_memory_set_inheritable() put into the environment; 0: there is none. */
int rank_memory_inherit(void);
/* Bytes that it takes now; 0 without any. */
int64_t rank_memory_used(int fd);
/* Maps `bytes` of it, which it has from then on; what was in it before stays as far as it goes.
 * Errors: ERR_MEMORY, ERR_IO. */
int rank_memory_map(int fd, int64_t bytes, void **ret_memory, struct error *err);
void rank_memory_unmap(void *memory, int64_t bytes);
#endif
