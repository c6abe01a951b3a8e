#include "agent/comm/comm_split.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void comm_group_world(const char *id, int rank, int size, struct comm_group *ret_group)
{
    *ret_group = (struct comm_group){.rank = rank, .size = size};
    snprintf(ret_group->id, sizeof ret_group->id, "%s", id);
    ret_group->world_ranks = xcalloc((size_t)size, sizeof *ret_group->world_ranks);
    for (int r = 0; r < size; r++)
        ret_group->world_ranks[r] = r;
}

void comm_group_copy(const struct comm_group *from, struct comm_group *ret_group)
{
    size_t bytes = (size_t)from->size * sizeof *from->world_ranks;
    *ret_group = *from;
    ret_group->world_ranks = xmalloc(bytes);
    memcpy(ret_group->world_ranks, from->world_ranks, bytes);
}

void comm_group_free(struct comm_group *group)
{
    free(group->world_ranks);
    group->world_ranks = NULL;
}

int comm_group_exchange(const struct comm_group *group, struct store *store, const char *what,
                        int number, int64_t value, int timeout_ms, int64_t *ret_values,
                        struct error *err)
{
    char key[STORE_KEY_MAX], text[STORE_VALUE_MAX];
    int64_t deadline_ms = clock_monotonic_ms() + timeout_ms;
    snprintf(key, sizeof key, "%s/%s/%d/%d", group->id, what, number, group->rank);
    snprintf(text, sizeof text, "%" PRId64, value);
    if (store->fn->set(store, key, text, err) < 0)
        return error_wrap(err, "%s", what);
    for (int r = 0; r < group->size; r++) {
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        snprintf(key, sizeof key, "%s/%s/%d/%d", group->id, what, number, r);
        if (store->fn->get(store, key, left_ms > 0 ? (int)left_ms : 0, text, err) < 0)
            return error_wrap(err, "%s: rank %d did not come", what, group->world_ranks[r]);
        if (!str_to_i64(text, INT64_MIN, INT64_MAX, &ret_values[r]))
            return error_set(err, ERR_INPUT, "%s: rank %d says \"%s\"", what, group->world_ranks[r],
                             text);
    }
    return 0;
}

int comm_group_split(const struct comm_group *group, struct store *store, int number, int color,
                     int timeout_ms, struct comm_group *ret_group, struct error *err)
{
    struct comm_group subgroup = {0};
    if (snprintf(subgroup.id, sizeof subgroup.id, "%s.%d:%d", group->id, number, color) >=
        (int)sizeof subgroup.id)
        return error_set(err, ERR_UNSUPPORTED, "split: communicators are nested too deep");
    auto_free int64_t *colors = xcalloc((size_t)group->size, sizeof *colors);
    if (comm_group_exchange(group, store, "split", number, color, timeout_ms, colors, err))
        return -1;
    subgroup.world_ranks = xcalloc((size_t)group->size, sizeof *subgroup.world_ranks);
    for (int r = 0; r < group->size; r++) {
        if (colors[r] != color)
            continue;
        /* All ranks go through the colors in one order, so they number the subgroup's ranks alike
         * without another exchange. */
        if (r == group->rank)
            subgroup.rank = subgroup.size;
        subgroup.world_ranks[subgroup.size++] = group->world_ranks[r];
    }
    *ret_group = subgroup;
    return 0;
}
