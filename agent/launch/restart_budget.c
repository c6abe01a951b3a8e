#include "agent/launch/restart_budget.h"

void restart_budget_spend(struct restart_budget *budget, bool is_loss)
{
    budget->spent++;
    budget->losses += is_loss;
}

int restart_budget_settle(struct restart_budget *budget, bool have_met, int new_launchers)
{
    int given_back = budget->losses < new_launchers ? budget->losses : new_launchers;
    budget->rounds_met += have_met;
    if (!have_met || new_launchers < 0) /* who was lost may come yet, or be there */
        return 0;
    budget->has_asked = true;
    budget->rounds_met = 1;
    budget->spent -= given_back;
    budget->losses = 0; /* those of the rest have started their ranks again in place */
    return given_back;
}
