#include "agent/shard/window_plan.h"

enum { FP32 = 4 };

struct window_rules window_rules_of_gathers(int group_size, int value, bool reshards)
{
    return (struct window_rules){.group_size = group_size,
                                 .message = value,
                                 .slice = value,
                                 .buffer = value,
                                 .keeps = !reshards};
}

struct window_rules window_rules_of_reductions(int group_size, int reduction)
{
    bool is_packed = reduction != FP32;
    return (struct window_rules){.group_size = group_size,
                                 .message = reduction,
                                 .slice = is_packed ? 0 : FP32,
                                 .buffer = is_packed ? 0 : FP32,
                                 .shared = is_packed ? reduction : 0,
                                 .scratch = reduction};
}

static bool is_small(const struct window_rules *r, int64_t flat_count)
{
    return flat_count > 0 && flat_count * r->message < WINDOW_UNIT_BYTES;
}

static int64_t round_up(int64_t bytes, int64_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

/* Takes so many bytes at the end; no bytes lie outside. */
static int64_t take(struct window_plan *plan, int64_t bytes)
{
    const int64_t offset = plan->bytes;
    if (bytes == 0)
        return WINDOW_OUTSIDE;
    plan->bytes += round_up(bytes, WINDOW_ALIGN);
    return offset;
}

static void place_unit(const struct window_rules *r, int64_t flat_count, bool keeps,
                       struct window_plan *plan, struct window_place *place)
{
    int64_t before = plan->bytes;
    *place = (struct window_place){false, WINDOW_OUTSIDE, WINDOW_OUTSIDE};
    if (!is_small(r, flat_count))
        return;
    place->is_inside = true;
    place->slice = take(plan, flat_count / r->group_size * r->slice);
    plan->slice_bytes += plan->bytes - before;
    before = plan->bytes;
    if (r->buffer > 0)
        place->buffer = keeps ? take(plan, flat_count * r->buffer) : WINDOW_IN_TURN;
    plan->kept_bytes += plan->bytes - before;
    plan->units++;
}

void window_plan_make(const struct window_rules *r, const int64_t *flat_counts, int count,
                      struct window_plan *ret_plan, struct window_place *ret_places)
{
    struct window_plan plan = {0};
    int64_t largest = 0, in_turn = 0;
    for (int i = 0; i < count; i++) {
        struct window_place place;
        place_unit(r, flat_counts[i], r->keeps || i == 0, &plan, &place);
        if (place.is_inside && flat_counts[i] > largest)
            largest = flat_counts[i];
        if (place.buffer == WINDOW_IN_TURN && flat_counts[i] > in_turn)
            in_turn = flat_counts[i];
        if (ret_places)
            ret_places[i] = place;
    }
    for (int i = 0; i < WINDOW_TURNS; i++)
        plan.turns[i] = take(&plan, in_turn * r->buffer);
    plan.shared = take(&plan, largest * r->shared);
    plan.scratch = take(&plan, largest / r->group_size * r->scratch);
    plan.bytes = round_up(plan.bytes, WINDOW_GRANULE);
    *ret_plan = plan;
}
