/* The part of the status that outlives pods: failures counted once each, attempts, completed
 * replicas. Changing a history needs the arena that holds it; what was read is never changed in
 * place. */
#ifndef SHOAL_OPERATOR_JOB_HISTORY_H
#define SHOAL_OPERATOR_JOB_HISTORY_H

#include "operator/job/types.h"

struct arena;

struct history history_copy(const struct history *history, struct arena *arena);
bool history_equal(const struct history *a, const struct history *b);

/* The record of a replica, or NULL if it never failed or left. */
const struct replica_history *history_find(const struct history *history, enum replica_type type,
                                           int32_t index);

/* Sets the record of a replica, which keeps what it points to. */
void history_put(struct history *history, struct replica_history replica, struct arena *arena);

/* The record of the pod's replica as this pod continues it; nothing is set yet. */
struct replica_history history_replica(const struct history *history, const struct pod *pod);

bool history_is_complete(const struct history *history, enum replica_type type, int32_t index);
void history_complete(struct history *history, enum replica_type type, int32_t index,
                      struct arena *arena);

/* Forgets completions and sightings of replicas whose index is `replicas` or above. What failed
 * there stays counted and recorded: its pod may still be seen when the job grows again. */
void history_trim(struct history *history, enum replica_type type, int32_t replicas);

/* All replicas are to run again: nothing is completed or seen yet, and no incident of before is
 * theirs. */
void history_start_over(struct history *history);

/* They are to do so as another attempt. */
void history_next_attempt(struct history *history);
#endif
