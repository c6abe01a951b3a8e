/* A job's children of one kind in the cache, in the order of their replicas: a pass walks over them
 * in the order in which they were made and in which it decides, without following one to find the
 * next. Owns no child. */
#ifndef SHOAL_OPERATOR_CACHE_CHILD_LIST_H
#define SHOAL_OPERATOR_CACHE_CHILD_LIST_H

#include "operator/cache/child_entry.h"

/* All zero: empty. An empty one has no memory. */
struct child_list {
    struct child_entry **items; /* by type and index; of one replica the newest first */
    size_t count, size;
};

void child_list_add(struct child_list *list, struct child_entry *child);
/* The child is in the list. */
void child_list_remove(struct child_list *list, const struct child_entry *child);
#endif
