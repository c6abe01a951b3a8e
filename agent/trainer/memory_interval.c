#include "agent/trainer/memory_interval.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t memory_interval(const struct memory_cost *ranks, int count)
{
    /* No clock measures beyond a century, so that nothing overflows below. */
    const int64_t century = INT64_C(3155760000000000);
    struct memory_cost all = {.steps_us = century, .step_us = century};
    for (int i = 0; i < count; i++) {
        all.steps_us = least(all.steps_us, most(ranks[i].steps_us, 0));
        all.step_us = least(all.step_us, most(ranks[i].step_us, 1));
        all.spent_us = least(most(all.spent_us, ranks[i].spent_us), century);
        all.save_us = least(most(all.save_us, ranks[i].save_us), century);
    }
    /* Once it is taken, all snapshots together are to be within their part of all steps: a rank
     * that was measured wrong, once, pays it back. */
    int64_t owed_us = MEMORY_INTERVAL_PART * (all.spent_us + all.save_us) - all.steps_us;
    int64_t steps = owed_us <= 0 ? 1 : (owed_us - 1) / all.step_us + 1;
    return least(steps, MEMORY_INTERVAL_MOST);
}
