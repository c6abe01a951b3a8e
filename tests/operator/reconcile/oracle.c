/* What the stored status must remember, by rules of its own: nothing here calls what it judges. */
#include "tests/operator/reconcile/simulation.h"

#include "tests/support.h"

#include <string.h>

#define check simulation_check

/* ---- one pod ---- */

/* What ends after its deletion was asked for ended by it. */
static bool ended_by_itself(const struct pod *pod)
{
    return !pod->deleted_ms || (pod->exited && pod->exited_ms < pod->deleted_ms);
}

static bool has_succeeded(const struct pod *pod)
{
    return pod->phase == POD_SUCCEEDED && ended_by_itself(pod);
}

int32_t simulation_failures_of(const struct pod *pod)
{
    bool failed = pod->phase == POD_FAILED && !pod->disrupted && ended_by_itself(pod);
    return pod->restart_count + failed;
}

/* Where the pod is in the table. */
static size_t entry(struct simulation *s, const char *uid)
{
    struct oracle *oracle = &s->oracle;
    for (size_t i = 0; i < oracle->count; i++)
        if (strcmp(oracle->uids[i], uid) == 0)
            return i;
    assert_true(oracle->count < SIMULATION_MAX_UIDS);
    oracle->uids[oracle->count] = uid;
    return oracle->count++;
}

int32_t *simulation_counted(struct simulation *s, const struct pod *pod)
{
    return &s->oracle.counted[entry(s, pod->uid)];
}

/* ---- incidents ---- */

static bool is_recent(const struct simulation *s)
{
    return s->oracle.incident_ms && s->seen.now_ms - s->oracle.incident_ms < 600000;
}

static int32_t open_to(const struct simulation *s, const struct pod *pod)
{
    int32_t open = 0;
    for (size_t i = 0; i < s->oracle.incident_count && is_recent(s); i++)
        open += !s->oracle.incidents[i].of[pod->type][pod->index];
    return open;
}

static int32_t count_without_cause(const struct simulation *s)
{
    int32_t count = 0;
    for (size_t i = 0; i < s->oracle.incident_count; i++)
        count += s->oracle.incidents[i].without_cause;
    return count;
}

/* The oldest `count`. */
static void explain(struct simulation *s, int32_t count)
{
    for (size_t i = 0; i < s->oracle.incident_count && count > 0; i++) {
        count -= s->oracle.incidents[i].without_cause;
        s->oracle.incidents[i].without_cause = false;
    }
}

static void open_incident(struct simulation *s, bool without_cause)
{
    struct oracle *oracle = &s->oracle;
    assert_true(oracle->incident_count < SIMULATION_MAX_UIDS);
    oracle->incidents[oracle->incident_count++] =
        (struct oracle_incident){.without_cause = without_cause};
    oracle->incident_ms = s->seen.now_ms;
}

static void take_part(struct simulation *s, const struct pod *pod)
{
    for (size_t i = 0; i < s->oracle.incident_count; i++)
        s->oracle.incidents[i].of[pod->type][pod->index] = true;
}

static void forget_incidents(struct simulation *s)
{
    s->oracle.incident_ms = 0;
    explain(s, INT32_MAX);
}

static int32_t count_ends(struct simulation *s, const struct pod *pod, int32_t ends, bool lost_peer)
{
    int32_t open = open_to(s, pod), known = count_without_cause(s);
    int32_t mine = lost_peer || open < known ? open : known;
    mine = mine < ends ? mine : ends;
    if (mine < ends)
        explain(s, INT32_MAX);
    else if (!lost_peer)
        explain(s, mine);
    for (int32_t i = mine; i < ends; i++)
        open_incident(s, lost_peer);
    take_part(s, pod);
    return ends - mine;
}

/* ---- the job ---- */

static bool holds(const struct job_status *status, enum condition_type type)
{
    for (size_t i = 0; i < status->condition_count; i++)
        if (status->conditions[i].type == type)
            return status->conditions[i].status;
    return false;
}

static int32_t wanted(const struct simulation *s, int type)
{
    const struct replica_spec *replica = &s->truth->job->replicas[type];
    return replica->present ? (int32_t)replica->replicas.value : 0;
}

static bool is_grouped(const struct simulation *s)
{
    return s->truth->job->run_policy.restart_scope == SCOPE_JOB;
}

bool simulation_is_active(const struct simulation *s, const struct job_status *before)
{
    const struct job *job = s->truth->job;
    bool asleep =
        job->run_policy.suspend || (holds(before, CONDITION_SUSPENDED) && s->seen.pod_count > 0);
    return !s->was_finished && !job->invalid && !asleep;
}

bool simulation_is_spoilt(const struct simulation *s, const struct job_status *before)
{
    bool asleep = s->truth->job->run_policy.suspend || holds(before, CONDITION_SUSPENDED);
    return !s->was_finished && s->truth->job->invalid && !asleep;
}

bool simulation_has_open_place(const struct simulation *s, const struct pod *pod)
{
    return pod->index < wanted(s, pod->type) && !s->oracle.completed[pod->type][pod->index];
}

/* A pod of the attempt, in such a place. */
static bool takes_part(const struct simulation *s, const struct pod *pod,
                       const struct job_status *before)
{
    return simulation_has_open_place(s, pod) &&
           (!is_grouped(s) || pod->attempt >= before->history.attempt);
}

/* Something that ends an attempt: a pod that failed, goes, or is given up; or one that was there
 * with all others and is there no more. */
static bool is_broken(struct simulation *s, const struct job_status *before)
{
    for (int type = 0; type < REPLICA_TYPES; type++) {
        for (int32_t i = 0; i < wanted(s, type); i++) {
            bool there = s->oracle.completed[type][i];
            for (size_t k = 0; k < s->seen.pod_count; k++) {
                const struct pod *pod = &s->seen.pods[k];
                if ((int)pod->type != type || pod->index != i || !takes_part(s, pod, before))
                    continue;
                there = true;
                if (pod->phase == POD_FAILED || pod->deleted_ms || pod->restart_count ||
                    simulation_is_lost(&s->seen, pod) || simulation_leaves_node(s, pod))
                    return true;
            }
            if (!there && i < before->history.formed[type])
                return true;
        }
    }
    return false;
}

static void look_for_done(struct simulation *s, const struct job_status *before)
{
    for (size_t i = 0; i < s->seen.pod_count; i++) {
        const struct pod *pod = &s->seen.pods[i];
        if (has_succeeded(pod) && (!is_grouped(s) || pod->attempt >= before->history.attempt))
            s->oracle.completed[pod->type][pod->index] = true;
    }
}

static void forget_completed(struct simulation *s, int type, int32_t from)
{
    for (int32_t i = from; i < SIMULATION_MAX_REPLICAS; i++)
        s->oracle.completed[type][i] = false;
}

bool simulation_lost_peer(const struct pod *pod)
{
    return pod->end.container && strcmp(pod->end.container, "pytorch") == 0 &&
           (pod->end.code == 138 || pod->end.code == 143);
}

/* One that goes without having ended by itself. */
static void look_at_leaving(struct simulation *s, const struct pod *pod,
                            const struct job_status *before)
{
    bool goes = pod->deleted_ms || pod->disrupted || simulation_is_lost(&s->seen, pod) ||
                simulation_leaves_node(s, pod);
    bool *left = &s->oracle.left[entry(s, pod->uid)];
    bool ended = ended_by_itself(pod) && !pod->disrupted &&
                 (pod->phase == POD_FAILED || pod->phase == POD_SUCCEEDED);
    ended |= *simulation_counted(s, pod) > pod->restart_count;
    if (!goes || !takes_part(s, pod, before) || (ended && !simulation_blames_node(s, pod)) ||
        *left || pod->phase == POD_PENDING || has_succeeded(pod) ||
        s->oracle.completed[pod->type][pod->index])
        return;
    *left = true;
    if (!count_without_cause(s) || open_to(s, pod) == 0)
        open_incident(s, false);
    explain(s, INT32_MAX);
    take_part(s, pod);
}

/* Failures that were not counted yet. */
static int32_t look_at_ends(struct simulation *s, const struct pod *pod)
{
    int32_t *known = simulation_counted(s, pod), ends = simulation_failures_of(pod) - *known;
    bool fatal = pod->phase == POD_FAILED && !pod->disrupted && ended_by_itself(pod);
    if (ends <= 0)
        return 0;
    *known += ends;
    if ((!fatal && pod->end.code == 0) || simulation_blames_node(s, pod))
        return 0; /* a success that is repeated, or the node's end */
    return count_ends(s, pod, ends, simulation_lost_peer(pod));
}

enum round { LEAVING, CAUSES, CONSEQUENCES, ROUNDS };

static int32_t look_at(struct simulation *s, const struct pod *pod, enum round round,
                       const struct job_status *before, bool *ret_done)
{
    if (round == LEAVING)
        look_at_leaving(s, pod, before);
    else if (takes_part(s, pod, before) && has_succeeded(pod))
        *ret_done = true;
    else if (takes_part(s, pod, before) && simulation_lost_peer(pod) == (round == CONSEQUENCES))
        return look_at_ends(s, pod);
    return 0;
}

/* Failures that are new; what has succeeded is not asked again. */
static int32_t look_at_pods(struct simulation *s, const struct job_status *before)
{
    int32_t fresh = 0;
    bool completed[REPLICA_TYPES][SIMULATION_MAX_REPLICAS];
    memcpy(completed, s->oracle.completed, sizeof completed);
    for (int round = 0; round < ROUNDS; round++)
        for (int type = 0; type < REPLICA_TYPES; type++)
            for (int32_t index = 0; index < SIMULATION_MAX_REPLICAS; index++)
                for (size_t i = 0; i < s->seen.pod_count; i++)
                    if (s->seen.pods[i].type == (enum replica_type)type &&
                        s->seen.pods[i].index == index)
                        fresh +=
                            look_at(s, &s->seen.pods[i], round, before, &completed[type][index]);
    memcpy(s->oracle.completed, completed, sizeof completed);
    return fresh;
}

void simulation_judge_held(struct simulation *s, const struct job_status *before)
{
    for (size_t i = 0; i < s->seen.pod_count; i++) {
        const struct pod *pod = &s->seen.pods[i];
        if (has_succeeded(pod) && takes_part(s, pod, before))
            s->oracle.unwritten[pod->type][pod->index] = true;
    }
}

void simulation_forget_held(struct simulation *s)
{
    memset(s->oracle.unwritten, 0, sizeof s->oracle.unwritten);
}

static void recall_held(struct simulation *s)
{
    for (int type = 0; type < REPLICA_TYPES; type++)
        for (int i = 0; i < SIMULATION_MAX_REPLICAS; i++)
            s->oracle.completed[type][i] |= s->oracle.unwritten[type][i];
}

static void check_completed(struct simulation *s, const struct history *history)
{
    for (int type = 0; type < REPLICA_TYPES; type++)
        for (int32_t i = 0; i < SIMULATION_MAX_REPLICAS; i++)
            check(s,
                  s->oracle.completed[type][i] ==
                      (i < history->completed_count[type] && history->completed[type][i]),
                  "replica %d of type %d is %sremembered as complete", i, type,
                  s->oracle.completed[type][i] ? "not " : "");
}

void simulation_judge(struct simulation *s, const struct job_status *before,
                      const struct job_status *after)
{
    int32_t attempts = after->history.attempt - before->history.attempt;
    if (simulation_is_active(s, before) || simulation_is_spoilt(s, before))
        recall_held(s);
    simulation_forget_held(s);
    if (!simulation_is_active(s, before)) {
        if (simulation_is_spoilt(s, before))
            look_for_done(s, before);
        check(s, attempts == 0, "an attempt began while the job is not active");
        check_completed(s, &after->history);
        return;
    }
    for (int type = 0; type < REPLICA_TYPES; type++)
        forget_completed(s, type, wanted(s, type));
    bool resumed = holds(before, CONDITION_SUSPENDED) && !holds(after, CONDITION_SUSPENDED);
    simulation_judge_nodes(s);
    simulation_judge_preemption(s, resumed);
    bool broken = is_broken(s, before);
    int32_t fresh = look_at_pods(s, before);
    s->oracle.failures += is_grouped(s) && fresh > 1 ? 1 : fresh;
    check(s, attempts == 0 || (attempts == 1 && is_grouped(s)), "%d attempts at once", attempts);
    check(s, attempts == 0 || broken || (resumed && before->start_ms),
          "an attempt began without cause");
    for (int type = 0; type < REPLICA_TYPES && (resumed || attempts); type++)
        forget_completed(s, type, 0);
    if (resumed || attempts)
        forget_incidents(s);
    check_completed(s, &after->history);
}
