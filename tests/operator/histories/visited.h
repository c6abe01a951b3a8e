/* The states that were met, by their hashes: a set that the processes of one exploration share.
 * Two states of one hash would be taken for one: among n states that is expected n^2 / 2^62 times
 * (docs/operator-proofs.md). */
#ifndef SHOAL_TESTS_OPERATOR_HISTORIES_VISITED_H
#define SHOAL_TESTS_OPERATOR_HISTORIES_VISITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct visited;

/* What may be known of a state: that it comes to rest, where the check of a rest asks little, or
 * all. */
enum { VISITED_RESTS = 1, VISITED_RESTS_FULLY = 2 };
#define VISITED_FLAGS ((uint64_t)3)

struct visited *visited_open(void); /* to be shared by processes that are forked later */
void visited_close(struct visited *visited);

/* Adds these bits to those that the state was searched with; false: bit `index` was there. */
bool visited_claim(struct visited *visited, uint64_t hash, int index, uint64_t bits);
uint64_t visited_flags(struct visited *visited, uint64_t hash);
void visited_set_flags(struct visited *visited, uint64_t hash, uint64_t flags);
size_t visited_count(const struct visited *visited);
#endif
