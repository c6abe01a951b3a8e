/* The part of the status that outlives pods: failures, each counted once; attempts; completed
 * replicas. Functions that add to a history take its arena, for arrays that grow. Other
 * entries change in place: who needs the old ones takes a history_copy() first. */
#ifndef SHOAL_OPERATOR_JOB_HISTORY_H
#define SHOAL_OPERATOR_JOB_HISTORY_H

#include "operator/job/types.h"

struct arena;

#define HISTORY_NODES_MAX 64 /* nodes that a job avoids at once */

struct history history_copy(const struct history *history, struct arena *arena);
bool history_equal(const struct history *a, const struct history *b);

/* The record of a replica; NULL: none of its pods failed or left. */
const struct replica_history *history_find(const struct history *history, enum replica_type type,
                                           int32_t index);

/* Sets the record of a replica. The record's texts must live as long as the history. */
void history_put(struct history *history, struct replica_history replica, struct arena *arena);

/* The record for this pod of its replica, derived from the pod before it. Does not set it. */
struct replica_history history_replica(const struct history *history, const struct pod *pod);

/* All restarts: of replicas, and of ranks in their containers. */
int64_t history_all_restarts(const struct history *history);

bool history_is_complete(const struct history *history, enum replica_type type, int32_t index);
void history_complete(struct history *history, enum replica_type type, int32_t index,
                      struct arena *arena);

/* Whether `after` is `before` with more completed replicas, or with none more. */
bool history_only_completes(const struct history *before, const struct history *after);

/* Drops completions and `formed` of replicas whose index is `replicas` or above. Their failures are
 * kept: their pods may still exist when the job grows again. */
void history_trim(struct history *history, enum replica_type type, int32_t replicas);

/* All replicas start again: none is completed, and earlier incidents are over. */
void history_start_over(struct history *history);

/* All replicas start again, as the next attempt. */
void history_next_attempt(struct history *history);

/* ---- nodes that the job avoids ---- */

/* NULL: it does not. */
const struct avoided_node *history_avoided(const struct history *history, const char *node);
/* From now on it does. Of more than HISTORY_NODES_MAX the oldest is forgotten. */
void history_avoid(struct history *history, const char *node, int64_t since_ms,
                   struct arena *arena);
/* Forgets those that it has avoided since this moment, or longer. */
void history_stop_avoiding(struct history *history, int64_t since_ms);
/* Their names, with commas between them; NULL: none. */
const char *history_avoided_names(const struct history *history, struct arena *arena);
#endif
