#include "operator/cache/child_list.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 4 };

/* Of a pod or service its replica; all others are as one. */
static int64_t place_of(const struct child_entry *child)
{
    bool is_pod = child->kind == CACHE_PODS;
    if (!is_pod && child->kind != CACHE_SERVICES)
        return 0;
    enum replica_type type = is_pod ? child->pod.type : child->service.type;
    int32_t index = is_pod ? child->pod.index : child->service.index;
    return ((int64_t)type << 32) + index;
}

/* Where those of its replica begin, or belong. */
static size_t find_first(const struct child_list *list, int64_t place)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (place_of(list->items[middle]) < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void child_list_add(struct child_list *list, struct child_entry *child)
{
    if (list->count == list->size) {
        /* a quarter more: there may be hundreds of thousands of children */
        list->size += list->size / 4 + FIRST_SIZE;
        list->items = xrealloc(list->items, list->size * sizeof(struct child_entry *));
    }
    size_t at = find_first(list, place_of(child));
    memmove(&list->items[at + 1], &list->items[at],
            (list->count++ - at) * sizeof(struct child_entry *));
    list->items[at] = child;
}

void child_list_remove(struct child_list *list, const struct child_entry *child)
{
    size_t at = find_first(list, place_of(child));
    while (list->items[at] != child) {
        at++;
        assert(at < list->count);
    }
    memmove(&list->items[at], &list->items[at + 1],
            (--list->count - at) * sizeof(struct child_entry *));
    if (list->count)
        return;
    free(list->items);
    *list = (struct child_list){.count = 0};
}
