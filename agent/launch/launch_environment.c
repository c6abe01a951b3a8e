#include "agent/launch/launch_environment.h"

#include "base/contract.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* The launchers of an elastic run would draw ids of their own, and one that is left alone would
 * take what all have saved for another run's: there nobody knows the run. */
void launch_identity_choose(const struct topology *t, struct launch_identity *ret_identity)
{
    uint64_t number[2];
    snprintf(ret_identity->run_id, sizeof ret_identity->run_id, "%s", t->run_id);
    snprintf(ret_identity->secret, sizeof ret_identity->secret, "%s", t->secret);
    if (!t->run_id[0] && t->restart_count == 0 && !topology_is_elastic(t) &&
        getrandom(number, sizeof number[0], 0) == sizeof number[0])
        snprintf(ret_identity->run_id, sizeof ret_identity->run_id, "%016" PRIx64, number[0]);
    if (t->nodes == 1 && !t->is_secret_set && getrandom(number, sizeof number, 0) == sizeof number)
        snprintf(ret_identity->secret, sizeof ret_identity->secret, "%016" PRIx64 "%016" PRIx64,
                 number[0], number[1]);
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

void launch_environment_set(const struct topology *t, const struct launch_identity *identity,
                            const struct launch_position *position)
{
    int local_rank = position->local_rank;
    set_number(ENV_LOCAL_RANK, local_rank);
    set_number(ENV_LOCAL_WORLD_SIZE, t->local_size);
    set_number(ENV_RANK, t->rank + local_rank);
    set_number(ENV_WORLD_SIZE, t->world_size);
    set_number(ENV_RESTART_COUNT, t->restart_count + position->attempt);
    setenv(ENV_RUN_ID, identity->run_id, 1);
    setenv(ENV_RUN_SECRET, identity->secret, 1);
    setenv(ENV_MASTER_ADDR, t->host, 1);
    set_number(ENV_MASTER_PORT, position->port);
    set_number(ENV_MIN_RANKS, topology_is_elastic(t) ? t->min_nodes * t->local_size : 0);
    set_number(ENV_SLOTS, position->slots);
    set_number(ENV_IS_NEW, position->is_new);
    set_number(ENV_ROUNDS_MET, position->rounds_met);
    /* torchrun's workers have these, too. */
    set_number("GROUP_RANK", t->node_rank);
    set_number("GROUP_WORLD_SIZE", t->nodes);
    set_number("ROLE_RANK", t->rank + local_rank);
    set_number("ROLE_WORLD_SIZE", t->world_size);
    set_number(ENV_TORCHELASTIC_RESTART_COUNT, position->spent);
    set_number(ENV_TORCHELASTIC_MAX_RESTARTS, position->max_restarts);
    setenv("TORCHELASTIC_RUN_ID", t->job_id[0] ? t->job_id : "none", 1);
}
