#include "tests/operator/histories/world.h"
#include "tests/operator/histories/allowance.h"

#include "base/mem.h"
#include "operator/job/condition.h"
#include "operator/reconcile/restart.h"
#include "tests/operator/cache/objects.h"
#include "tests/support.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY_MAX_BYTES (1 << 20)

struct world *world;

static struct cluster *truth(void)
{
    return world->s.truth;
}

/* ---- life cycle ---- */

/* Of all pods that the job may ever have. */
static void name_pods(void)
{
    const struct world_setting *setting = world->setting;
    for (int i = 0; i < setting->masters + setting->workers + setting->bounds.edits; i++) {
        bool is_master = i < setting->masters;
        auto_free char *name = xasprintf("j-%s-%d", is_master ? "master" : "worker",
                                         is_master ? i : i - setting->masters);
        assert_true(world->name_count < WORLD_MAX_OBJECTS);
        world->ranks[world->name_count++] = world_rank(CACHE_PODS, name);
    }
}

void world_open(const struct world_setting *setting)
{
    world = xcalloc(1, sizeof *world);
    world->setting = setting;
    world->left = setting->bounds;
    name_pods();
    str_init(&world->s.history, HISTORY_MAX_BYTES);
    world->s.truth = cluster_open(setting->masters, setting->workers, setting->restart_policy,
                                  setting->run_policy, "");
    truth()->job->run_policy.suspend = setting->suspended;
    world->s.seen = *truth();
    server_publish_job();
    operator_start();
}

void world_close(void)
{
    operator_stop();
    for (size_t i = 0; i < world->event_count; i++)
        free(world->events[i].text);
    cluster_close(world->s.truth);
    arena_close(world->seen_arena);
    arena_close(world->status_arena);
    str_free(&world->s.history);
    free(world);
    world = NULL;
}

/* ---- it happens ---- */

static void end_pod(struct pod *pod, int exit_code)
{
    pod->exited = true;
    pod->exit_code = exit_code;
    pod->exited_ms = truth()->now_ms;
    pod->phase = exit_code ? POD_FAILED : POD_SUCCEEDED;
    if (exit_code)
        pod->end = (struct pod_end){.container = "pytorch", .code = exit_code};
}

/* Its container, which is started again where the job says so. */
static void fail_pod(struct pod *pod, int exit_code)
{
    world->failed_pods++;
    if (restart_in_place(truth()->job, pod->type)) {
        pod->restart_count++;
        pod->end = (struct pod_end){.container = "pytorch", .code = exit_code};
    } else {
        end_pod(pod, exit_code);
    }
}

/* Somebody deletes it, some time after what was before. */
static void delete_pod(struct pod *pod)
{
    truth()->now_ms += 1000;
    cluster_carry_out(
        truth(), &(struct action){.kind = ACTION_DELETE_POD, .name = pod->name, .uid = pod->uid});
}

static void move_pod(struct choice choice)
{
    struct pod *pod = &truth()->pods[choice.index];
    if (choice.kind == CHOICE_RUN)
        pod->phase = POD_RUNNING;
    else if (choice.kind == CHOICE_SUCCEED)
        end_pod(pod, 0);
    else if (choice.kind == CHOICE_FAIL)
        fail_pod(pod, world->setting->exit_codes[choice.way]);
    else if (choice.kind == CHOICE_DELETE)
        delete_pod(pod);
    else if (choice.kind == CHOICE_EVICT)
        pod->phase = POD_FAILED, pod->disrupted = true;
    server_publish_pod(pod, choice.kind == CHOICE_GO);
    if (choice.kind == CHOICE_GO)
        cluster_remove_pod(truth(), pod);
}

static void edit(enum world_edit edit_)
{
    struct job *job = truth()->job;
    struct replica_spec *worker = &job->replicas[REPLICA_WORKER];
    if (edit_ == EDIT_SUSPEND || edit_ == EDIT_RESUME)
        job->run_policy.suspend = edit_ == EDIT_SUSPEND;
    else if (edit_ == EDIT_GROW || edit_ == EDIT_SHRINK)
        worker->replicas.value += edit_ == EDIT_GROW ? 1 : -1;
    else if (edit_ == EDIT_LIMIT)
        job->run_policy.backoff_limit.value++;
    else
        job->invalid = "spec.nprocPerNode: wrong";
    server_publish_job();
}

static void take_from(struct world_bounds *left, enum choice_kind kind)
{
    left->failures -= kind == CHOICE_FAIL;
    left->deletions -= kind == CHOICE_DELETE || kind == CHOICE_EVICT;
    left->edits -= kind == CHOICE_EDIT;
    left->crashes -= kind == CHOICE_CRASH;
    left->troubles -= kind == CHOICE_LOSE_ANSWER || kind == CHOICE_LOSE_FOR_GOOD ||
                      kind == CHOICE_BREAK || kind == CHOICE_REFUSE;
    left->delays -= kind == CHOICE_DELAY;
}

static void wait_for_pass(void)
{
    int64_t due_ms = queue_due(world->queue, QUEUE_URGENT);
    simulation_check(&world->s, due_ms < truth()->now_ms + (int64_t)24 * 3600 * 1000,
                     "the next pass is a day away");
    truth()->now_ms = due_ms > truth()->now_ms ? due_ms : truth()->now_ms;
}

static void tell(struct choice choice)
{
    static const char *const whats[] = {
        [CHOICE_ANSWER] = "answer",
        [CHOICE_LOSE_ANSWER] = "answer, which is lost",
        [CHOICE_LOSE_FOR_GOOD] = "answer, which is lost for good",
        [CHOICE_BREAK] = "a request does not arrive",
        [CHOICE_REFUSE] = "a request is refused",
        [CHOICE_SHOW] = "the watch shows",
        [CHOICE_PASS] = "pass",
        [CHOICE_WAIT] = "wait",
        [CHOICE_DELAY] = "all is late",
        [CHOICE_CRASH] = "the operator dies",
        [CHOICE_RUN] = "runs:",
        [CHOICE_SUCCEED] = "succeeds:",
        [CHOICE_FAIL] = "fails:",
        [CHOICE_GO] = "is gone:",
        [CHOICE_DELETE] = "is deleted:",
        [CHOICE_EVICT] = "is evicted:",
        [CHOICE_EDIT] = "edit",
    };
    static const char *const kinds[] = {" jobs", " pods", " services"};
    struct str *history = &world->s.history;
    str_printf(history, "%s", whats[choice.kind]);
    if (choice.kind == CHOICE_SHOW)
        str_add(history, kinds[world->events[choice.index].kind]);
    else if (choice.kind == CHOICE_EDIT)
        str_printf(history, " %d", world->setting->edits[choice.index]);
    else if (choice.kind >= CHOICE_RUN)
        str_printf(history, " %s", truth()->pods[choice.index].name);
    if (choice.kind == CHOICE_FAIL)
        str_printf(history, " with %d", world->setting->exit_codes[choice.way]);
    str_add(history, "\n");
}

/* Whose turn it is (world_choices). */
static void note_object(struct choice choice)
{
    bool is_pod = choice.kind >= CHOICE_RUN && choice.kind < CHOICE_EDIT;
    world->moved = 0;
    world->answered = choice.kind <= CHOICE_REFUSE;
    if (choice.kind == CHOICE_SHOW)
        world->shown_up_to = world_rank_of_event((size_t)choice.index);
    else if (!is_pod && choice.kind != CHOICE_EDIT && choice.kind != CHOICE_PASS)
        world->shown_up_to = 0;
    else if (choice.kind != CHOICE_PASS && !world->sent_count)
        world->moved = is_pod ? world_rank(CACHE_PODS, truth()->pods[choice.index].name)
                              : world_rank(CACHE_JOBS, "j");
}

void world_perform(struct choice choice)
{
    if (world->s.is_told)
        tell(choice);
    note_object(choice);
    take_from(&world->left, choice.kind);
    if (choice.kind >= CHOICE_RUN && choice.kind < CHOICE_EDIT) {
        move_pod(choice);
    } else if (choice.kind <= CHOICE_REFUSE) {
        server_carry_out(choice.kind);
    } else if (choice.kind == CHOICE_SHOW) {
        server_show((size_t)choice.index);
    } else if (choice.kind == CHOICE_PASS) {
        operator_pass();
    } else if (choice.kind == CHOICE_WAIT || choice.kind == CHOICE_DELAY) {
        wait_for_pass();
    } else if (choice.kind == CHOICE_CRASH) {
        operator_stop();
        operator_start();
    } else {
        edit(world->setting->edits[choice.index]);
    }
    server_take_events();
    simulation_check_world(&world->s);
}

/* ---- what may still happen ---- */

/* Of all objects that watches show when they like, those that come before this rank. */
static int count_before(uint64_t rank)
{
    int count = world_rank(CACHE_JOBS, "j") < rank;
    for (int i = 0; i < world->name_count; i++)
        count += world->ranks[i] < rank;
    return count;
}

void world_most_allowed(int ret_most[])
{
    world->shown_up_to = 0;
    world_allowance(ret_most);
}

void world_allowance(int ret_left[])
{
    const struct world_bounds *left = &world->left;
    ret_left[ALLOWED_CRASHES] = left->crashes;
    ret_left[ALLOWED_SHOWS] = world->name_count - count_before(world->shown_up_to);
    ret_left[ALLOWED_DELETIONS] = left->deletions;
    ret_left[ALLOWED_EDITS] = left->edits;
    ret_left[ALLOWED_FAILURES] = left->failures;
    ret_left[ALLOWED_TROUBLES] = left->troubles;
    ret_left[ALLOWED_DELAYS] = left->delays;
}

/* ---- what it is ---- */

uint64_t hash_add(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) + 0x9e3779b97f4a7c15;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
    return hash ^ (hash >> 31);
}

/* The worlds' clocks begin in 1970, and no day passes. */
#define A_TIME "1970-01-01T00:00:00Z"

uint64_t hash_text(uint64_t hash, const char *text)
{
    uint64_t sum = 14695981039346656037U;
    while (text && *text) {
        if (*text == '1' && str_starts_with(text, "1970-01-01T"))
            text += strlen(A_TIME);
        else
            sum = (sum ^ (unsigned char)*text++) * 1099511628211U;
    }
    return hash_add(hash, text ? sum : 1);
}

uint64_t world_hash_shown(void)
{
    uint64_t hash = 0;
    for (int kind = 0; kind < WORLD_KINDS; kind++)
        for (size_t i = 0; i < world->shown_count[kind]; i++)
            if (world->shown[kind][i].content) /* in whatever order they came */
                hash += hash_add(world->shown[kind][i].name + (uint64_t)kind,
                                 world->shown[kind][i].content);
    return hash;
}

/* Of each object in order. */
static uint64_t hash_waiting(void)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < world->event_count; i++) {
        const struct world_event *event = &world->events[i];
        uint64_t before = 0;
        for (size_t k = 0; k < i; k++)
            before += world->events[k].kind == event->kind && world->events[k].name == event->name;
        hash += hash_add(hash_add(event->name + event->kind, event->content), before);
    }
    hash = hash_add(hash_add(hash, server_hash_sent()), world->moved);
    return world->is_whole ? hash_add(hash, world->shown_up_to) : hash;
}

/* What is there follows from what was shown and what waits to be shown. */
static uint64_t hash_bounds(void)
{
    int left[ALLOWED_KINDS];
    uint64_t hash = 0;
    world_allowance(left);
    for (int kind = 0; kind < ALLOWED_KINDS; kind++)
        hash = hash_add(hash, world->compares[kind] ? 0 : (uint64_t)left[kind]);
    for (int type = 0; type < REPLICA_TYPES; type++)
        for (int i = 0; i < SIMULATION_MAX_REPLICAS; i++)
            hash = hash_add(hash, (uint64_t)world->made[type][i]);
    return hash_add(hash, (uint64_t)world->failed_pods);
}

static uint64_t hash_oracle(void)
{
    const struct oracle *oracle = &world->s.oracle;
    uint64_t hash = hash_add((uint64_t)oracle->failures, oracle->incident_ms != 0), pods = 0;
    for (size_t i = 0; i < oracle->count; i++)
        pods += hash_add(hash_text(oracle->left[i], oracle->uids[i]), (uint64_t)oracle->counted[i]);
    for (size_t i = 0; i < oracle->incident_count; i++) {
        const struct oracle_incident *incident = &oracle->incidents[i];
        hash = hash_add(hash, incident->without_cause);
        for (int k = 0; k < SIMULATION_MAX_REPLICAS; k++)
            hash = hash_add(hash, (uint64_t)incident->of[0][k] * 2 + incident->of[1][k]);
    }
    for (int k = 0; k < SIMULATION_MAX_REPLICAS; k++)
        hash = hash_add(hash, (uint64_t)oracle->completed[0][k] * 2 + oracle->completed[1][k]);
    return hash_add(hash, pods + world->s.was_finished);
}

uint64_t world_hash(void)
{
    uint64_t hash = hash_add(hash_waiting(), world_hash_shown());
    hash = hash_add(hash_add(hash, hash_bounds()), hash_oracle());
    return hash_add(hash, operator_hash());
}

uint64_t world_hash_rest(void)
{
    return hash_add(world_hash_shown(), hash_oracle());
}
