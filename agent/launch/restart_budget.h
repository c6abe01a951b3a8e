/* How many of a launcher's restarts are spent, where the number of nodes is fixed or not. Pure.
 *
 * A restart after the loss of a peer is given back if it was the peer's launcher that was lost: no
 * rank has failed then. That shows when the ranks meet again, as another launcher has taken its
 * place. One new launcher gives back one restart, as it stands for one incident.
 *
 * A round may break between the meeting and the question who is new. What is owed stays owed then:
 * until a rank asks, a new launcher stays new, and the others tell it from those of before by the
 * rounds in which each has met since. */
#ifndef SHOAL_AGENT_LAUNCH_RESTART_BUDGET_H
#define SHOAL_AGENT_LAUNCH_RESTART_BUDGET_H

#include <stdbool.h>

struct restart_budget {
    int spent;      /* restarts of max_restarts */
    int losses;     /* of these: for peers that were lost, and the ranks have not asked since */
    bool has_asked; /* its ranks, in some round, who is new */
    int rounds_met; /* since the last such round, which counts, too; without one: of all */
};

/* is_loss: of a peer, in a run whose number of nodes is fixed. */
void restart_budget_spend(struct restart_budget *budget, bool is_loss);

/* A round has ended. have_met: its ranks, with the others'. new_launchers: those of other ranks
 * that are new; below 0: the ranks had not asked yet. How many restarts are given back. */
int restart_budget_settle(struct restart_budget *budget, bool have_met, int new_launchers);
#endif
