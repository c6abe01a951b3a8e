/* Goodput over simulated lives of jobs: they wait, start, train, lose ranks and nodes, are
 * suspended and resumed in any of these, and end, while operators look now and then and are
 * replaced. At each look what is accounted for adds up to the time that went by, and in the end
 * each kind is what it was. */
#include "tests/operator/cluster.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode_status.h"
#include "operator/job/condition.h"
#include "operator/job/job_status.h"
#include "operator/job/shown_time.h"
#include "operator/manifest/manifest.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#define CREATED_MS INT64_C(1767225600000)
#define POD        "j-master-0"

enum {
    LIVES = 600,
    ASK_MS = 15000,
    LONG_MS = 5000, /* the longest that a process does before it counts it */
    SLACK_MS = 2000 /* whole seconds, and clocks of two machines */
};

struct life {
    uint64_t seed;
    struct cluster *cluster;
    int64_t now_ms, ask_ms; /* the next ask */
    int64_t true_ms[GOODPUT_KINDS];
    struct training tells;      /* the process; process_ms 0: none runs */
    bool listens, has_listened; /* ... and answers; in this container */
    int unanswered;
    int64_t step, kept_step, furthest_step;
    int64_t skew_ms;    /* of its node's clock */
    int64_t covered_ms; /* until then somebody has told, or no process could run */
    int64_t lost_ms;    /* that no one is told of: it may be counted as what followed */
    int starts;         /* of pods and processes, each with times in whole seconds */
    struct shown_time counters;
};

static int64_t any(struct life *l, int64_t least, int64_t most)
{
    l->seed = l->seed * 6364136223846793005u + 1442695040888963407u;
    return least + (int64_t)((l->seed >> 33) % (uint64_t)(most - least + 1));
}

static int64_t whole_s(int64_t ms)
{
    return ms / 1000 * 1000;
}

/* ---- the operator ---- */

/* Another one goes on from the status alone. */
static void change_operators(struct life *l)
{
    struct cluster *c = l->cluster;
    struct json *json = manifest_status(c->job, &c->status);
    const struct job_status after = decode_status(json, c->arena);
    assert_true(job_status_equal(&c->status, &after));
    c->status = job_status_copy(&after, c->arena);
    json_free(json);
    c->quiet = false;
    c->told.known = false;
    l->unanswered = 0;
    l->counters = shown_time_open(&c->status.goodput, CREATED_MS, whole_s(l->now_ms));
}

/* Sums at this moment. While a process runs, what it did since it told last is not known yet. */
static void check_sum(struct life *l)
{
    const struct goodput *g = &l->cluster->status.goodput;
    int64_t now_ms = whole_s(l->now_ms), wall_ms = now_ms - CREATED_MS;
    const struct goodput shown = goodput_shown(g, CREATED_MS, now_ms);
    int64_t least_ms = g->now == GOODPUT_INSIDE && !condition_finished(&l->cluster->status)
                           ? l->covered_ms - CREATED_MS - LONG_MS
                           : wall_ms;
    int64_t sum_ms = goodput_sum_ms(&shown), off_ms = wall_ms / 100 + SLACK_MS;
    if (sum_ms < least_ms - off_ms || sum_ms > wall_ms + off_ms)
        fail_msg("%lld of %lld ms, at least %lld: now %s", (long long)sum_ms, (long long)wall_ms,
                 (long long)least_ms, goodput_kind_name(g->now));
    int64_t added_ms[GOODPUT_KINDS] = {0}, counted_ms = 0;
    shown_time_follow(&l->counters, g, added_ms);
    shown_time_go_on(&l->counters, now_ms, added_ms);
    for (int k = 0; k < GOODPUT_KINDS; k++) {
        assert_true(added_ms[k] >= 0);
        counted_ms += l->counters.ms[k];
    }
    if (counted_ms < least_ms - off_ms || counted_ms > wall_ms + off_ms)
        fail_msg("counters: %lld of %lld ms", (long long)counted_ms, (long long)wall_ms);
}

/* What lies outside processes is shown as what it is, while it goes on. Where ranks start again in
 * their container that is known when nobody has answered for a while, and over when one does. */
static void check_kinds(struct life *l)
{
    static const int outside[] = {GOODPUT_PENDING, GOODPUT_CONTAINER_START, GOODPUT_SUSPENDED,
                                  GOODPUT_RECOVERY};
    const struct goodput *g = &l->cluster->status.goodput;
    const struct goodput shown = goodput_shown(g, CREATED_MS, whole_s(l->now_ms));
    int64_t off_ms = l->lost_ms + SLACK_MS * (l->starts + 3);
    int64_t unseen_ms = g->now == GOODPUT_INSIDE ? l->now_ms - l->covered_ms : 0;
    int64_t begins_ms = g->now == GOODPUT_RECOVERY ? 4 * ASK_MS : 0;
    for (size_t i = 0; i < array_length(outside); i++) {
        int64_t more_ms = shown.ms[outside[i]] - l->true_ms[outside[i]];
        if (more_ms < -off_ms - unseen_ms || more_ms > off_ms + begins_ms)
            fail_msg("%s: %lld ms more than in truth, now %s", goodput_kind_name(outside[i]),
                     (long long)more_ms, goodput_kind_name(g->now));
    }
}

static void look(struct life *l)
{
    struct cluster *c = l->cluster;
    c->now_ms = whole_s(l->now_ms);
    cluster_plan(c);
    cluster_apply(c, c->plan->count);
    check_sum(l);
    check_kinds(l);
}

/* As asker.h: two asks without an answer are silence. */
static void ask(struct life *l)
{
    struct cluster *c = l->cluster;
    if (l->tells.process_ms && l->listens) {
        c->told = l->tells;
        l->covered_ms = l->now_ms;
        l->has_listened = true;
        l->unanswered = 0;
    } else if (l->has_listened) {
        l->unanswered++;
    }
    c->quiet = l->unanswered >= 2;
}

static void advance(struct life *l, int kind, int64_t until_ms)
{
    l->true_ms[kind] += until_ms - l->now_ms;
    l->now_ms = until_ms;
}

static void pass(struct life *l, int kind, int64_t ms)
{
    int64_t end_ms = l->now_ms + ms;
    while (l->ask_ms < end_ms) {
        advance(l, kind, l->ask_ms);
        if (any(l, 0, 30) == 0)
            change_operators(l);
        ask(l);
        look(l);
        l->ask_ms += ASK_MS;
    }
    advance(l, kind, end_ms);
}

/* ---- its pods ---- */

/* Until rank 0's pod is there, it may take some passes. */
static struct pod *pod_of(struct life *l)
{
    for (int i = 0; i < 10 && !cluster_pod(l->cluster, POD); i++)
        look(l);
    assert_non_null(cluster_pod(l->cluster, POD));
    return cluster_pod(l->cluster, POD);
}

static void schedule(struct life *l)
{
    pod_of(l)->scheduled_ms = whole_s(l->now_ms);
    look(l);
}

/* The container runs; nobody has told anything in it. */
static void start_container(struct life *l)
{
    struct pod *pod = pod_of(l);
    pod->phase = POD_RUNNING;
    pod->started_ms = whole_s(l->now_ms);
    pod->exited = false;
    l->covered_ms = l->now_ms;
    l->has_listened = false;
    l->unanswered = 0;
    l->cluster->quiet = false;
    l->cluster->told.known = false;
    l->starts++;
    look(l);
}

static void start_pod(struct life *l, bool first, int64_t most_ms)
{
    pass(l, first ? GOODPUT_PENDING : GOODPUT_RECOVERY, any(l, 1000, most_ms));
    schedule(l);
    pass(l, first ? GOODPUT_CONTAINER_START : GOODPUT_RECOVERY, any(l, 1000, 90000));
    start_container(l);
}

/* The pod is gone, and who was asked there is no more. */
static void lose_pod(struct life *l)
{
    cluster_remove_pod(l->cluster, pod_of(l));
    l->cluster->told.known = false;
    l->cluster->quiet = false;
    l->has_listened = false;
    l->unanswered = 0;
    look(l);
}

/* ---- its processes ---- */

/* The process counts what it has ended. */
static void spend(struct life *l, int kind, int64_t ms)
{
    pass(l, kind, ms);
    l->tells.spent_ms[kind == TRAINING_SPENT_LOST_WORK ? TRAINING_SPENT_STEP : kind] += ms;
}

static void start_process(struct life *l)
{
    l->starts++;
    l->listens = false;
    l->tells = training_open();
    l->tells.process_ms = whole_s(l->now_ms + l->skew_ms);
    l->tells.resumed_step = l->step = l->kept_step;
    l->tells.step = -1;
    spend(l, TRAINING_SPENT_INITIALIZATION, any(l, 500, 20000));
    spend(l, TRAINING_SPENT_PEER_WAIT, any(l, 0, 4000));
    if (l->kept_step)
        spend(l, TRAINING_SPENT_RESTORE, any(l, 500, LONG_MS));
    l->listens = true;
}

static void train(struct life *l, int64_t steps)
{
    for (int64_t i = 0; i < steps; i++) {
        bool again = l->step < l->furthest_step;
        spend(l, TRAINING_SPENT_DATA, any(l, 0, 20));
        spend(l, again ? TRAINING_SPENT_LOST_WORK : TRAINING_SPENT_STEP, any(l, 400, 600));
        l->tells.step = ++l->step;
        if (l->step > l->furthest_step)
            l->furthest_step = l->step;
        if (l->step % 100 == 0) {
            spend(l, TRAINING_SPENT_SAVE, any(l, 100, 2000));
            l->kept_step = l->step;
        }
        if (l->step % 150 == 0)
            spend(l, TRAINING_SPENT_EVALUATION, any(l, 100, 4000));
    }
}

/* It has told all that it did, as what its container leaves behind does; or not, and what it did
 * since it told last is not known. */
static void end_process(struct life *l, bool leaves)
{
    if (leaves) {
        l->cluster->told = l->tells;
        l->covered_ms = l->now_ms;
    } else {
        l->lost_ms += ASK_MS + LONG_MS;
    }
    l->tells.process_ms = 0;
}

static void end_container(struct life *l)
{
    struct pod *pod = pod_of(l);
    pod->started_ms = 0;
    pod->exited = true;
    pod->exited_ms = whole_s(l->now_ms);
    look(l);
}

/* ---- what happens ---- */

static void set_suspended(struct life *l, bool suspended)
{
    l->cluster->job->run_policy.suspend = suspended;
    look(l);
    if (suspended && cluster_pod(l->cluster, POD))
        lose_pod(l);
}

static void suspend_and_resume(struct life *l)
{
    set_suspended(l, true);
    pass(l, GOODPUT_SUSPENDED, any(l, 1000, 2000000));
    set_suspended(l, false);
}

static void lose_node(struct life *l)
{
    end_process(l, false);
    pod_of(l)->node_lost_ms = whole_s(l->now_ms);
    look(l);
    pass(l, GOODPUT_RECOVERY, any(l, 0, 60000));
    lose_pod(l);
}

/* A launcher starts the ranks again, at once or when others have come: as long as nobody of its
 * container answers, it is silent. */
static void ranks_start_again(struct life *l, int64_t most_ms)
{
    end_process(l, false);
    pass(l, GOODPUT_RECOVERY, any(l, 200, most_ms));
}

static void happen(struct life *l)
{
    switch (any(l, 0, 7)) {
    case 0:
        ranks_start_again(l, 3000);
        return;
    case 1:
        ranks_start_again(l, 2400000);
        return;
    case 2:
        lose_node(l);
        start_pod(l, false, 2400000);
        return;
    case 3: /* suspended while it trains */
        end_process(l, true);
        suspend_and_resume(l);
        break;
    case 4: /* ... in its recovery */
        lose_node(l);
        pass(l, GOODPUT_RECOVERY, any(l, 1000, 2400000));
        suspend_and_resume(l);
        break;
    case 5: /* ... and again before its pod has come anywhere */
        end_process(l, true);
        suspend_and_resume(l);
        pass(l, GOODPUT_PENDING, any(l, 1000, 2400000));
        suspend_and_resume(l);
        break;
    case 6: /* ... and while its images are pulled */
        end_process(l, true);
        suspend_and_resume(l);
        pass(l, GOODPUT_PENDING, any(l, 1000, 60000));
        schedule(l);
        pass(l, GOODPUT_CONTAINER_START, any(l, 1000, 600000));
        suspend_and_resume(l);
        break;
    default: /* ... and before its process has said a word */
        end_process(l, true);
        suspend_and_resume(l);
        start_pod(l, true, 60000);
        pass(l, GOODPUT_UNTOLD, any(l, 1000, 40000));
        suspend_and_resume(l);
        break;
    }
    start_pod(l, true, 60000);
}

/* The job has been active for too long. */
static void hit_deadline(struct life *l)
{
    l->cluster->job->run_policy.active_deadline_seconds = (struct optional){true, 1};
    look(l);
    assert_true(condition_is_true(&l->cluster->status, CONDITION_FAILED));
}

static void end(struct life *l)
{
    switch (any(l, 0, 4)) {
    case 0:
        lose_node(l);
        pass(l, GOODPUT_RECOVERY, any(l, 2000, 2400000));
        hit_deadline(l);
        return;
    case 1:
        end_process(l, true);
        suspend_and_resume(l);
        pass(l, GOODPUT_PENDING, any(l, 2000, 2400000));
        hit_deadline(l);
        return;
    case 2:
        ranks_start_again(l, 2400000);
        pass(l, GOODPUT_RECOVERY, 2 * ASK_MS); /* it is known to be silent */
        hit_deadline(l);
        return;
    case 3: /* the last failure that it may have */
        l->cluster->job->run_policy.backoff_limit = (struct optional){true, 0};
        end_process(l, true);
        pod_of(l)->phase = POD_FAILED;
        pod_of(l)->exit_code = 1;
        break;
    default:
        spend(l, TRAINING_SPENT_OTHER, any(l, 0, 3000));
        end_process(l, true);
        pod_of(l)->phase = POD_SUCCEEDED;
        break;
    }
    pass(l, TRAINING_SPENT_OTHER, any(l, 0, 2000));
    end_container(l);
    assert_true(condition_finished(&l->cluster->status));
}

static void live(struct life *l, uint64_t seed)
{
    *l = (struct life){.seed = seed, .now_ms = CREATED_MS, .covered_ms = CREATED_MS};
    l->cluster = cluster_open(1, 0, "OnFailure", "", "");
    l->cluster->job->created_ms = CREATED_MS;
    l->counters = shown_time_open(&l->cluster->status.goodput, CREATED_MS, CREATED_MS);
    l->ask_ms = CREATED_MS + any(l, 0, ASK_MS - 1);
    l->skew_ms = any(l, -300, 300);
    if (any(l, 0, 2) == 0)
        suspend_and_resume(l);
    start_pod(l, true, 60000);
    start_process(l);
    for (int64_t n = any(l, 0, 6); n > 0; n--) {
        train(l, any(l, 50, 500));
        happen(l);
        start_process(l);
    }
    train(l, any(l, 50, 500));
    end(l);
}

static void each_moment_adds_up_and_each_kind_is_what_it_was(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= LIVES; seed++) {
        struct life l;
        live(&l, seed);
        int64_t off_ms = l.lost_ms + SLACK_MS * (l.starts + 2);
        for (int k = 0; k < GOODPUT_KINDS; k++) {
            int64_t told_ms = l.cluster->status.goodput.ms[k];
            if (llabs(told_ms - l.true_ms[k]) > off_ms)
                fail_msg("seed %d: %s %lld, in truth %lld ms", (int)seed, goodput_kind_name(k),
                         (long long)told_ms, (long long)l.true_ms[k]);
        }
        cluster_close(l.cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_moment_adds_up_and_each_kind_is_what_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
