/* Symmetric windows of the shard group's communicators, and who lies where in them. */
#include "agent/shard/shard_internal.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

static int open_one(struct shard *shard, struct comm *comm, const struct window_rules *rules,
                    struct shard_window *window, struct error *err)
{
    struct comm_window opened;
    int units = shard->layout.unit_count;
    auto_free int64_t *flat_counts = xcalloc((size_t)units, sizeof *flat_counts);
    for (int i = 0; i < units; i++) {
        const struct layout_unit *unit = &shard->layout.units[i];
        bool is_fp8 = window == &shard->gathers && shard_gathers_fp8(shard, unit);
        flat_counts[i] = is_fp8 ? 0 : unit->flat_count; /* codes are gathered in place */
    }
    window->places = arena_array(shard->arena, struct window_place, units);
    window_plan_make(rules, flat_counts, units, &window->plan, window->places);
    if (window->plan.bytes == 0)
        return 0;
    if (comm_open_window(comm, shard->compute, (size_t)window->plan.bytes, &opened, err))
        return -1;
    window->memory = opened.memory;
    if (opened.why[0])
        snprintf(shard->no_windows, sizeof shard->no_windows, "%s", opened.why);
    return 0;
}

int shard_open_windows(struct shard *shard, struct error *err)
{
    const struct shard_config *c = &shard->config;
    if (!c->windows || !shard->group || !shard->group->has_windows)
        return 0;
    if (shard->offload) {
        snprintf(shard->no_windows, sizeof shard->no_windows,
                 "slices are on the host (memory.cpu_offload)");
        return 0;
    }
    const struct window_rules gathers = window_rules_of_gathers(
        shard->group_size, (int)dtype_bytes(c->param_dtype), shard->reshard_after_forward);
    const struct window_rules reductions =
        window_rules_of_reductions(shard->group_size, (int)dtype_bytes(c->reduce_dtype));
    if (open_one(shard, shard->group, &gathers, &shard->gathers, err))
        return -1;
    /* Slots exchange their gradients by sends and receives; and what is refused once would be
     * again. */
    return shard->slots.count > 0 || shard->no_windows[0]
               ? 0
               : open_one(shard, shard->reducer, &reductions, &shard->reductions, err);
}

bool shard_window_has(const struct shard_window *window, const struct layout_unit *unit)
{
    return window->memory && window->places[unit->module->unit].is_inside;
}

void *shard_window_slice(const struct shard_window *window, const struct layout_unit *unit)
{
    if (!shard_window_has(window, unit))
        return NULL;
    int64_t offset = window->places[unit->module->unit].slice;
    return offset == WINDOW_OUTSIDE ? NULL : window->memory + offset;
}

void *shard_window_take(struct shard_window *window, const struct layout_unit *unit)
{
    if (!shard_window_has(window, unit))
        return NULL;
    int64_t offset = window->places[unit->module->unit].buffer;
    if (offset >= 0)
        return window->memory + offset;
    for (int i = 0; offset == WINDOW_IN_TURN && i < WINDOW_TURNS; i++) {
        if (window->taken[i])
            continue;
        window->taken[i] = true;
        return window->memory + window->plan.turns[i];
    }
    return NULL;
}

bool shard_window_give_back(struct shard_window *window, const void *memory)
{
    if (!shard_window_holds(window, memory))
        return false;
    for (int i = 0; i < WINDOW_TURNS; i++)
        if (window->plan.turns[i] >= 0 && window->memory + window->plan.turns[i] == memory)
            window->taken[i] = false;
    return true;
}

bool shard_window_holds(const struct shard_window *window, const void *memory)
{
    const char *at = memory;
    return window->memory && at >= window->memory && at < window->memory + window->plan.bytes;
}

struct shard_windows shard_get_windows(const struct shard *shard)
{
    struct shard_windows all = {.why = shard->no_windows};
    for (int i = 0; i < shard->layout.unit_count; i++) {
        const struct layout_unit *unit = &shard->layout.units[i];
        all.units += unit->flat_count > 0;
        all.fp8 += shard_gathers_fp8(shard, unit);
    }
    const struct shard_window *windows[] = {&shard->gathers, &shard->reductions};
    for (int i = 0; i < 2; i++)
        all.bytes += windows[i]->memory ? windows[i]->plan.bytes : 0;
    all.gathered = shard->gathers.memory ? shard->gathers.plan.units : 0;
    all.reduced = shard->reductions.memory ? shard->reductions.plan.units : 0;
    return all;
}
