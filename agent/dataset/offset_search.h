/* Things that stand behind one another, each of which knows how much there is before it: which one
 * a number falls into. Pure. */
#ifndef SHOAL_AGENT_DATASET_OFFSET_SEARCH_H
#define SHOAL_AGENT_DATASET_OFFSET_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* The last of `count` (1 or more) things before which there is no more than `at`, or the first one.
 * What is empty is passed over. before: of the first thing; `stride` bytes on is the next one's,
 * not less. */
int64_t offset_search(const int64_t *before, size_t stride, int64_t count, int64_t at);
#endif
