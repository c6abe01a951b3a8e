#include "agent/trainer/memory_group.h"

#include "base/mem.h"

#include <string.h>

_Static_assert(MEMORY_GROUP_MOST <= 32, "bits of an unsigned");

bool memory_group_keeps(const struct memory_group *g, int holder, int member)
{
    return g->keepers[member] >> holder & 1U;
}

struct memory_neighbours memory_group_neighbours(const struct memory_group *g, int world_size)
{
    struct memory_neighbours its = {.world_size = world_size, .rank = g->ranks[g->me]};
    for (int m = 0; m < g->count; m++)
        if (m != g->me && memory_group_keeps(g, g->me, m))
            its.ranks[its.count++] = g->ranks[m];
    return its;
}

/* ---- pods ---- */

struct pods {
    int count; /* 0: they have joined others */
    int pods[MEMORY_GROUP_MOST];
};

/* Pairs in the order of the pods; of an odd number the last three are together. Returns how many
 * there are. */
static int pair(int pods, struct pods *sets)
{
    int count = pods < 2 ? 1 : pods / 2;
    for (int p = 0; p < pods; p++) {
        struct pods *set = &sets[p / 2 < count ? p / 2 : count - 1];
        set->pods[set->count++] = p;
    }
    return count;
}

/* Whether one of them, but for the i-th, is on another node than this. */
static bool has_another(const struct pods *set, const int *nodes, int node, int except)
{
    for (int i = 0; i < set->count; i++)
        if (i != except && nodes[set->pods[i]] != node)
            return true;
    return false;
}

static bool shares_a_node(const struct pods *set, const int *nodes)
{
    return set->count > 1 && !has_another(set, nodes, nodes[set->pods[0]], 0);
}

/* Two sets each give one of their pods to the other, if none of them shares a node then. */
static bool swap(struct pods *set, struct pods *other, const int *nodes)
{
    const int node = nodes[set->pods[0]];
    for (int i = 0; i < other->count && other->count > 1; i++)
        if (nodes[other->pods[i]] != node && has_another(other, nodes, node, i)) {
            int *last = &set->pods[set->count - 1], its = *last;
            *last = other->pods[i];
            other->pods[i] = its;
            return true;
        }
    return false;
}

/* Where no two sets can swap, most pods are on one node, and each set with pods of two nodes has
 * one pod elsewhere: that one keeps the snapshots of more. */
static void join(struct pods *set, struct pods *sets, int count, const int *nodes)
{
    while (set->count > 0) {
        struct pods *least = NULL;
        int room = 0;
        for (int i = 0; i < count; i++)
            if (sets[i].count > 1 && !shares_a_node(&sets[i], nodes)) {
                room += MEMORY_GROUP_MOST - sets[i].count;
                if (!least || sets[i].count < least->count)
                    least = &sets[i];
            }
        if (room < set->count)
            return;
        least->pods[least->count++] = set->pods[--set->count];
    }
}

void memory_groups_assign(const int *nodes, int pods, int *ret_groups)
{
    auto_free struct pods *sets = xcalloc((size_t)pods / 2 + 1, sizeof *sets);
    const int count = pair(pods, sets);
    /* First among those that must change in any case. */
    for (int all = 0; all < 2; all++)
        for (int s = 0; s < count; s++)
            for (int o = 0; o < count && shares_a_node(&sets[s], nodes); o++)
                if (all || shares_a_node(&sets[o], nodes))
                    swap(&sets[s], &sets[o], nodes);
    for (int s = 0; s < count; s++)
        if (shares_a_node(&sets[s], nodes))
            join(&sets[s], sets, count, nodes);
    for (int s = 0; s < count; s++)
        for (int i = 0; i < sets[s].count; i++)
            ret_groups[sets[s].pods[i]] = s;
}

int memory_groups_count_exposed(const int *nodes, const int *groups, int pods)
{
    auto_free int *first = xcalloc((size_t)pods, sizeof *first); /* pod of a group; 0: none yet */
    auto_free bool *is_spread = xcalloc((size_t)pods, sizeof *is_spread);
    int exposed = 0;
    for (int p = 0; p < pods; p++) {
        int *its = &first[groups[p]];
        *its = *its ? *its : p + 1;
        is_spread[groups[p]] |= nodes[*its - 1] != nodes[p];
    }
    for (int p = 0; p < pods; p++)
        exposed += !is_spread[groups[p]];
    return exposed;
}

/* ---- ranks ---- */

struct memory_group memory_group_of(int rank, int local_size, const int *nodes, const int *groups,
                                    int pods)
{
    const int pod = rank / local_size;
    struct memory_group g = {0};
    int its_nodes[MEMORY_GROUP_MOST];
    bool is_spread = false;
    for (int p = 0; p < pods && g.count < MEMORY_GROUP_MOST; p++) {
        if (groups[p] != groups[pod])
            continue;
        if (p == pod)
            g.me = g.count;
        its_nodes[g.count] = nodes[p];
        is_spread |= nodes[p] != its_nodes[0];
        g.ranks[g.count++] = p * local_size + rank % local_size;
    }
    for (int m = 0; m < g.count; m++)
        for (int holder = 0; holder < g.count; holder++)
            if (holder == m || !is_spread || its_nodes[holder] != its_nodes[m])
                g.keepers[m] |= 1U << holder;
    return g;
}

static bool is_known(const struct memory_neighbours *its, int rank, int world_size)
{
    if (its->world_size != world_size || its->rank != rank || its->count < 0 ||
        its->count > MEMORY_NEIGHBOURS_MOST)
        return false;
    for (int i = 0; i < its->count; i++)
        if (its->ranks[i] < 0 || its->ranks[i] >= world_size || its->ranks[i] == rank)
            return false;
    return true;
}

static bool has_slots_of(const struct memory_neighbours *its, int holder, int rank, int world_size)
{
    for (int i = 0; is_known(its, holder, world_size) && i < its->count; i++)
        if (its->ranks[i] == rank)
            return true;
    return false;
}

static int root_of(const int *parents, int rank)
{
    while (parents[rank] != rank)
        rank = parents[rank];
    return rank;
}

/* Of each rank the lowest of all that keep each other's, by way of others too. */
static void connect(const struct memory_neighbours *before, int world_size, int *ret_lowest)
{
    for (int r = 0; r < world_size; r++)
        ret_lowest[r] = r;
    for (int r = 0; r < world_size; r++)
        for (int i = 0; is_known(&before[r], r, world_size) && i < before[r].count; i++) {
            int a = root_of(ret_lowest, r), b = root_of(ret_lowest, before[r].ranks[i]);
            ret_lowest[a > b ? a : b] = a > b ? b : a;
        }
    for (int r = 0; r < world_size; r++)
        ret_lowest[r] = root_of(ret_lowest, r);
}

struct memory_group memory_group_before(int rank, const struct memory_neighbours *before,
                                        int world_size)
{
    const struct memory_group alone = {.count = 1, .ranks = {rank}, .keepers = {1}};
    struct memory_group g = {0};
    auto_free int *lowest = xcalloc((size_t)world_size, sizeof *lowest);
    connect(before, world_size, lowest);
    for (int r = 0; r < world_size; r++) {
        if (lowest[r] != lowest[rank])
            continue;
        if (g.count == MEMORY_GROUP_MOST) /* no group is so large: somebody's memory is damaged */
            return alone;
        if (r == rank)
            g.me = g.count;
        g.ranks[g.count++] = r;
    }
    for (int m = 0; m < g.count; m++)
        for (int holder = 0; holder < g.count; holder++) {
            int a = g.ranks[m], b = g.ranks[holder];
            /* Who keeps another's is kept by that one: a new pod does not know it any more. */
            if (a == b || has_slots_of(&before[b], b, a, world_size) ||
                has_slots_of(&before[a], a, b, world_size))
                g.keepers[m] |= 1U << holder;
        }
    return g;
}
