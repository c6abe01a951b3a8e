/* What Workloads refer to, in the cache: ResourceFlavors, WorkloadPriorityClasses and
 * PriorityClasses. They are few, and no job's: when one comes, changes or goes, all jobs look
 * again. Feeding is as in cache.h. */
#ifndef SHOAL_OPERATOR_CACHE_QUEUE_OBJECTS_H
#define SHOAL_OPERATOR_CACHE_QUEUE_OBJECTS_H

#include "operator/cache/cache.h"
#include "operator/decode/decode_workload.h"

struct lines;
struct queue_objects;

#define QUEUE_OBJECTS_MAX 10000 /* of each kind; more are not taken */

struct queue_objects *queue_objects_open(void);
void queue_objects_close(struct queue_objects *objects); /* NULL-safe */

void queue_objects_begin_list(struct queue_objects *objects, enum cache_kind kind);
/* Each returns whether something has changed. Malformed fields go to `problems`; *ret_name lives as
 * long as the arena. */
bool queue_objects_put(struct queue_objects *objects, enum cache_kind kind,
                       const struct json *object, struct arena *arena, struct lines *problems,
                       const char **ret_name);
bool queue_objects_delete(struct queue_objects *objects, enum cache_kind kind,
                          const struct json *object, struct arena *arena);
bool queue_objects_end_list(struct queue_objects *objects, enum cache_kind kind);
size_t queue_objects_count(const struct queue_objects *objects, enum cache_kind kind);

/* NULL: there is none of this name. */
const struct flavor *queue_objects_flavor(const struct queue_objects *objects, const char *name);
/* Sets the value of the class that it names, or of the cluster's default class. False: there is no
 * such class. */
bool queue_objects_priority(struct queue_objects *objects, struct workload_priority *priority);
#endif
