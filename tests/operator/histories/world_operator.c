/* The operator of the small world: what ships, with the queue's use as the controller has it. */
#include "base/mem.h"
#include "operator/job/condition.h"
#include "operator/job/history.h"
#include "operator/job/job_status.h"
#include "operator/pass.h"
#include "tests/operator/histories/world.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

enum { BACKOFF_FIRST_MS = 200, BACKOFF_MAX_MS = 60 * 1000, PARALLEL_MAX = 32 };

static int64_t now_ms(void)
{
    return world->s.truth->now_ms;
}

static const struct clocks clocks = {now_ms, now_ms};

static void add(int64_t at_ms)
{
    queue_add(world->queue, WORLD_KEY, QUEUE_URGENT, at_ms);
}

/* ---- what it is told ---- */

static void on_changed(void *context, const char *key, bool finished)
{
    (void)context, (void)finished;
    if (strcmp(key, WORLD_KEY) == 0)
        add(now_ms());
    world->changed_meanwhile = world->active != NULL;
}

static void on_warn(void *context, const char *message)
{
    (void)context;
    simulation_fail(&world->s, "the cache warns: %s", message);
}

static void on_over(void *context, const char *key, const struct executor_outcome *outcome)
{
    (void)context;
    if (outcome->requeue_ms)
        add(outcome->requeue_ms);
    if (outcome->expects_changes)
        add(now_ms() + EXPECT_MAX_MS);
    if (outcome->failure) {
        world->failures_in_row++;
        queue_failed(world->queue, key, now_ms());
    } else {
        world->failures_in_row = 0;
        queue_succeeded(world->queue, key);
    }
    world->expects = outcome->expects_changes;
    if (outcome->written)
        world->unwritten = world->unconfirmed = 0;
    else if (outcome->failure)
        world->unconfirmed = hash_add(hash_add(world->unconfirmed, world->answers), world->seen);
    cache_release_job(world->active);
    world->active = NULL;
    world->changed_meanwhile = false;
}

/* ---- what it expects (expectations.h) ---- */

static void expect_nothing(void)
{
    world->awaited_count = world->awaited_first = 0;
    world->looked = 0;
    world->conflicted = false;
}

void operator_expects(const char *name, const char *uid, bool gone)
{
    assert_true(world->awaited_count < WORLD_MAX_WAITING);
    world->awaited[world->awaited_count++] = (struct world_awaited){
        .name = hash_text(0, name), .uid = uid ? hash_text(0, uid) : 0, .gone = gone};
}

static bool is_seen(const struct snapshot *snapshot, const struct world_awaited *awaited)
{
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct pod *pod = &snapshot->pods[i];
        if (awaited->uid ? hash_text(0, pod->uid) == awaited->uid
                         : hash_text(0, pod->name) == awaited->name)
            return !awaited->gone || pod->deleted_ms;
    }
    return awaited->gone;
}

static void note_look(const struct snapshot *snapshot)
{
    while (world->awaited_first < world->awaited_count &&
           is_seen(snapshot, &world->awaited[world->awaited_first]))
        world->awaited_first++;
    if (world->conflicted)
        world->looked = hash_add(world->looked, world_hash_shown());
}

/* ---- life and death ---- */

void operator_start(void)
{
    const struct cache_options cache = {.changed = on_changed, .warn = on_warn};
    const struct executor_options executor = {
        .transport = &world_transport,
        .parallel_max = PARALLEL_MAX,
        .clocks = &clocks,
        .over = on_over,
    };
    world->cache = cache_open(&cache);
    world->queue = queue_open(BACKOFF_FIRST_MS, BACKOFF_MAX_MS);
    world->executor = executor_open(NULL, &executor);
    world->failures_in_row = 0;
    world->answers = world->seen = world->unconfirmed = world->unwritten = 0;
    expect_nothing();
    world->expects = world->held = false;
    server_list();
}

void operator_stop(void)
{
    executor_close(world->executor);
    cache_release_job(world->active);
    queue_close(world->queue);
    cache_close(world->cache);
    world->active = NULL;
    world->changed_meanwhile = false;
    simulation_forget_held(&world->s);
    assert_int_equal(world->sent_count, 0);
}

/* ---- a pass ---- */

/* The oracle remembers UIDs of pods that are long gone. */
static const char *lasting_uid(const char *uid)
{
    const struct oracle *oracle = &world->s.oracle;
    for (size_t i = 0; i < oracle->count; i++)
        if (strcmp(oracle->uids[i], uid) == 0)
            return oracle->uids[i];
    return arena_strdup(world->s.truth->arena, uid);
}

/* What the operator saw, for the oracle: it outlives the cache's own. */
static void remember_seen(const struct snapshot *snapshot)
{
    struct cluster *seen = &world->s.seen;
    arena_close(world->seen_arena);
    struct arena *arena = world->seen_arena = arena_open();
    struct job *job = arena_new(arena, struct job);
    *job = *snapshot->job;
    seen->job = job;
    seen->status = job_status_copy(snapshot->status, arena);
    seen->now_ms = snapshot->now_ms;
    seen->options = snapshot->options;
    seen->pod_count = seen->service_count = 0;
    assert_true(snapshot->pod_count <= CLUSTER_MAX_OBJECTS);
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        struct pod *pod = &seen->pods[seen->pod_count++];
        *pod = snapshot->pods[i];
        pod->name = arena_strdup(arena, pod->name);
        pod->uid = lasting_uid(pod->uid);
        pod->end.container = arena_strdup(arena, pod->end.container);
    }
}

static void tell_plan(const struct plan *plan)
{
    if (world->s.is_told)
        plan_print(plan, &world->s.history);
}

static struct history without_completed(struct history history)
{
    memset(history.completed_count, 0, sizeof history.completed_count);
    return history;
}

static uint64_t hash_completed(const struct history *history)
{
    uint64_t hash = 1;
    for (int type = 0; type < REPLICA_TYPES; type++)
        for (int32_t i = 0; i < SIMULATION_MAX_REPLICAS; i++)
            hash = hash_add(hash, history_is_complete(history, type, i));
    return hash;
}

/* What is counted must be kept before its pod is gone; what is complete is remembered. */
static void check_held(const struct pass *pass)
{
    const struct action *write = &pass->plan->actions[0];
    const struct history before = without_completed(pass->snapshot.status->history);
    const struct history after = without_completed(write->status->history);
    simulation_check(&world->s, history_equal(&before, &after),
                     "a write waits that counts something");
    simulation_check(&world->s,
                     condition_finished(pass->snapshot.status) == condition_finished(write->status),
                     "the end of a job waits");
}

static void carry_on(const struct pass *pass, struct cached_job *job)
{
    world->held = pass->hold_ms > 0;
    if (pass->hold_ms) {
        check_held(pass);
        simulation_judge_held(&world->s, pass->snapshot.status);
        world->unwritten = hash_completed(&pass->plan->actions[0].status->history);
        add(now_ms() + pass->hold_ms);
        queue_done(world->queue, WORLD_KEY);
        cache_release_job(job);
        return;
    }
    if (pass->idle) {
        if (pass->again)
            add(now_ms());
        if (pass->requeue_ms)
            add(pass->requeue_ms);
        world->failures_in_row = 0;
        queue_succeeded(world->queue, WORLD_KEY);
        cache_release_job(job);
        return;
    }
    world->active = job;
    world->shown_up_to = 0;
    world->answers = 0;
    expect_nothing();
    world->seen = world_hash_shown();
    executor_start(world->executor, WORLD_KEY, job->job, job->object, pass->snapshot.status,
                   pass->plan);
}

void operator_pass(void)
{
    const char *key = queue_pop(world->queue, QUEUE_URGENT, now_ms());
    assert_string_equal(key, WORLD_KEY);
    struct cached_job *job = cache_acquire_job(world->cache, key);
    auto_arena struct arena *arena = arena_open();
    const struct pass_options options = {.now_ms = now_ms()};
    struct pass pass = pass_over(world->cache, world->executor, key, job, &options, arena);
    if (pass.is_of_the_past) /* the worst case: nothing is listed anew, as it was of late */
        pass = pass_over(world->cache, world->executor, key, job, &options, arena);
    if (!pass.plan) {
        note_look(&pass.snapshot);
        add(now_ms() + pass.early_ms);
        queue_done(world->queue, key);
        cache_release_job(job);
        return;
    }
    world->expects = false;
    remember_seen(&pass.snapshot);
    tell_plan(pass.plan);
    world->s.seen.plan = (struct plan *)(uintptr_t)pass.plan;
    simulation_check_plan(&world->s);
    world->s.seen.plan = NULL;
    carry_on(&pass, job);
}

bool world_failures_show(void)
{
    const struct world_bounds *all = &world->setting->bounds;
    return world->s.truth->job->run_policy.restart_scope != SCOPE_JOB &&
           world->left.deletions == all->deletions && world->left.edits == all->edits &&
           !world->setting->exit_codes[1] &&
           strcmp(world->setting->restart_policy, "OnFailure") != 0;
}

/* The oracle counts what passes saw; this counts what happened. A group that restarts counts its
 * failures as one; what is deleted, or no longer of the job, may not count; and a replica that is
 * done is not asked how often it was restarted in place before. */
static void check_failures(void)
{
    const struct job_status *status = &world->s.truth->status;
    bool counts = world_failures_show() && !condition_finished(status);
    simulation_check(&world->s, !counts || status->history.failures == world->failed_pods,
                     "%d pods failed, and %d are counted", world->failed_pods,
                     status->history.failures);
}

void world_check_rest(void)
{
    add(now_ms());
    operator_pass();
    simulation_check(&world->s, !world->active, "at rest, and a pass wants something");
    simulation_check(&world->s, queue_due(world->queue, QUEUE_URGENT) == INT64_MAX,
                     "at rest, and another pass is to come");
    check_failures();
    simulation_check_rest(&world->s);
}

/* ---- what it holds ---- */

/* Whether the next pass by time may do anything: other timers are left over. */
bool operator_waits(void)
{
    bool due = queue_due(world->queue, QUEUE_URGENT) != INT64_MAX;
    return due && (world->failures_in_row || world->expects || world->held ||
                   executor_refused(world->executor, WORLD_KEY, "job"));
}

/* What the executor keeps follows from the answers to its last plan, and of one under way from what
 * was seen. What it waits for is what waits to be shown. */
uint64_t operator_hash(void)
{
    int64_t due_ms = queue_due(world->queue, QUEUE_URGENT);
    uint64_t hash = hash_add(world->unconfirmed, due_ms <= now_ms());
    if (operator_waits() && due_ms > now_ms())
        hash = hash_add(hash, (uint64_t)(due_ms - now_ms()));
    hash = hash_add(hash, (uint64_t)world->failures_in_row);
    hash = hash_add(hash, (uint64_t)world->changed_meanwhile * 2 + (world->active != NULL));
    hash = hash_add(hash_add(hash, world->held), world->unwritten);
    hash = hash_text(hash, executor_refused(world->executor, WORLD_KEY, "job"));
    hash = hash_add(hash, executor_is_proven(world->executor, WORLD_KEY, "job"));
    if (world->active || world->expects)
        hash = hash_add(hash_add(hash, world->answers), world->looked + world->awaited_first);
    return world->active ? hash_add(hash, world->seen) : hash;
}
