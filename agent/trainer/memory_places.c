#include "agent/trainer/memory_places.h"

#include "agent/comm/agree.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* What a rank sends the others. */
struct announcement {
    struct memory_neighbours before;
    int32_t local_size;
    uint64_t machine;
    char node[256];
};

/* By pod. */
struct pods {
    int count, local_size;
    int *nodes;  /* [count] the first pod there */
    int *groups; /* [count] */
    const struct announcement *all;
    bool has_names, has_machines; /* neither: each pod counts as a node of its own */
};

/* Pods of different sizes have no pairs of ranks. */
static const char *find_obstacle(const struct announcement *all, int size)
{
    for (int r = 0; r < size; r++)
        if (size % all[r].local_size != 0 || all[r].local_size != all[0].local_size)
            return "the pods have different numbers of ranks";
    return size == all[0].local_size ? "all ranks are in one pod" : "";
}

static const struct announcement *first_rank(const struct pods *pods, int pod)
{
    return &pods->all[pod * pods->local_size];
}

static bool share_a_node(const struct pods *pods, int a, int b)
{
    const struct announcement *x = first_rank(pods, a), *y = first_rank(pods, b);
    if (pods->has_names)
        return strcmp(x->node, y->node) == 0;
    return pods->has_machines ? x->machine == y->machine : a == b;
}

/* By the nodes' names where all pods have one: they say what a machine's number does not, where a
 * pod has a kernel of its own. */
static struct pods list_pods(const struct announcement *all, int size, struct arena *arena)
{
    struct pods pods = {.local_size = all[0].local_size,
                        .count = size / all[0].local_size,
                        .all = all,
                        .has_names = true,
                        .has_machines = true};
    pods.nodes = arena_array(arena, int, pods.count);
    pods.groups = arena_array(arena, int, pods.count);
    for (int p = 0; p < pods.count; p++) {
        pods.has_names &= first_rank(&pods, p)->node[0] != 0;
        pods.has_machines &= first_rank(&pods, p)->machine != 0;
    }
    for (int p = 0; p < pods.count; p++)
        while (!share_a_node(&pods, pods.nodes[p], p))
            pods.nodes[p]++;
    return pods;
}

/* ---- for people ---- */

static void add_pod(const struct pods *pods, int pod, struct str *out)
{
    str_printf(out, "%d", pod);
    if (pods->has_names)
        str_printf(out, " (node %s)", first_rank(pods, pod)->node);
    else if (pods->has_machines && pods->nodes[pod] != pod)
        str_printf(out, " (where %d is)", pods->nodes[pod]);
}

/* Those of the group whose first pod this is. */
static bool add_group(const struct pods *pods, int first, struct str *out)
{
    for (int p = 0; p < first; p++)
        if (pods->groups[p] == pods->groups[first])
            return false;
    for (int p = first; p < pods->count; p++)
        if (pods->groups[p] == pods->groups[first]) {
            str_add(out, p == first ? "" : " + ");
            add_pod(pods, p, out);
        }
    return true;
}

static void describe(const struct pods *pods, int exposed, struct str *out)
{
    enum { SHOWN = 8 };
    int shown = 0;
    str_add(out, "pods that keep each other's snapshots (checkpoint.memory_buddies): ");
    for (int p = 0, is_last = 0; p < pods->count && shown <= SHOWN; p++) {
        auto_str struct str group;
        str_init(&group, 1024);
        if (!add_group(pods, p, &group))
            continue;
        is_last = shown++ == SHOWN;
        str_printf(out, "%s%s", shown > 1 ? ", " : "", is_last ? "..." : str_text(&group));
    }
    if (exposed > 0)
        str_printf(out,
                   "; %d of %d pods share%s a node with all that keep theirs: both are lost with "
                   "that node",
                   exposed, pods->count, exposed == 1 ? "s" : "");
}

/* ---- groups ---- */

static bool are_laid_out_so(const struct pods *pods, int size)
{
    for (int r = 0; r < size; r++) {
        const struct memory_neighbours *its = &pods->all[r].before;
        if (its->world_size != size || its->rank != r || its->count == 0)
            continue;
        const struct memory_group g =
            memory_group_of(r, pods->local_size, pods->nodes, pods->groups, pods->count);
        const struct memory_neighbours now = memory_group_neighbours(&g, size);
        if (memcmp(its, &now, sizeof now) != 0)
            return false;
    }
    return true;
}

static struct memory_group group_before(const struct announcement *all, int rank, int size)
{
    auto_free struct memory_neighbours *before = xcalloc((size_t)size, sizeof *before);
    for (int r = 0; r < size; r++)
        before[r] = all[r].before;
    return memory_group_before(rank, before, size);
}

static bool are_uneven(const struct pods *pods)
{
    for (int p = 0; p < pods->count; p++) {
        enum { PAIR_AND_ODD_ONE = 3 };
        const struct memory_group g = memory_group_of(p * pods->local_size, pods->local_size,
                                                      pods->nodes, pods->groups, pods->count);
        if (g.count > PAIR_AND_ODD_ONE)
            return true;
    }
    return false;
}

int memory_places_plan(struct comm *host, struct stream *stream, const struct memory_place *place,
                       struct memory_buddy_plan *ret, struct str *why, struct str *where,
                       struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct announcement mine = {.local_size = place->local_size,
                                .machine = place->machine,
                                .before = place->before},
                        *all = arena_array(arena, struct announcement, host->size);
    const int rank = host->rank, size = host->size;
    *ret = (struct memory_buddy_plan){.group = {.count = 1, .ranks = {rank}, .keepers = {1}}};
    snprintf(mine.node, sizeof mine.node, "%s", place->node ? place->node : "");
    if (agree_gather(host, stream, &mine, all, sizeof mine, err))
        return -1;
    str_add(why, find_obstacle(all, size));
    if (why->length > 0)
        return 0;
    struct pods pods = list_pods(all, size, arena);
    int *anywhere = arena_array(arena, int, pods.count);
    for (int p = 0; p < pods.count; p++)
        anywhere[p] = p;
    memory_groups_assign(anywhere, pods.count, pods.groups);
    ret->even = memory_group_of(rank, pods.local_size, anywhere, pods.groups, pods.count);
    memory_groups_assign(pods.nodes, pods.count, pods.groups);
    ret->group = memory_group_of(rank, pods.local_size, pods.nodes, pods.groups, pods.count);
    ret->has_groups = true;
    ret->is_uneven = are_uneven(&pods);
    ret->is_moving = !are_laid_out_so(&pods, size);
    ret->before = group_before(all, rank, size);
    const int exposed = memory_groups_count_exposed(pods.nodes, pods.groups, pods.count);
    ret->is_exposed = exposed > 0;
    describe(&pods, exposed, where);
    return 0;
}
