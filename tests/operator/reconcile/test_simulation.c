/* Random histories of a job. Whatever happens, the invariants hold after every step and the world
 * comes to rest at the end. A failing run prints its history and its seed: SIMULATION_SEED=n runs
 * that one alone. Arguments are the number of histories, and the seed of the first. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode_status.h"
#include "operator/job/condition.h"
#include "operator/job/job_status.h"
#include "operator/manifest/manifest.h"
#include "tests/operator/reconcile/simulation.h"
#include "tests/operator/seed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STEPS     80
#define MAX_RESTS 60 /* passes until the world must be at rest */

/* ---- anything happens ---- */

/* Only waiting is left: until then, or for ever. Returns whether for ever. */
static bool rests(struct simulation *s)
{
    const struct plan *plan = s->seen.plan;
    if (s->truth->job_deleted)
        return true;
    if (plan->count == 0)
        return !s->again;
    if (plan->actions[0].kind == ACTION_REQUEUE) {
        simulation_check(s, plan->actions[0].at_ms > s->truth->now_ms,
                         "a pass with nothing to do wants another one at once");
        /* In whole seconds, as a status keeps its times. */
        s->truth->now_ms = (plan->actions[0].at_ms + 999) / 1000 * 1000;
    }
    return false;
}

/* First with pods that hang, about which nothing can be done; then without. */
static void come_to_rest(struct simulation *s, bool all_end)
{
    for (int i = 0; i < MAX_RESTS; i++) {
        simulation_end_deleted(s, all_end);
        simulation_schedule(s);
        simulation_look(s);
        simulation_pass(s, false);
        simulation_check_world(s);
        if (!rests(s))
            continue;
        if (!s->truth->job_deleted && all_end)
            simulation_check_rest(s);
        else if (!s->truth->job_deleted)
            simulation_check_overdue(s);
        return;
    }
    simulation_fail(s, "no rest after %d passes", MAX_RESTS);
}

static void run(uint64_t seed)
{
    struct simulation *s = simulation_open(seed);
    for (int i = 0; i < STEPS && !s->truth->job_deleted; i++) {
        simulation_move(s);
        if (simulation_chance(s, 40))
            simulation_look(s);
        else if (simulation_chance(s, 50))
            simulation_glance(s);
        if (simulation_chance(s, 70))
            simulation_pass(s, true);
        simulation_check_world(s);
    }
    s->truth->bad_node_count = 0; /* a mark that stays moves pods again after each avoid_node_ms */
    for (int all_end = 0; all_end < 2 && !s->truth->job_deleted; all_end++)
        come_to_rest(s, all_end);
    simulation_close(s);
}

static int64_t histories = 2000;
static int64_t from = 1;  /* the first one's seed; each has the next */
static int64_t only_seed; /* 0: all */

static void invariants_hold_in_every_history(void **state)
{
    (void)state;
    if (only_seed) {
        run((uint64_t)only_seed);
        return;
    }
    for (int64_t i = 0; i < histories; i++)
        run((uint64_t)(from + i));
    print_message("%" PRId64 " random histories from seed %" PRId64
                  " on: none breaks an invariant\n",
                  histories, from);
}

/* ---- the operator dies after every action in turn ---- */

/* A life with a failure and a suspension in it, whose end does not depend on when the operator
 * dies. */
static const struct life {
    int masters, workers;
    const char *policy, *run_policy, *spec;
    size_t pods, services; /* that are left */
    int attempt;
} lives[] = {
    {1, 2, "ExitCode", "cleanPodPolicy: All", "", 0, 0, 0},
    {1, 2, "OnFailure", "cleanPodPolicy: None", "", 3, 3, 0},
    {0, 3, "ExitCode", "cleanPodPolicy: Running", "", 3, 3, 0},
    {1, 2, "ExitCode", "cleanPodPolicy: All, restartScope: Job", "", 0, 0, 2},
    {1, 2, "ExitCode", "cleanPodPolicy: All",
     "elasticPolicy: {minReplicas: 1, maxReplicas: 3, metrics: []}", 0, 0, 0},
};

#define LIFE_STEPS     24
#define LIFE_FAILS_AT  4
#define LIFE_SLEEPS_AT 8
#define LIFE_WAKES_AT  10
#define LIFE_ENDS_AT   18

/* The cluster's part of one step. */
static void live_on(struct cluster *cluster, int step)
{
    cluster->now_ms += 1000;
    for (size_t i = cluster->pod_count; i-- > 0;) {
        struct pod *pod = &cluster->pods[i];
        if (pod->deleted_ms)
            cluster_remove_pod(cluster, pod);
        else if (pod->phase == POD_PENDING)
            pod->phase = POD_RUNNING;
    }
    if (cluster->pod_group.name)
        cluster->pod_group.phase = "Running";
    if (step == LIFE_FAILS_AT)
        cluster_do(cluster, "exit worker-1 137");
    else if (step == LIFE_SLEEPS_AT || step == LIFE_WAKES_AT)
        cluster->job->run_policy.suspend = step == LIFE_SLEEPS_AT;
    else if (step == LIFE_ENDS_AT)
        cluster_do(cluster, "exit * 0");
}

/* One pass; true if `*actions` ran out, so that the operator died in it. */
static bool pass_and_die(struct cluster *cluster, size_t *actions)
{
    cluster_plan(cluster);
    size_t count = cluster->plan->count < *actions ? cluster->plan->count : *actions;
    cluster_apply(cluster, count);
    bool died = *actions == count;
    *actions -= count;
    return died;
}

static void restart_operator(struct cluster *cluster, size_t *actions)
{
    struct json *json = manifest_status(cluster->job, &cluster->status);
    cluster->status = decode_status(json, cluster->arena);
    json_free(json);
    *actions = SIZE_MAX;
}

/* Lives it through, with one death after `actions` actions; false if it ended before. */
static bool live(const struct life *life, size_t actions)
{
    size_t dies_at = actions;
    bool died = false;
    struct cluster *cluster =
        cluster_open(life->masters, life->workers, life->policy, life->run_policy, life->spec);
    cluster_do(cluster, "gang volcano; autoscale; patience 20000");
    for (int step = 0; step < LIFE_STEPS; step++) {
        live_on(cluster, step);
        if (pass_and_die(cluster, &actions)) {
            died = true;
            restart_operator(cluster, &actions);
        }
        cluster_do(cluster, "pass"); /* the world is seen again before it moves on */
    }
    const struct job_status *status = &cluster->status;
    if (condition_last(status)->type != CONDITION_SUCCEEDED || status->history.failures != 1 ||
        status->history.attempt != life->attempt || cluster->pod_count != life->pods ||
        cluster->service_count != life->services || cluster->pod_group.name ||
        cluster->autoscaler.name)
        fail_msg("life %d, dead after %zu actions: %s, %d failures, attempt %d, %zu pods, %zu "
                 "services",
                 (int)(life - lives), dies_at, condition_last(status)->reason,
                 status->history.failures, status->history.attempt, cluster->pod_count,
                 cluster->service_count);
    cluster_close(cluster);
    return died;
}

static void a_death_after_any_action_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(lives); i++) {
        size_t actions = 0;
        while (live(&lives[i], actions))
            actions++;
        assert_true(actions > 20);
    }
}

/* The arguments are how many random histories to try, and the first one's seed. */
int main(int argc, char **argv)
{
    if (argc > 3 || (argc > 1 && !str_to_i64(argv[1], 1, INT64_MAX, &histories)) ||
        (argc > 2 && !str_to_i64(argv[2], 1, INT64_MAX - histories, &from))) {
        fprintf(stderr,
                "usage: %s [HISTORIES [FROM]]\n"
                "HISTORIES: how many random ones, a whole number from 1 on (2000).\n"
                "FROM: the seed of the first one, from 1 on (1); each has the next.\n"
                "$SIMULATION_SEED: the seed of one, which is run alone.\n",
                argv[0]);
        return 2;
    }
    only_seed = seed_asked();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_after_any_action_changes_nothing),
        cmocka_unit_test(invariants_hold_in_every_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
