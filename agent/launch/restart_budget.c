#include "agent/launch/restart_budget.h"

void restart_budget_spend(struct restart_budget *budget, bool is_loss)
{
    budget->spent++;
    budget->losses += is_loss;
}

int restart_budget_settle(struct restart_budget *budget, bool have_met, int new_launchers)
{
    int given_back = budget->losses < new_launchers ? budget->losses : new_launchers;
    if (!have_met) /* who was lost may come yet */
        return 0;
    budget->spent -= given_back;
    budget->losses = 0; /* those of the rest have started their ranks again in place */
    return given_back;
}
