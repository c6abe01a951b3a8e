/* The search of one process through the states of the small world: depth first, by copies of its
 * memory (region.h). What it has tried, and what it hands to other processes, they share. */
#ifndef SHOAL_TESTS_OPERATOR_HISTORIES_SEARCH_H
#define SHOAL_TESTS_OPERATOR_HISTORIES_SEARCH_H

#include "tests/operator/histories/explore.h"

/* Opens the world and what is shared by processes that are forked from now on. */
void search_open(const struct world_setting *setting, struct exploring exploring);
/* Searches from the beginning; returns what this process has found, here as below. */
struct explored search_all(void);
/* Searches from what others hand on, until all is done. */
struct explored search_for_others(void);
void search_close(void);
#endif
