/* Memory that a rank leaves behind: the launcher holds a file without a name (memfd) for each local
 * rank, and hands it to the rank at each start. Its pages stay while either has it open, and count
 * to the container's memory. Knows not what is in it. */
#ifndef SHOAL_AGENT_LAUNCH_RANK_MEMORY_H
#define SHOAL_AGENT_LAUNCH_RANK_MEMORY_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- in the launcher ---- */

/* An empty one, above 0; the caller closes it. Errors: ERR_IO. */
int rank_memory_open(int local_rank, int *ret_fd, struct error *err);
/* The same under a name of the caller's, as people find it in /proc/PID/fd. */
int rank_memory_open_as(const char *name, int *ret_fd, struct error *err);
/* Hands it to the program that this process executes next: called in the child, between fork and
 * exec. 0: it gets none. */
void rank_memory_set_inheritable(int fd);

/* ---- in the rank ---- */

bool rank_memory_is(int fd); /* such memory, of a launcher */
/* What rank_memory_set_inheritable() put into the environment: once, before any thread starts. 0:
 * there is none. */
int rank_memory_inherit(void);
/* Gives all of it back to the system; nobody may have it mapped. */
void rank_memory_empty(int fd);
/* Bytes that it takes now; 0 without any. */
int64_t rank_memory_used(int fd);
/* Where it ends, as rank_memory_map() said last; 0 without any. */
int64_t rank_memory_size(int fd);
/* The page before which nothing was written; 0 if nothing was at all. */
int64_t rank_memory_begin(int fd);
/* Maps `bytes` of it from `offset` on, a multiple of the system's page; it ends behind them. What
 * was in it before stays as far as it goes. Errors: ERR_MEMORY, ERR_IO. */
int rank_memory_map(int fd, int64_t offset, int64_t bytes, void **ret_memory, struct error *err);
/* Gives all but that part of it back to the system, where that takes it. */
void rank_memory_keep(int fd, int64_t begin, int64_t end);
bool rank_memory_gives_back(int fd); /* whether the system takes what lies in front */
void rank_memory_unmap(void *memory, int64_t bytes);
#endif
