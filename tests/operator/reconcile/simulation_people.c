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
    switch (below(s, 7)) {
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
    case 5:
        simulation_draw_limits(s);
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

/* A job's service is nobody's but by its name: some delete it, while its pod lives. */
static void delete_service(struct simulation *s)
{
    struct cluster *truth = s->truth;
    if (!truth->service_count || !chance(s, 4))
        return;
    size_t at = (size_t)below(s, (int)truth->service_count);
    str_printf(&s->history, "service %s is deleted\n", truth->services[at].name);
    truth->services[at] = truth->services[--truth->service_count];
}

/* ---- what is not ours ---- */

void simulation_remove_foreign(struct simulation *s)
{
    struct cluster *truth = s->truth;
    for (size_t i = truth->service_count; i-- > 0;)
        if (strcmp(truth->services[i].owner_uid, "someone") == 0)
            truth->services[i] = truth->services[--truth->service_count];
    s->foreign_count = 0;
}

const struct pod *simulation_foreign_pod(const struct simulation *s, const char *name)
{
    for (size_t i = 0; i < s->foreign_count; i++)
        if (strcmp(s->foreign[i].name, name) == 0)
            return &s->foreign[i];
    return NULL;
}

size_t simulation_show_foreign(struct simulation *s)
{
    struct cluster *seen = &s->seen;
    for (size_t i = 0; i < s->foreign_count; i++) {
        struct pod *before = cluster_pod(seen, s->foreign[i].name);
        if (s->foreign_seen[i] && before) /* a cache has one object of a name */
            cluster_remove_pod(seen, before);
    }
    size_t count = seen->pod_count, next = count;
    for (size_t i = 0; i < s->foreign_count; i++)
        if (s->foreign_seen[i])
            seen->pods[next++] = s->foreign[i];
    seen->pod_count = next;
    return count;
}

/* As if it were the job's: it bears its labels, has failed, say, and is of some attempt. */
static void make_foreign_pod(struct simulation *s, const struct action *action)
{
    static const enum pod_phase phases[] = {POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED};
    struct cluster *truth = s->truth;
    if (s->foreign_count == SIMULATION_MAX_FOREIGN || cluster_pod(truth, action->name) ||
        simulation_foreign_pod(s, action->name))
        return;
    cluster_carry_out(truth, action);
    struct pod *made = cluster_pod(truth, action->name);
    struct pod *pod = &s->foreign[s->foreign_count];
    *pod = *made;
    cluster_remove_pod(truth, made);
    pod->owner_uid = chance(s, 50) ? "someone" : "";
    pod->phase = phases[below(s, 4)];
    pod->restart_count = below(s, 3);
    s->foreign_seen[s->foreign_count++] = false;
    str_printf(&s->history, "foreign pod %s %s, phase %d\n", pod->name, pod->uid, pod->phase);
}

static void make_foreign_service(struct simulation *s, const struct action *action)
{
    if (cluster_service(s->truth, action->name))
        return;
    cluster_carry_out(s->truth, action);
    cluster_service(s->truth, action->name)->owner_uid = "someone";
    str_printf(&s->history, "foreign service %s\n", action->name);
}

/* What is somebody else's takes a name that the job wants, or goes again. */
static void move_foreign(struct simulation *s)
{
    bool is_pod = chance(s, 50);
    struct action action = {.kind = is_pod ? ACTION_CREATE_POD : ACTION_CREATE_SERVICE,
                            .type = chance(s, 50) ? REPLICA_MASTER : REPLICA_WORKER,
                            .index = below(s, 3),
                            .attempt = below(s, 3)};
    if (chance(s, 5))
        simulation_remove_foreign(s);
    if (!chance(s, 5))
        return;
    action.name = names_child(s->truth->arena, s->truth->job, action.type, action.index);
    if (is_pod)
        make_foreign_pod(s, &action);
    else
        make_foreign_service(s, &action);
}

void simulation_move_people(struct simulation *s)
{
    move_user(s);
    delete_service(s);
    move_foreign(s);
    if (chance(s, s->refuses_status ? 30 : 1))
        s->refuses_status = !s->refuses_status;
}
