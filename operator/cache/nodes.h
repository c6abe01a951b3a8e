/* The nodes of the cluster in the cache: of each what node.h makes of it, in one allocation of some
 * 200 bytes. Feeding is as in cache.h. Empty where the operator does not watch nodes. */
#ifndef SHOAL_OPERATOR_CACHE_NODES_H
#define SHOAL_OPERATOR_CACHE_NODES_H

#include "operator/job/node.h"
#include "operator/job/snapshot.h"

#include <stddef.h>

struct arena;
struct json;
struct lines;
struct nodes;

/* What the signs say is borrowed. */
struct nodes *nodes_open(const struct node_signs *signs, size_t max);
void nodes_close(struct nodes *nodes); /* NULL-safe */

void nodes_begin_list(struct nodes *nodes);
/* Each returns whether the signs of a node came, changed or went, and the first two its name, which
 * lives as long as the arena. Malformed fields go to `problems`. */
bool nodes_put(struct nodes *nodes, const struct json *object, struct arena *arena,
               struct lines *problems, const char **ret_name);
bool nodes_delete(struct nodes *nodes, const struct json *object, struct arena *arena,
                  const char **ret_name);
/* Of any node since nodes_begin_list. */
bool nodes_end_list(struct nodes *nodes);

size_t nodes_count(const struct nodes *nodes);
/* Whether one was not taken since nodes_begin_list, as there are `max`. */
bool nodes_are_full(const struct nodes *nodes);

/* Sets snapshot->bad_nodes, by its pods and status, without nodes that the job avoids already. */
void nodes_find_bad(struct nodes *nodes, struct snapshot *snapshot, struct arena *arena);
#endif
