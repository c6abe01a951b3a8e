#include "operator/cache/queue_objects.h"

#include "base/lines.h"
#include "base/mem.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

struct object_entry {
    struct table_entry entry; /* first; its key is the name */
    uint32_t seen;            /* the number of the list that contained it last */
    union {
        struct flavor flavor; /* CACHE_FLAVORS */
        struct priority_class class_;
    };
    char texts[];
};

enum { FIRST_KIND = CACHE_FLAVORS, KINDS = CACHE_KINDS - FIRST_KIND };

struct queue_objects {
    struct table tables[KINDS];
    uint32_t lists[KINDS];
    bool changed; /* while a list is ended */
};

struct queue_objects *queue_objects_open(void)
{
    return xcalloc(1, sizeof(struct queue_objects));
}

static void free_entry(void *context, struct table_entry *entry)
{
    (void)context;
    free(entry);
}

void queue_objects_close(struct queue_objects *objects)
{
    if (!objects)
        return;
    for (int kind = 0; kind < KINDS; kind++) {
        table_each(&objects->tables[kind], free_entry, NULL);
        table_free(&objects->tables[kind]);
    }
    free(objects);
}

/* ---- feeding ---- */

static struct object_entry *find(const struct queue_objects *objects, enum cache_kind kind,
                                 const char *name)
{
    return (struct object_entry *)table_find(&objects->tables[kind - FIRST_KIND], name);
}

static char *append(char **at, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = memcpy(*at, text, bytes);
    *at += bytes;
    return copy;
}

static struct object_entry *open_flavor(const struct flavor *flavor)
{
    size_t bytes =
        strlen(flavor->name) + strlen(flavor->node_labels) + strlen(flavor->tolerations) + 3;
    struct object_entry *entry = xcalloc(1, sizeof *entry + bytes);
    char *at = entry->texts;
    entry->flavor.name = append(&at, flavor->name);
    entry->flavor.node_labels = append(&at, flavor->node_labels);
    entry->flavor.tolerations = append(&at, flavor->tolerations);
    entry->entry.key = entry->flavor.name;
    return entry;
}

static struct object_entry *open_class(const struct priority_class *class_)
{
    struct object_entry *entry = xcalloc(1, sizeof *entry + strlen(class_->name) + 1);
    char *at = entry->texts;
    entry->class_ = *class_;
    entry->class_.name = append(&at, class_->name);
    entry->entry.key = entry->class_.name;
    return entry;
}

static bool is_same(enum cache_kind kind, const struct object_entry *a,
                    const struct object_entry *b)
{
    if (kind == CACHE_FLAVORS)
        return strcmp(a->flavor.node_labels, b->flavor.node_labels) == 0 &&
               strcmp(a->flavor.tolerations, b->flavor.tolerations) == 0;
    return a->class_.value == b->class_.value && a->class_.is_default == b->class_.is_default;
}

static void drop(struct queue_objects *objects, enum cache_kind kind, struct object_entry *entry)
{
    table_remove(&objects->tables[kind - FIRST_KIND], &entry->entry);
    free(entry);
}

/* NULL: it has no name. */
static struct object_entry *read_object(enum cache_kind kind, const struct json *object,
                                        struct arena *arena, struct lines *problems)
{
    if (kind == CACHE_FLAVORS) {
        struct flavor flavor = decode_flavor(object, arena, problems);
        return *flavor.name ? open_flavor(&flavor) : NULL;
    }
    struct priority_class class_ = decode_priority_class(object, arena, problems);
    return *class_.name ? open_class(&class_) : NULL;
}

void queue_objects_begin_list(struct queue_objects *objects, enum cache_kind kind)
{
    objects->lists[kind - FIRST_KIND]++;
}

bool queue_objects_put(struct queue_objects *objects, enum cache_kind kind,
                       const struct json *object, struct arena *arena, struct lines *problems,
                       const char **ret_name)
{
    struct object_entry *entry = read_object(kind, object, arena, problems);
    *ret_name = entry ? arena_strdup(arena, entry->entry.key) : "";
    struct object_entry *old = entry ? find(objects, kind, entry->entry.key) : NULL;
    if (!entry)
        return false;
    if (!old && queue_objects_count(objects, kind) >= QUEUE_OBJECTS_MAX) {
        lines_add(problems, "not taken: there are %d already", QUEUE_OBJECTS_MAX);
        free(entry);
        return false;
    }
    bool changed = !old || !is_same(kind, old, entry);
    entry->seen = objects->lists[kind - FIRST_KIND];
    if (old)
        drop(objects, kind, old);
    table_add(&objects->tables[kind - FIRST_KIND], &entry->entry);
    return changed;
}

bool queue_objects_delete(struct queue_objects *objects, enum cache_kind kind,
                          const struct json *object, struct arena *arena)
{
    struct lines problems;
    lines_init(&problems, arena);
    struct object_entry *entry = read_object(kind, object, arena, &problems);
    struct object_entry *old = entry ? find(objects, kind, entry->entry.key) : NULL;
    free(entry);
    if (old)
        drop(objects, kind, old);
    return old != NULL;
}

struct sweep {
    struct queue_objects *objects;
    enum cache_kind kind;
};

static void drop_unseen(void *context, struct table_entry *entry)
{
    const struct sweep *sweep = context;
    struct object_entry *object = (struct object_entry *)entry;
    if (object->seen == sweep->objects->lists[sweep->kind - FIRST_KIND])
        return;
    sweep->objects->changed = true;
    drop(sweep->objects, sweep->kind, object);
}

bool queue_objects_end_list(struct queue_objects *objects, enum cache_kind kind)
{
    struct sweep sweep = {objects, kind};
    objects->changed = false;
    table_each(&objects->tables[kind - FIRST_KIND], drop_unseen, &sweep);
    return objects->changed;
}

size_t queue_objects_count(const struct queue_objects *objects, enum cache_kind kind)
{
    return objects->tables[kind - FIRST_KIND].count;
}

/* ---- looking ---- */

const struct flavor *queue_objects_flavor(const struct queue_objects *objects, const char *name)
{
    const struct object_entry *entry = find(objects, CACHE_FLAVORS, name);
    return entry ? &entry->flavor : NULL;
}

static void take_default(void *context, struct table_entry *entry)
{
    const struct priority_class *class_ = &((struct object_entry *)entry)->class_;
    if (class_->is_default)
        *(int32_t *)context = class_->value;
}

bool queue_objects_priority(struct queue_objects *objects, struct workload_priority *priority)
{
    enum cache_kind kind =
        priority->source == PRIORITY_WORKLOAD_CLASS ? CACHE_WORKLOAD_PRIORITIES : CACHE_PRIORITIES;
    priority->value = 0;
    if (priority->source == PRIORITY_NONE) {
        table_each(&objects->tables[CACHE_PRIORITIES - FIRST_KIND], take_default, &priority->value);
        return true;
    }
    const struct object_entry *entry = find(objects, kind, priority->class_name);
    if (entry)
        priority->value = entry->class_.value;
    return entry != NULL;
}
