/* The variables that a launcher sets for each of its ranks, as torchrun does for its workers, and
 * the id and secret in them. Private to the launcher. */
#ifndef SHOAL_AGENT_LAUNCH_LAUNCH_ENVIRONMENT_H
#define SHOAL_AGENT_LAUNCH_LAUNCH_ENVIRONMENT_H

#include "agent/launch/topology.h"

#include <stdbool.h>
#include <stddef.h>

/* What all ranks and all rounds of a launcher have in common. */
struct launch_identity {
    char run_id[sizeof((struct topology *)NULL)->run_id]; /* "": not known */
    char secret[TOPOLOGY_SECRET_BYTES];                   /* "": none */
};

struct launch_position {
    int local_rank;
    int port;    /* MASTER_PORT */
    int attempt; /* rounds before this one */
    int spent;   /* restarts of max_restarts; fewer where nodes came and went */
    int max_restarts;
    int slots;      /* of an elastic run; 0: none */
    bool is_new;    /* restart_budget.h, as the next */
    int rounds_met; /* 0 also where ranks that are lost do not return to the same place */
};

/* The run's id is the topology's, or a new random one. A run that began before this process and has
 * no id gets none: other launchers of the run would draw other numbers. On one node the secret is
 * new, which nobody else can know. With several nodes it must be the topology's: ranks of other
 * nodes do not know what this launcher draws. */
void launch_identity_choose(const struct topology *t, struct launch_identity *ret_identity);
/* Sets the variables in this process: a child, between fork and exec. */
void launch_environment_set(const struct topology *t, const struct launch_identity *identity,
                            const struct launch_position *position);
#endif
