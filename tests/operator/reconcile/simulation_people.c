/* What people do in a simulation: they edit the job, and make things of its names. */
#include "operator/job/names.h"
#include "tests/operator/reconcile/simulation.h"

#include <inttypes.h>
#include <string.h>

#define below  simulation_below
#define chance simulation_chance

/* What of a job that runs may be changed at any time: templates count for pods that are made later,
 * policies from now on. A limit is only raised: one below what has failed already ends the job. */
static void edit_spec(struct simulation *s, struct replica_spec *replica)
{
    struct job *job = s->truth->job;
    switch (below(s, 6)) {
    case 0:
        replica->restart_policy = RESTART_ALWAYS + below(s, 4);
        break;
    case 1:
        replica->template_.grace_period_s.value = 1 + below(s, 60);
        break;
    case 2:
        job->run_policy.clean_pod_policy = CLEAN_NONE + below(s, 3);
        break;
    case 3:
        job->run_policy.backoff_limit.value +=
            job->run_policy.backoff_limit.value >= 0 && !s->was_finished;
        break;
    case 4:
        job->elastic.min_replicas.value = 1 + below(s, 3);
        job->elastic.max_replicas.value = job->elastic.min_replicas.value + below(s, 3);
        break;
    default:
        job->run_policy.scheduling.min_available =
            (struct optional){.set = chance(s, 50), .value = 1 + below(s, 4)};
    }
    str_printf(&s->history, "edit: policy %d, grace %d s, clean %d, limit %d, %d to %d, gang %d\n",
               replica->restart_policy, (int)replica->template_.grace_period_s.value,
               job->run_policy.clean_pod_policy, (int)job->run_policy.backoff_limit.value,
               (int)job->elastic.min_replicas.value, (int)job->elastic.max_replicas.value,
               (int)job->run_policy.scheduling.min_available.value);
}

static void move_user(struct simulation *s)
{
    struct job *job = s->truth->job;
    if (chance(s, 3))
        job->run_policy.suspend = !job->run_policy.suspend;
    if (chance(s, 3) && job->replicas[REPLICA_WORKER].present)
        job->replicas[REPLICA_WORKER].replicas.value = 1 + below(s, 5);
    if (chance(s, 2))
        job->invalid = job->invalid ? NULL : "spec.x: wrong";
    if (chance(s, 6))
        edit_spec(s, &job->replicas[chance(s, 50) ? REPLICA_MASTER : REPLICA_WORKER]);
}

/* ---- what is not ours ---- */

void simulation_remove_foreign(struct simulation *s)
{
    struct cluster *truth = s->truth;
    for (size_t i = truth->service_count; i-- > 0;)
        if (strcmp(truth->services[i].owner_uid, "someone") == 0)
            truth->services[i] = truth->services[--truth->service_count];
}

/* A service of somebody else's takes a name that the job wants, or goes again. */
static void move_foreign(struct simulation *s)
{
    struct cluster *truth = s->truth;
    struct action action = {.kind = ACTION_CREATE_SERVICE,
                            .type = chance(s, 50) ? REPLICA_MASTER : REPLICA_WORKER,
                            .index = below(s, 3)};
    if (chance(s, 5))
        simulation_remove_foreign(s);
    if (!chance(s, 3))
        return;
    action.name = names_child(truth->arena, truth->job, action.type, action.index);
    if (cluster_service(truth, action.name))
        return;
    cluster_carry_out(truth, &action);
    cluster_service(truth, action.name)->owner_uid = "someone";
    str_printf(&s->history, "foreign service %s\n", action.name);
}

void simulation_move_people(struct simulation *s)
{
    move_user(s);
    move_foreign(s);
}
