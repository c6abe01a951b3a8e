#include "operator/apply/event_budget.h"

#include <string.h>

#include "base/table.h"

static void refill(struct event_budget *budget, int64_t steady_ms)
{
    /* Only whole periods are paid out. The rest of one counts on, so that frequent calls lose no
     * token. */
    int64_t tokens = (steady_ms - budget->refill_ms) / EVENT_BUDGET_REFILL_MS;
    if (tokens >= budget->spent) {
        budget->spent = 0;
    } else {
        budget->spent -= (int)tokens;
        budget->refill_ms += tokens * EVENT_BUDGET_REFILL_MS;
    }
}

bool event_budget_take(struct event_budget *budget, bool one_of_many, int64_t steady_ms)
{
    if (budget->spent)
        refill(budget, steady_ms);
    int allowed = EVENT_BUDGET_TOKENS - (one_of_many ? EVENT_BUDGET_RESERVE : 0);
    if (budget->spent >= allowed)
        return false;
    if (!budget->spent)
        budget->refill_ms = steady_ms;
    budget->spent++;
    return true;
}

bool event_budget_is_new(struct event_budget *b, const char *text, int64_t steady_ms)
{
    uint64_t hash = table_hash(text);
    int index = 0;
    while (index < EVENT_BUDGET_TEXTS - 1 && b->reported[index].hash != hash)
        index++;
    if (b->reported[index].hash == hash &&
        steady_ms - b->reported[index].steady_ms < EVENT_BUDGET_AGAIN_MS)
        return false;
    /* Known or new, the text moves to the front, and the one that was not heard longest drops out.
     * An hour counts anew from here: an expired event is recorded again. */
    memmove(b->reported + 1, b->reported, (size_t)index * sizeof *b->reported);
    b->reported[0] = (struct reported_event){hash, steady_ms};
    return true;
}

bool event_budget_is_due(struct event_budget *budget, int story, int64_t steady_ms)
{
    if (steady_ms < budget->stories[story])
        return false;
    budget->stories[story] = steady_ms + EVENT_BUDGET_STORY_MS;
    return true;
}
