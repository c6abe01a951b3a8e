#include "agent/plan/run_plan_internal.h"

#include "agent/shard/shard_layout.h"
#include "agent/shard/shard_payload.h"
#include "agent/shard/window_plan.h"
#include "base/mem.h"

#include <stdlib.h>

static void add_unit(struct unit_sizes *a, enum plan_role role, int64_t count)
{
    a->all += count;
    switch (role) {
    case PLAN_ROOT:
        a->root = count;
        break;
    case PLAN_OTHER:
        a->other = max(a->other, count);
        break;
    case PLAN_BLOCK:
        a->second_block = max(a->second_block, count < a->block ? count : a->block);
        a->block = max(a->block, count);
        break;
    }
}

/* The unit's elements as padded for slices of a group, or with slots for a part of each rank. */
static int64_t padded(const struct run_plan_facts *f, int i, int group_size)
{
    const int64_t align = f->activations.fp8 ? LAYOUT_ALIGN_FP8 : LAYOUT_ALIGN;
    const int64_t multiple = align * (f->slots > 0 ? f->world_size : group_size);
    return (f->units[i].flat_count + multiple - 1) / multiple * multiple;
}

struct unit_plan run_plan_measure_units(const struct run_plan_facts *f, int group_size)
{
    struct unit_plan p = {0};
    for (int i = 0; i < f->unit_count; i++) {
        const struct plan_unit *u = &f->units[i];
        int64_t count = padded(f, i, group_size);
        bool fp8 = shard_payload_saves(count, u->fp8_count, group_size);
        add_unit(&p.elements, u->role, count);
        add_unit(&p.gathered, u->role, fp8 ? count : count * f->bytes.value);
        p.blocks += u->role == PLAN_BLOCK;
        if (!fp8)
            continue;
        p.fp8_blocks += u->role == PLAN_BLOCK;
        int64_t slice = count / group_size, rest = count - u->fp8_count;
        int64_t messages = shard_payload_most(rest, slice) * group_size * (int64_t)sizeof(bf16);
        p.rest += rest * (int64_t)sizeof(bf16);
        p.messages += messages;
        p.largest = max(p.largest, messages);
        p.slice = max(p.slice, slice * (int64_t)sizeof(bf16));
    }
    return p;
}

struct unit_windows run_plan_windows(const struct run_plan_facts *f, int group_size, bool reshards)
{
    struct unit_windows w = {0};
    if (!f->windows || group_size == 1 || f->cpu_offload)
        return w;
    const struct window_rules rules[] = {
        window_rules_of_gathers(group_size, f->bytes.value, reshards),
        window_rules_of_reductions(group_size, f->bytes.reduction),
    };
    auto_free int64_t *flat_counts = xcalloc((size_t)f->unit_count, sizeof *flat_counts);
    for (int k = 0; k < (f->slots > 0 ? 1 : 2); k++) {
        struct window_plan plan;
        for (int i = 0; i < f->unit_count; i++) {
            int64_t count = padded(f, i, group_size);
            bool fp8 = k == 0 && shard_payload_saves(count, f->units[i].fp8_count, group_size);
            flat_counts[i] = fp8 ? 0 : count; /* such gathers use no window */
        }
        window_plan_make(&rules[k], flat_counts, f->unit_count, &plan, NULL);
        w.bytes += plan.bytes;
        w.of_the_reserve += plan.slice_bytes + plan.kept_bytes;
    }
    return w;
}
