#include "operator/cache/nodes.h"

#include "base/lines.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/table.h"
#include "operator/decode/decode_node.h"
#include "operator/job/history.h"

#include <stdlib.h>
#include <string.h>

struct node_entry {
    struct table_entry entry; /* first; its key is the node's name */
    uint32_t seen;            /* the number of the list that contained it last */
    uint64_t look;            /* the number of the look that took it out last */
    bool takes_pods;
    const char *sign; /* NULL: none */
    const char *kind;
    char texts[];
};

struct nodes {
    struct node_signs signs;
    size_t max;
    struct table table;
    uint32_t list;   /* number of the last list that began */
    uint64_t look;   /* number of the last nodes_find_bad() */
    bool is_listing; /* until its end changes are gathered */
    bool changed, full;
};

struct nodes *nodes_open(const struct node_signs *signs, size_t max)
{
    struct nodes *nodes = xcalloc(1, sizeof *nodes);
    nodes->signs = (struct node_signs){.taints = signs->taints ? signs->taints : "",
                                       .conditions = signs->conditions ? signs->conditions : ""};
    nodes->max = max;
    return nodes;
}

static void free_entry(void *context, struct table_entry *entry)
{
    (void)context;
    free(entry);
}

void nodes_close(struct nodes *nodes)
{
    if (!nodes)
        return;
    table_each(&nodes->table, free_entry, NULL);
    table_free(&nodes->table);
    free(nodes);
}

/* ---- feeding ---- */

static struct node_entry *find(const struct nodes *nodes, const char *name)
{
    return (struct node_entry *)table_find(&nodes->table, name);
}

static char *append(char **at, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = memcpy(*at, text, bytes);
    *at += bytes;
    return copy;
}

static struct node_entry *open_entry(const struct nodes *nodes, const struct node *node,
                                     struct arena *arena)
{
    const char *sign = node_sign(node, &nodes->signs, arena);
    const char *kind = node_kind(node, &nodes->signs, arena);
    size_t bytes = strlen(node->name) + 1 + strlen(kind) + 1 + (sign ? strlen(sign) + 1 : 0);
    struct node_entry *entry = xcalloc(1, sizeof *entry + bytes);
    char *at = entry->texts;
    entry->seen = nodes->list;
    entry->takes_pods = !sign && node_takes_pods(node);
    entry->entry.key = append(&at, node->name);
    entry->kind = append(&at, kind);
    entry->sign = sign ? append(&at, sign) : NULL;
    return entry;
}

static bool note(struct nodes *nodes, bool changed)
{
    nodes->changed |= changed;
    return changed && !nodes->is_listing;
}

void nodes_begin_list(struct nodes *nodes)
{
    nodes->list++;
    nodes->is_listing = true;
    nodes->changed = nodes->full = false;
}

bool nodes_put(struct nodes *nodes, const struct json *object, struct arena *arena,
               struct lines *problems, const char **ret_name)
{
    struct node node = decode_node(object, arena, problems);
    struct node_entry *old = find(nodes, node.name);
    *ret_name = node.name;
    nodes->full |= !old && nodes->table.count >= nodes->max;
    if (!*node.name || (!old && nodes->full))
        return false;
    struct node_entry *entry = open_entry(nodes, &node, arena);
    bool changed = !str_equal(old ? old->sign : NULL, entry->sign);
    if (old) {
        table_remove(&nodes->table, &old->entry);
        free(old);
    }
    table_add(&nodes->table, &entry->entry);
    return note(nodes, changed);
}

static bool drop(struct nodes *nodes, struct node_entry *entry)
{
    bool changed = entry->sign != NULL;
    table_remove(&nodes->table, &entry->entry);
    free(entry);
    return note(nodes, changed);
}

bool nodes_delete(struct nodes *nodes, const struct json *object, struct arena *arena,
                  const char **ret_name)
{
    struct lines problems;
    lines_init(&problems, arena);
    *ret_name = decode_node(object, arena, &problems).name;
    struct node_entry *entry = find(nodes, *ret_name);
    return entry && drop(nodes, entry);
}

static void drop_unseen(void *context, struct table_entry *entry)
{
    struct nodes *nodes = context;
    struct node_entry *node = (struct node_entry *)entry;
    if (node->seen != nodes->list)
        drop(nodes, node);
}

bool nodes_end_list(struct nodes *nodes)
{
    table_each(&nodes->table, drop_unseen, nodes);
    nodes->is_listing = false;
    return nodes->changed;
}

size_t nodes_count(const struct nodes *nodes)
{
    return nodes->table.count;
}

bool nodes_are_full(const struct nodes *nodes)
{
    return nodes->full;
}

/* ---- looking ---- */

/* Those that the job is on or avoids are none that it can go to. Returns whether it is the first
 * time in this look. */
static bool take_out(struct nodes *nodes, struct node_entry *node)
{
    bool first = node->look != nodes->look;
    node->look = nodes->look;
    return first;
}

struct search {
    const struct nodes *nodes;
    const char *kind;
    size_t spares;
};

static void count_spare(void *context, struct table_entry *entry)
{
    struct search *search = context;
    const struct node_entry *node = (struct node_entry *)entry;
    search->spares += node->takes_pods && node->look != search->nodes->look &&
                      strcmp(node->kind, search->kind) == 0;
}

/* A walk over all nodes for each kind of which the job has a bad one: that is rare. */
static size_t count_spares(struct nodes *nodes, const char *kind, const struct bad_node *bad,
                           size_t count)
{
    struct search search = {.nodes = nodes, .kind = kind};
    for (size_t i = 0; i < count; i++)
        if (strcmp(find(nodes, bad[i].name)->kind, kind) == 0)
            return bad[i].spares;
    table_each(&nodes->table, count_spare, &search);
    return search.spares;
}

void nodes_find_bad(struct nodes *nodes, struct snapshot *snapshot, struct arena *arena)
{
    const struct history *history = &snapshot->status->history;
    struct bad_node *bad = arena_array(arena, struct bad_node, snapshot->pod_count);
    size_t count = 0;
    nodes->look++;
    for (size_t i = 0; i < history->avoided_count; i++) {
        struct node_entry *node = find(nodes, history->avoided[i].name);
        if (node)
            take_out(nodes, node);
    }
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const char *name = snapshot->pods[i].node;
        struct node_entry *node = name ? find(nodes, name) : NULL;
        if (node && take_out(nodes, node) && node->sign)
            bad[count++] = (struct bad_node){.name = name, .sign = node->sign};
    }
    for (size_t i = 0; i < count; i++)
        bad[i].spares = count_spares(nodes, find(nodes, bad[i].name)->kind, bad, i);
    snapshot->bad_nodes = bad;
    snapshot->bad_node_count = count;
}
