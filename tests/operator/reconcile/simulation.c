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

static const char *draw_spec(struct simulation *s, int masters)
{
    static const char *const specs[] = {
        "elasticPolicy: {minReplicas: 1, maxReplicas: 5, metrics: []}",
        "elasticPolicy: {minReplicas: 1, maxReplicas: 5, metrics: [], shrinkAfterSeconds: 3}",
        "elasticPolicy: {minReplicas: 2, maxReplicas: 5, metrics: [], shrinkAfterSeconds: 0}",
    };
    return chance(s, masters ? 20 : 60) ? specs[below(s, (int)array_length(specs))] : "";
}

static struct cluster *draw_job(struct simulation *s)
{
    static const char *const policies[] = {"Always", "OnFailure", "Never", "ExitCode"};
    static const char *const cleans[] = {"None", "Running", "All"};
    int masters = below(s, 2);
    auto_free char *run_policy =
        xasprintf("restartScope: %s, backoffLimit: %d, cleanPodPolicy: %s",
                  chance(s, 50) ? "Job" : "Replica", below(s, 8) - 1, cleans[below(s, 3)]);
    int workers = below(s, 4) + !masters;
    struct cluster *cluster = cluster_open(masters, workers, policies[below(s, 4)], run_policy,
                                           workers ? draw_spec(s, masters) : "");
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
    simulation_draw_clocks(s);
    struct reconcile_options *options = &s->truth->options;
    simulation_draw_nodes(s);
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
        pod->end = simulation_pod_end(s, "pytorch", exit_code);
}

/* Someone deletes it. */
static void delete_pod(struct simulation *s, struct pod *pod)
{
    struct action action = {.kind = ACTION_DELETE_POD, .name = pod->name, .uid = pod->uid};
    cluster_carry_out(s->truth, &action);
}

static void run_on(struct simulation *s, struct pod *pod)
{
    if (pod->phase == POD_RUNNING && s->is_crowded && chance(s, 60))
        return; /* others wait long meanwhile */
    if (!pod->node) {
        simulation_move_waiting(s, pod);
    } else if (pod->phase == POD_PENDING && simulation_reject_pod(s, pod)) {
        pod->waiting_reason = "UnexpectedAdmissionError";
    } else if (pod->phase == POD_PENDING) {
        pod->waiting_reason = chance(s, 30) ? "ImagePullBackOff" : NULL;
        if (!pod->waiting_reason)
            pod->phase = POD_RUNNING;
    } else if (chance(s, 40) && restart_in_place(s->truth->job, pod->type)) {
        pod->restart_count++;
        pod->end =
            simulation_pod_end(s, chance(s, 80) ? "pytorch" : "side", simulation_exit_code(s));
        pod->waiting_reason = chance(s, 30) ? "CrashLoopBackOff" : NULL;
    } else if (chance(s, 40)) {
        end_pod(s, pod, simulation_exit_code(s));
    } else if (chance(s, 10)) {
        pod->phase = POD_FAILED;
        pod->disrupted = true;
        if (chance(s, 50))
            pod->created_ms = s->truth->now_ms;
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

static void print_truth(struct simulation *s)
{
    const struct cluster *truth = s->truth;
    str_printf(&s->history, "at %" PRId64 " workers %" PRId64 "%s%s:", truth->now_ms,
               truth->job->replicas[REPLICA_WORKER].replicas.value,
               truth->job->run_policy.suspend ? " suspended" : "",
               truth->job->invalid ? " spoilt" : "");
    for (size_t i = 0; i < truth->pod_count; i++) {
        const struct pod *pod = &truth->pods[i];
        str_printf(&s->history, " %s %s %s on %s", pod->name, pod->uid, object_phase(pod->phase),
                   pod->node ? pod->node : "none");
        if (pod->avoids)
            str_printf(&s->history, " avoids=%s", pod->avoids);
        if (pod->end.hardware)
            str_add(&s->history, " bad");
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
    simulation_move_clock(s);
    if (truth->pod_count)
        move_pod(s, &truth->pods[below(s, (int)truth->pod_count)]);
    if (truth->pod_group.name && chance(s, 20))
        truth->pod_group.phase = phases[below(s, (int)array_length(phases))];
    simulation_move_people(s);
    simulation_move_signs(s);
    print_truth(s);
}

void simulation_end_deleted(struct simulation *s, bool all)
{
    for (size_t i = s->truth->pod_count; i-- > 0;)
        if (s->truth->pods[i].deleted_ms && !s->truth->pods[i].node_lost_ms &&
            (all || !hangs(&s->truth->pods[i])))
            cluster_remove_pod(s->truth, &s->truth->pods[i]);
    if (all)
        simulation_remove_foreign(s);
    print_truth(s);
}

/* ---- the operator looks ---- */

/* An operator that starts anew knows of the past only what was stored. */
static void restart_operator(struct simulation *s)
{
    struct json *json = manifest_status(s->truth->job, &s->truth->status);
    s->seen.status = decode_status(json, s->truth->arena);
    s->truth->refused = s->seen.refused = NULL;
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
    for (size_t i = 0; i < s->foreign_count; i++)
        s->foreign_seen[i] = true;
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
    /* What the operator has made itself it waits for (expectations.h). Of a group it must: pods
     * that it does not see would meet those of the next attempt. */
    bool waits = s->truth->job->run_policy.restart_scope == SCOPE_JOB;
    for (size_t i = 0; i < s->truth->pod_count; i++)
        if (!cluster_pod(seen, s->truth->pods[i].name) && (waits || chance(s, 50)))
            seen->pods[seen->pod_count++] = s->truth->pods[i];
}

void simulation_glance(struct simulation *s)
{
    glance_at_pods(s);
    for (size_t i = 0; i < s->foreign_count; i++)
        s->foreign_seen[i] |= chance(s, 50);
    if (chance(s, 50)) {
        memcpy(s->seen.services, s->truth->services, sizeof s->seen.services);
        s->seen.service_count = s->truth->service_count;
    }
    if (chance(s, 50))
        s->seen.pod_group = s->truth->pod_group;
    if (chance(s, 50))
        s->seen.autoscaler = s->truth->autoscaler;
    if (chance(s, 50)) {
        memcpy(s->seen.bad_nodes, s->truth->bad_nodes, sizeof s->seen.bad_nodes);
        s->seen.bad_node_count = s->truth->bad_node_count;
    }
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

static bool may_be_refused(const struct action *action)
{
    return action->kind == ACTION_CREATE_SERVICE || action->kind == ACTION_CREATE_POD ||
           action->kind == ACTION_DELETE_SERVICE || action->kind == ACTION_DELETE_POD;
}

/* How many actions are carried out: the operator dies behind them, or a quota, a webhook or a
 * missing right refuses the next one, which is remembered as the executor does, but of a status. */
static size_t draw_end(struct simulation *s, bool troubles)
{
    const struct plan *plan = s->seen.plan;
    size_t end = plan->count;
    if (troubles && s->refuses_status && end && plan->actions[0].kind == ACTION_SET_STATUS) {
        str_add(&s->history, "- the status is refused\n");
        return 0;
    }
    if (troubles && chance(s, 25))
        end = (size_t)below(s, (int)end + 1);
    bool refuses = troubles && chance(s, 10);
    for (size_t i = 0; i < end && refuses; i++) {
        if (!may_be_refused(&plan->actions[i]) || chance(s, 50))
            continue;
        s->truth->refused = "forbidden: exceeded quota";
        str_printf(&s->history, "- %s is refused\n", plan->actions[i].name);
        return i;
    }
    if (end && end == plan->count &&
        !(s->stale_status && plan->actions[0].kind == ACTION_SET_STATUS))
        s->truth->refused = NULL;
    return end;
}

/* It is told whose the name is; a plan of a later attempt ends there (steps.h). */
static bool meets_foreign(struct simulation *s, const struct action *action)
{
    if (action->kind != ACTION_CREATE_POD || !simulation_foreign_pod(s, action->name))
        return false;
    s->truth->refused = "already exists";
    str_printf(&s->history, "- %s already exists\n", action->name);
    return true;
}

static void carry_out(struct simulation *s, const struct action *action)
{
    const struct action *first = s->seen.plan->actions;
    bool sets_status = first->kind == ACTION_SET_STATUS;
    if (is_refused(s, action))
        return;
    if (action->kind == ACTION_DELETE_POD)
        simulation_judge_deletion(s, action);
    cluster_carry_out(s->truth, action);
    if (action->kind == ACTION_CREATE_POD)
        simulation_made_pod(s, action,
                            sets_status ? &first->status->history : &s->seen.status.history);
}

void simulation_pass(struct simulation *s, bool troubles)
{
    s->seen.now_ms = s->truth->now_ms;
    s->seen.refused = s->truth->refused;
    size_t own = simulation_show_foreign(s);
    cluster_plan(&s->seen);
    s->seen.pod_count = own;
    plan_print(s->seen.plan, &s->history);
    simulation_check_plan(s);
    simulation_check_clocks(s);
    bool sets_status = s->seen.plan->count && s->seen.plan->actions[0].kind == ACTION_SET_STATUS;
    bool was_refused = s->truth->refused != NULL;
    size_t carried_out = draw_end(s, troubles);
    /* An operator waits until it sees the attempt that it began itself, as for its pods. */
    if (s->stale_status &&
        (sets_status || s->seen.status.history.attempt < s->truth->status.history.attempt))
        carried_out = 0;
    if (s->seen.plan->count == 0)
        s->truth->refused = NULL; /* nothing is to be made any more */
    s->again = was_refused && !s->truth->refused;
    str_printf(&s->history, "- carried out: %zu\n", carried_out);
    if (sets_status && carried_out > 0) {
        simulation_judge(s, &s->seen.status, s->seen.plan->actions[0].status);
        simulation_judge_clocks(s, &s->seen.status, s->seen.plan->actions[0].status);
        s->stale_status = true;
    }
    s->truth->plan = s->seen.plan;
    for (size_t i = 0; i < carried_out; i++) {
        const struct action *action = &s->truth->plan->actions[i];
        if (!meets_foreign(s, action))
            carry_out(s, action);
        else if (action->attempt > 0)
            break;
    }
}
