/* Random histories of a job: pods start, end, are restarted, evicted and deleted; users suspend and
 * scale; the operator sees the world late, loses races and dies between any two actions. Whatever
 * happens, the invariants hold after every step and the world comes to rest at the end. A failing
 * run names its seed: SIMULATION_SEED=n runs that one alone. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/condition.h"
#include "operator/decode_status.h"
#include "operator/history.h"
#include "operator/job_status.h"
#include "operator/manifest.h"
#include "operator/restart.h"
#include "tests/operator/cluster.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS     1000
#define STEPS     80
#define MAX_UIDS  1024
#define MAX_RESTS 40 /* passes until the world must be at rest */

/* What was counted, by an independent rule: a table of every pod that ever was. */
struct oracle {
    const char *uids[MAX_UIDS];
    int32_t counted[MAX_UIDS];
    size_t count;
    int32_t failures;
};

struct simulation {
    uint64_t random;
    uint64_t seed;
    struct cluster *truth;
    struct cluster seen; /* what the operator's caches hold: the truth of some moment */
    struct oracle oracle;
    bool stale_status; /* the status seen is not the one that is stored */
    bool was_finished;
};

static uint64_t draw(struct simulation *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->random;
}

static int below(struct simulation *s, int bound)
{
    return (int)(draw(s) % (uint64_t)bound);
}

static bool chance(struct simulation *s, int percent)
{
    return below(s, 100) < percent;
}

#define check(s, condition, ...)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("seed %llu: ", (unsigned long long)(s)->seed);                             \
            print_error(__VA_ARGS__);                                                              \
            print_error("\n");                                                                     \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

/* ---- the world moves ---- */

static void end_pod(struct simulation *s, struct pod *pod, int exit_code)
{
    pod->phase = exit_code == 0 ? POD_SUCCEEDED : POD_FAILED;
    pod->exited = true;
    pod->exit_code = exit_code;
    pod->exited_ms = s->truth->now_ms;
}

static void move_pod(struct simulation *s, struct pod *pod)
{
    static const int exit_codes[] = {0, 0, 1, 127, 128, 137, 138};
    bool over = pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
    if (pod->deleted_ms && chance(s, 50)) {
        cluster_remove_pod(s->truth, pod);
    } else if (pod->deleted_ms && !over) {
        end_pod(s, pod, chance(s, 50) ? 0 : 143);
    } else if (pod->phase == POD_PENDING) {
        pod->phase = POD_RUNNING;
    } else if (!over && chance(s, 40)) {
        if (restart_in_place(s->truth->job, pod->type))
            pod->restart_count++;
        else
            end_pod(s, pod, exit_codes[below(s, (int)array_length(exit_codes))]);
    } else if (!over && chance(s, 10)) {
        pod->phase = POD_FAILED;
        pod->disrupted = true;
    } else if (!over && chance(s, 10)) {
        end_pod(s, pod, 0);
    } else if (chance(s, 5)) {
        pod->deleted_ms = s->truth->now_ms;
    }
}

static void move_world(struct simulation *s)
{
    struct cluster *truth = s->truth;
    truth->now_ms += 1000 * below(s, 3);
    if (truth->pod_count)
        move_pod(s, &truth->pods[below(s, (int)truth->pod_count)]);
    if (chance(s, 3))
        truth->job->run_policy.suspend = !truth->job->run_policy.suspend;
    if (chance(s, 3) && truth->job->replicas[REPLICA_WORKER].present)
        truth->job->replicas[REPLICA_WORKER].replicas.value = 1 + below(s, 5);
}

/* ---- the operator looks and acts ---- */

/* An operator that starts anew knows of the past only what was stored. */
static void restart_operator(struct simulation *s)
{
    json_t *json = manifest_status(s->truth->job, &s->truth->status);
    s->seen.status = decode_status(json, s->truth->arena);
    json_decref(json);
    check(s, job_status_equal(&s->seen.status, &s->truth->status), "the status was not kept");
}

static void look(struct simulation *s)
{
    memcpy(s->seen.pods, s->truth->pods, sizeof s->seen.pods);
    memcpy(s->seen.services, s->truth->services, sizeof s->seen.services);
    s->seen.pod_count = s->truth->pod_count;
    s->seen.service_count = s->truth->service_count;
    s->seen.status = s->truth->status;
    s->stale_status = false;
    if (chance(s, 10))
        restart_operator(s);
}

static int32_t *counted(struct simulation *s, const char *uid)
{
    struct oracle *oracle = &s->oracle;
    for (size_t i = 0; i < oracle->count; i++)
        if (strcmp(oracle->uids[i], uid) == 0)
            return &oracle->counted[i];
    assert_true(oracle->count < MAX_UIDS);
    oracle->uids[oracle->count] = uid;
    return &oracle->counted[oracle->count++];
}

/* Whether a pod has a place in the job, and in the attempt that `status` is at. */
static bool has_place(const struct simulation *s, const struct pod *pod,
                      const struct job_status *status)
{
    const struct job *job = s->truth->job;
    return pod->index < job->replicas[pod->type].replicas.value &&
           (job->run_policy.restart_scope != SCOPE_JOB || pod->attempt >= status->history.attempt);
}

/* Counts what the pass that is being stored has seen. */
static void count(struct simulation *s, const struct job_status *before)
{
    bool group = s->truth->job->run_policy.restart_scope == SCOPE_JOB;
    int32_t fresh = 0;
    if (s->was_finished || s->truth->job->run_policy.suspend)
        return;
    for (size_t i = 0; i < s->seen.pod_count; i++) {
        const struct pod *pod = &s->seen.pods[i];
        if (!has_place(s, pod, before) || restart_succeeded(pod) ||
            history_is_complete(&before->history, pod->type, pod->index))
            continue;
        int32_t *known = counted(s, pod->uid), failures = restart_failures(pod);
        if (failures > *known) {
            fresh += failures - *known;
            *known = failures;
        }
    }
    s->oracle.failures += group && fresh > 1 ? 1 : fresh;
}

/* ---- invariants ---- */

static const struct job_status *planned_status(const struct simulation *s)
{
    const struct plan *plan = s->seen.plan;
    return plan->count && plan->actions[0].kind == ACTION_SET_STATUS ? plan->actions[0].status
                                                                     : &s->seen.status;
}

static const struct pod *seen_pod(const struct simulation *s, const char *name)
{
    for (size_t i = 0; i < s->seen.pod_count; i++)
        if (strcmp(s->seen.pods[i].name, name) == 0)
            return &s->seen.pods[i];
    return NULL;
}

static void check_action(struct simulation *s, const struct action *action,
                         const struct job_status *status)
{
    const struct job *job = s->truth->job;
    if (action->kind == ACTION_CREATE_POD) {
        check(s, !seen_pod(s, action->name), "%s is made though it is there", action->name);
        check(s, action->index < job->replicas[action->type].replicas.value,
              "%s is made beyond the number of replicas", action->name);
        check(s, !history_is_complete(&status->history, action->type, action->index),
              "%s is made though it is complete", action->name);
        check(s, !job->run_policy.suspend && !condition_finished(status), "%s is made in vain",
              action->name);
    }
    const struct pod *pod = action->kind == ACTION_DELETE_POD ? seen_pod(s, action->name) : NULL;
    if (pod && !job->run_policy.suspend && !condition_finished(status))
        check(s, pod->phase == POD_FAILED || !has_place(s, pod, status),
              "%s is deleted though it %s", action->name, "is well");
}

static void check_plan(struct simulation *s)
{
    const struct plan *plan = s->seen.plan;
    const struct job_status *status = planned_status(s);
    for (size_t i = 0; i < plan->count; i++) {
        check(s, plan->actions[i].kind != ACTION_SET_STATUS || i == 0, "the status is not first");
        check_action(s, &plan->actions[i], status);
    }
}

static void check_world(struct simulation *s)
{
    const struct job_status *status = &s->truth->status;
    const struct job *job = s->truth->job;
    int64_t limit = job->run_policy.backoff_limit.value;
    if (status->condition_count == 0)
        return;
    check(s, status->conditions[0].type == CONDITION_CREATED, "the first condition is not Created");
    check(s, status->history.failures == s->oracle.failures,
          "%d failures are counted, there were %d", status->history.failures, s->oracle.failures);
    check(s, !s->was_finished || condition_finished(status), "a finished job came back");
    check(s, condition_finished(status) || limit < 0 || status->history.failures <= limit,
          "the limit is passed and the job goes on");
    check(s,
          !strstr(condition_last(status)->message, "backoff limit") ||
              status->history.failures > limit,
          "the job failed by a limit that is not passed");
    check(s, !condition_finished(status) || condition_last(status)->status, "the last is not true");
    for (size_t i = 1; i < s->truth->pod_count && job->run_policy.restart_scope == SCOPE_JOB; i++)
        check(s, s->truth->pods[i].attempt == s->truth->pods[0].attempt, "two attempts at once");
    s->was_finished = condition_finished(status);
}

/* ---- one run ---- */

/* A pass on what is seen; a crash may end it after any action, a lost race before the first. */
static void pass(struct simulation *s, bool crashes)
{
    s->seen.now_ms = s->truth->now_ms;
    cluster_plan(&s->seen);
    check_plan(s);
    bool sets_status = s->seen.plan->count && s->seen.plan->actions[0].kind == ACTION_SET_STATUS;
    if (sets_status && s->stale_status)
        return;
    size_t carried_out = s->seen.plan->count;
    if (crashes && chance(s, 25))
        carried_out = (size_t)below(s, (int)carried_out + 1);
    if (sets_status && carried_out > 0) {
        count(s, &s->seen.status);
        s->stale_status = true;
    }
    s->truth->plan = s->seen.plan;
    cluster_apply(s->truth, carried_out);
}

static void come_to_rest(struct simulation *s)
{
    for (int i = 0; i < MAX_RESTS; i++) {
        for (size_t k = s->truth->pod_count; k-- > 0;)
            if (s->truth->pods[k].deleted_ms)
                cluster_remove_pod(s->truth, &s->truth->pods[k]);
        look(s);
        pass(s, false);
        check_world(s);
        if (s->seen.plan->count == 0)
            return;
    }
    check(s, false, "no rest after %d passes", MAX_RESTS);
}

static struct cluster *random_job(struct simulation *s)
{
    static const char *const policies[] = {"Always", "OnFailure", "Never", "ExitCode"};
    static const char *const cleans[] = {"None", "Running", "All"};
    int masters = below(s, 2);
    auto_free char *run_policy =
        xasprintf("restartScope: %s, backoffLimit: %d, cleanPodPolicy: %s",
                  chance(s, 50) ? "Job" : "Replica", below(s, 8) - 1, cleans[below(s, 3)]);
    return cluster_open(masters, below(s, 4) + !masters, policies[below(s, 4)], run_policy, "");
}

static void run(uint64_t seed)
{
    struct simulation *s = xcalloc(1, sizeof *s);
    s->seed = seed;
    s->random = seed * 0x9e3779b97f4a7c15;
    s->truth = random_job(s);
    s->seen = *s->truth;
    for (int i = 0; i < STEPS; i++) {
        move_world(s);
        if (chance(s, 60))
            look(s);
        if (chance(s, 70))
            pass(s, true);
        check_world(s);
    }
    come_to_rest(s);
    cluster_close(s->truth);
    free(s);
}

static void invariants_hold_in_every_history(void **state)
{
    (void)state;
    int64_t seed;
    if (str_to_i64(getenv("SIMULATION_SEED"), 1, INT64_MAX, &seed)) {
        run((uint64_t)seed);
        return;
    }
    for (uint64_t i = 1; i <= SEEDS; i++)
        run(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(invariants_hold_in_every_history)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
