#include "tests/operator/reconcile/simulation.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode_status.h"
#include "operator/job/job_status.h"
#include "operator/manifest/manifest.h"
#include "operator/reconcile/restart.h"
#include "tests/operator/cache/objects.h"
#include "tests/support.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY_MAX_BYTES (1 << 20)
#define PATIENCE_MS       20000

/* ---- chance ---- */

int simulation_below(struct simulation *s, int bound)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (int)(s->random % (uint64_t)bound);
}

bool simulation_chance(struct simulation *s, int percent)
{
    return simulation_below(s, 100) < percent;
}

#define below  simulation_below
#define chance simulation_chance

/* ---- one simulation ---- */

static const char *draw_spec(struct simulation *s)
{
    return chance(s, 25) ? "elasticPolicy: {minReplicas: 1, maxReplicas: 5, metrics: []}" : "";
}

static struct cluster *draw_job(struct simulation *s)
{
    static const char *const policies[] = {"Always", "OnFailure", "Never", "ExitCode"};
    static const char *const cleans[] = {"None", "Running", "All"};
    int masters = below(s, 2);
    auto_free char *deadline =
        chance(s, 20) ? xasprintf(", activeDeadlineSeconds: %d", below(s, 200)) : xstrdup("");
    auto_free char *ttl =
        chance(s, 20) ? xasprintf(", ttlSecondsAfterFinished: %d", below(s, 100)) : xstrdup("");
    auto_free char *run_policy = xasprintf(
        "restartScope: %s, backoffLimit: %d, cleanPodPolicy: %s%s%s",
        chance(s, 50) ? "Job" : "Replica", below(s, 8) - 1, cleans[below(s, 3)], deadline, ttl);
    int workers = below(s, 4) + !masters;
    struct cluster *cluster = cluster_open(masters, workers, policies[below(s, 4)], run_policy,
                                           workers ? draw_spec(s) : "");
    str_printf(&s->history, "job: %d + %d, %s, %s\n", masters, workers, run_policy,
               cluster->job->elastic.present ? "elastic" : "not elastic");
    return cluster;
}

struct simulation *simulation_open(uint64_t seed)
{
    struct simulation *s = xcalloc(1, sizeof *s);
    s->seed = seed;
    s->random = seed * 0x9e3779b97f4a7c15;
    str_init(&s->history, HISTORY_MAX_BYTES);
    s->truth = draw_job(s);
    struct reconcile_options *options = &s->truth->options;
    options->autoscaling = chance(s, 80);
    options->node_lost_ms = chance(s, 80) ? PATIENCE_MS : 0;
    options->overdue_ms = chance(s, 80) ? PATIENCE_MS : 0;
    if (chance(s, 30))
        options->gang = chance(s, 50) ? (struct gang){GANG_VOLCANO, "volcano"}
                                      : (struct gang){GANG_PLUGINS, "coscheduler"};
    str_printf(&s->history, "operator: lost after %" PRId64 " ms, overdue after %" PRId64 " ms\n",
               options->node_lost_ms, options->overdue_ms);
    s->seen = *s->truth;
    return s;
}

void simulation_close(struct simulation *s)
{
    cluster_close(s->truth);
    str_free(&s->history);
    free(s);
}

/* ---- the world moves ---- */

static void end_pod(struct simulation *s, struct pod *pod, int exit_code)
{
    pod->phase = exit_code == 0 ? POD_SUCCEEDED : POD_FAILED;
    pod->exited = true;
    pod->exit_code = exit_code;
    pod->exited_ms = s->truth->now_ms;
    if (exit_code)
        pod->end = (struct pod_end){.container = "pytorch", .code = exit_code};
}

/* Someone deletes it. */
static void delete_pod(struct simulation *s, struct pod *pod)
{
    struct action action = {.kind = ACTION_DELETE_POD, .name = pod->name, .uid = pod->uid};
    cluster_carry_out(s->truth, &action);
}

static void run_on(struct simulation *s, struct pod *pod)
{
    static const int exit_codes[] = {0, 0, 1, 127, 128, 137, 138};
    if (pod->phase == POD_PENDING) {
        pod->waiting_reason = chance(s, 30) ? "ImagePullBackOff" : NULL;
        if (!pod->waiting_reason)
            pod->phase = POD_RUNNING;
    } else if (chance(s, 40) && restart_in_place(s->truth->job, pod->type)) {
        pod->restart_count++;
        pod->end = (struct pod_end){
            .container = chance(s, 80) ? "pytorch" : "side",
            .code = exit_codes[below(s, (int)array_length(exit_codes))],
        };
        pod->waiting_reason = chance(s, 30) ? "CrashLoopBackOff" : NULL;
    } else if (chance(s, 40)) {
        end_pod(s, pod, exit_codes[below(s, (int)array_length(exit_codes))]);
    } else if (chance(s, 10)) {
        pod->phase = POD_FAILED;
        pod->disrupted = true;
        pod->created_ms = chance(s, 50) ? s->truth->now_ms : 0;
    } else if (chance(s, 10)) {
        pod->node_lost_ms = s->truth->now_ms;
    } else if (chance(s, 5)) {
        delete_pod(s, pod);
    }
}

/* Some do not end when they are told to, on a node that is well: they wait for a disk, say. */
static bool hangs(const struct pod *pod)
{
    return atoi(pod->uid + 1) % 10 == 0 && pod->phase != POD_SUCCEEDED && pod->phase != POD_FAILED;
}

static void move_pod(struct simulation *s, struct pod *pod)
{
    bool over = pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
    if (pod->node_lost_ms) {
        if (chance(s, 20))
            pod->node_lost_ms = 0;
    } else if (pod->deleted_ms && hangs(pod)) {
        if (chance(s, 5))
            cluster_remove_pod(s->truth, pod);
    } else if (pod->deleted_ms && chance(s, 50)) {
        cluster_remove_pod(s->truth, pod);
    } else if (pod->deleted_ms && !over) {
        end_pod(s, pod, chance(s, 50) ? 0 : 143);
    } else if (!over) {
        run_on(s, pod);
    } else if (chance(s, 5)) {
        delete_pod(s, pod);
    }
}

static void move_clock(struct simulation *s)
{
    int64_t *now_ms = &s->truth->now_ms;
    *now_ms += 1000 * below(s, 3);
    if (chance(s, 2))
        *now_ms += 1000 * 3600;
    if (chance(s, 2))
        *now_ms = *now_ms > 601000 ? *now_ms - 600000 : 1000;
}

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

static void print_truth(struct simulation *s)
{
    const struct cluster *truth = s->truth;
    str_printf(&s->history, "at %" PRId64 " workers %" PRId64 "%s%s:", truth->now_ms,
               truth->job->replicas[REPLICA_WORKER].replicas.value,
               truth->job->run_policy.suspend ? " suspended" : "",
               truth->job->invalid ? " spoilt" : "");
    for (size_t i = 0; i < truth->pod_count; i++) {
        const struct pod *pod = &truth->pods[i];
        str_printf(&s->history, " %s %s %s", pod->name, pod->uid, object_phase(pod->phase));
        if (pod->restart_count)
            str_printf(&s->history, " restarts=%d after %s %d", pod->restart_count,
                       pod->end.container, pod->end.code);
        if (pod->exited)
            str_printf(&s->history, " exit=%d@%" PRId64, pod->exit_code, pod->exited_ms);
        if (pod->deleted_ms)
            str_printf(&s->history, " deleted@%" PRId64, pod->deleted_ms);
        if (pod->node_lost_ms)
            str_printf(&s->history, " lost@%" PRId64, pod->node_lost_ms);
        str_add(&s->history, ";");
    }
    str_printf(&s->history, " group %s\n", truth->pod_group.name ? truth->pod_group.phase : "none");
}

void simulation_move(struct simulation *s)
{
    static const char *const phases[] = {"", "Pending", "Inqueue", "Running"};
    struct cluster *truth = s->truth;
    move_clock(s);
    if (truth->pod_count)
        move_pod(s, &truth->pods[below(s, (int)truth->pod_count)]);
    if (truth->pod_group.name && chance(s, 20))
        truth->pod_group.phase = phases[below(s, (int)array_length(phases))];
    move_user(s);
    print_truth(s);
}

void simulation_end_deleted(struct simulation *s, bool all)
{
    for (size_t i = s->truth->pod_count; i-- > 0;)
        if (s->truth->pods[i].deleted_ms && !s->truth->pods[i].node_lost_ms &&
            (all || !hangs(&s->truth->pods[i])))
            cluster_remove_pod(s->truth, &s->truth->pods[i]);
    print_truth(s);
}

/* ---- the operator looks ---- */

/* An operator that starts anew knows of the past only what was stored. */
static void restart_operator(struct simulation *s)
{
    struct json *json = manifest_status(s->truth->job, &s->truth->status);
    s->seen.status = decode_status(json, s->truth->arena);
    json_free(json);
    simulation_check(s, job_status_equal(&s->seen.status, &s->truth->status),
                     "the status was not kept");
}

void simulation_look(struct simulation *s)
{
    struct plan *plan = s->seen.plan;
    s->seen = *s->truth;
    s->seen.plan = plan;
    s->stale_status = false;
    str_add(&s->history, "look\n");
    if (chance(s, 10))
        restart_operator(s);
}

/* Objects are found by name, as in a cache. */
static void glance_at_pods(struct simulation *s)
{
    struct cluster *seen = &s->seen;
    for (size_t i = seen->pod_count; i-- > 0;) {
        const struct pod *now = cluster_pod(s->truth, seen->pods[i].name);
        if (!chance(s, 50))
            continue;
        if (now)
            seen->pods[i] = *now;
        else
            cluster_remove_pod(seen, &seen->pods[i]);
    }
    for (size_t i = 0; i < s->truth->pod_count; i++)
        if (!cluster_pod(seen, s->truth->pods[i].name) && chance(s, 50))
            seen->pods[seen->pod_count++] = s->truth->pods[i];
}

void simulation_glance(struct simulation *s)
{
    glance_at_pods(s);
    if (chance(s, 50)) {
        memcpy(s->seen.services, s->truth->services, sizeof s->seen.services);
        s->seen.service_count = s->truth->service_count;
    }
    if (chance(s, 50))
        s->seen.pod_group = s->truth->pod_group;
    if (chance(s, 50))
        s->seen.autoscaler = s->truth->autoscaler;
    if (chance(s, 50)) {
        s->seen.status = s->truth->status;
        s->stale_status = false;
    }
    str_printf(&s->history, "glance, status is %s\n", s->stale_status ? "old" : "new");
}

/* ---- and acts ---- */

/* A deletion by force is of what was seen, and refused if there is something else by now. */
static bool is_refused(struct simulation *s, const struct action *action)
{
    if (action->kind != ACTION_FORCE_DELETE_POD)
        return false;
    const struct pod *seen = cluster_pod(&s->seen, action->name);
    const struct pod *now = cluster_pod(s->truth, action->name);
    simulation_check(s, action->version, "%s is deleted by force whatever it is by now",
                     action->name);
    if (!now || strcmp(now->uid, seen->uid) != 0 || now->phase != seen->phase ||
        now->deleted_ms != seen->deleted_ms || now->node_lost_ms != seen->node_lost_ms)
        return true;
    simulation_check(s, simulation_is_lost(s->truth, now), "%s is well and deleted by force",
                     action->name);
    return false;
}

void simulation_pass(struct simulation *s, bool troubles)
{
    s->seen.now_ms = s->truth->now_ms;
    cluster_plan(&s->seen);
    plan_print(s->seen.plan, &s->history);
    simulation_check_plan(s);
    bool sets_status = s->seen.plan->count && s->seen.plan->actions[0].kind == ACTION_SET_STATUS;
    size_t carried_out = s->seen.plan->count;
    if (troubles && chance(s, 25))
        carried_out = (size_t)below(s, (int)carried_out + 1);
    if (sets_status && s->stale_status)
        carried_out = 0;
    str_printf(&s->history, "- carried out: %zu\n", carried_out);
    if (sets_status && carried_out > 0) {
        simulation_judge(s, &s->seen.status, s->seen.plan->actions[0].status);
        s->stale_status = true;
    }
    s->truth->plan = s->seen.plan;
    for (size_t i = 0; i < carried_out; i++)
        if (!is_refused(s, &s->truth->plan->actions[i]))
            cluster_carry_out(s->truth, &s->truth->plan->actions[i]);
}
