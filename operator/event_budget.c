#include "operator/event_budget.h"

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
