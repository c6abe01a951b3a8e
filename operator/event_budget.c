#include "operator/event_budget.h"

#include <string.h>

#include "base/table.h"

static void refill(struct event_budget *budget, int64_t steady_ms)
{
    int64_t tokens = (steady_ms - budget->refill_ms) / EVENT_BUDGET_REFILL_MS;
    if (tokens >= budget->spent) {
        budget->spent = 0;
    } else {
        budget->spent -= (int)tokens;
        budget->refill_ms += tokens * EVENT_BUDGET_REFILL_MS;
    }
}

bool event_budget_take(struct event_budget *budget, bool routine, int64_t steady_ms)
{
    if (budget->spent)
        refill(budget, steady_ms);
    int allowed = EVENT_BUDGET_TOKENS - (routine ? EVENT_BUDGET_RESERVE : 0);
    if (budget->spent >= allowed)
        return false;
    if (!budget->spent)
        budget->refill_ms = steady_ms;
    budget->spent++;
    return true;
}

bool event_budget_is_news(struct event_budget *b, const char *text)
{
    uint64_t hash = table_hash(text);
    for (int i = 0; i < EVENT_BUDGET_FAILURES; i++)
        if (b->failures[i] == hash)
            return false;
    memmove(b->failures + 1, b->failures, sizeof b->failures - sizeof *b->failures);
    b->failures[0] = hash;
    return true;
}
