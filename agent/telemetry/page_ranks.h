/* The ranks that the live page has room for, of a run of any size. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_PAGE_RANKS_H
#define SHOAL_AGENT_TELEMETRY_PAGE_RANKS_H

#include <stdint.h>

struct json;

/* ranks: an array as JSON, an object for each rank (agent/health/rank_table.h). Of more than
 * PAGE_RANKS_MAX those that are not well are kept first, then the slowest, in their order.
 * *ret_hidden: how many of world_size are left out; 0: none. NULL: that is no array. The caller
 * owns it. */
struct json *page_ranks(const char *ranks, int64_t world_size, int64_t *ret_hidden);
#endif
