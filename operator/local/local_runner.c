#include "operator/local/local_runner.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/contract.h"
#include "base/mem.h"

/* Twice what a pipe holds: all that an ended process wrote, and no more from one that writes on. */
enum { READ_CHUNKS_MAX = 32 };

void local_runner_open(struct local_runner *runner, const struct pod_spec *spec, bool is_leader,
                       const struct local_options *options)
{
    *runner = (struct local_runner){
        .shown = {.name = xstrdup(spec->name), .exit_code = -1},
        .type = spec->type,
        .index = spec->index,
        .is_leader = is_leader,
        .ended = LOCAL_STOPPED,
        .options = options,
        .backoff = {.first_ms = options->restart_first_ms, .max_ms = options->restart_max_ms},
        .starts =
            xcalloc(spec->init_container_count + spec->container_count, sizeof *runner->starts),
    };
}

void local_runner_close(struct local_runner *runner)
{
    assert(local_runner_is_idle(runner));
    if (runner->log_is_open)
        local_log_close(&runner->log);
    arena_close(runner->arena);
    free((char *)runner->shown.name);
    free((char *)runner->shown.log_path);
    free(runner->starts);
}

/* Container i of the pod: the init containers come first. */
static const struct container *spec_container(const struct pod_spec *spec, size_t i)
{
    return i < spec->init_container_count ? &spec->init_containers[i]
                                          : &spec->containers[i - spec->init_container_count];
}

static int prepare(struct local_runner *runner, const struct pod_spec *spec,
                   const struct local_site *site, size_t i, struct error *err)
{
    const struct container *container = spec_container(spec, i);
    struct local_launch *launch = &runner->launches[i];
    launch->container = arena_strdup(runner->arena, container->name);
    snprintf(launch->restart_count, sizeof launch->restart_count, ENV_RESTART_COUNT "=%" PRId32,
             runner->starts[i]);
    /* an init container may yet make what the containers after it run */
    bool must_be_there = i == 0 || spec->init_container_count == 0;
    if (local_container_build(spec, container, site, launch->restart_count, runner->arena,
                              &launch->process, err) < 0 ||
        (must_be_there && local_process_check(&launch->process, err) < 0))
        return error_wrap(err, "pod %s, container %s", spec->name, container->name);
    return 0;
}

static void release(struct local_runner *runner)
{
    arena_close(take(runner->arena));
    runner->deleted_ms = 0;
    runner->killed = false;
    runner->pod = (struct local_pod){0};
}

int local_runner_admit(struct local_runner *runner, const struct pod_spec *spec,
                       const struct local_site *site, const char *uid, struct error *err)
{
    assert(!runner->arena);
    size_t count = spec->init_container_count + spec->container_count;
    runner->arena = arena_open();
    runner->uid = arena_strdup(runner->arena, uid);
    runner->owner_uid = arena_strdup(runner->arena, spec->owner_uid);
    runner->attempt = spec->attempt;
    runner->grace_ms = spec->grace_period_s * 1000;
    runner->launches = arena_array(runner->arena, struct local_launch, count);
    runner->pod = (struct local_pod){
        .restart = spec->restart,
        .containers = arena_array(runner->arena, struct local_container, count),
        .init_count = spec->init_container_count,
        .count = count,
    };
    for (size_t i = 0; i < count; i++) {
        runner->pod.containers[i].due_ms = runner->not_before_ms;
        if (i >= spec->init_container_count &&
            !strcmp(spec_container(spec, i)->name, API_CONTAINER_NAME))
            runner->main = i;
        if (prepare(runner, spec, site, i, err) < 0) {
            release(runner);
            return -1;
        }
    }
    runner->shown.state = runner->starts[runner->main] > 0 ? LOCAL_RESTARTING : LOCAL_PENDING;
    return 0;
}

/* What a replica with a pod that is not being deleted looks like to people. */
static enum local_state state_of(const struct local_runner *runner)
{
    const struct local_pod *pod = &runner->pod;
    switch (local_pod_phase(pod)) {
    case POD_SUCCEEDED:
        return LOCAL_SUCCEEDED;
    case POD_FAILED:
        return LOCAL_FAILED;
    case POD_RUNNING:
        return pod->containers[runner->main].state == CONTAINER_WAITING ? LOCAL_RESTARTING
                                                                        : LOCAL_RUNNING;
    default:
        for (size_t i = 0; i < pod->init_count; i++)
            if (pod->containers[i].state == CONTAINER_RUNNING)
                return LOCAL_INIT;
        return runner->starts[0] > 0 ? LOCAL_RESTARTING : LOCAL_PENDING;
    }
}

/* A line in the log that tells one run of a container from the next. */
static void mark_restart(struct local_runner *runner, size_t i, int64_t now_ms)
{
    char time[32];
    clock_format_rfc3339(now_ms, time, sizeof time);
    local_log_mark(&runner->log, "%s %s: restart %" PRId32 " of container %s", time,
                   runner->shown.name, runner->starts[i], runner->launches[i].container);
}

static int start_one(struct local_runner *runner, size_t i, int64_t now_ms, struct error *err)
{
    struct local_launch *launch = &runner->launches[i];
    if (runner->starts[i] > 0)
        mark_restart(runner, i, now_ms);
    snprintf(launch->restart_count, sizeof launch->restart_count, ENV_RESTART_COUNT "=%" PRId32,
             runner->starts[i]);
    launch->process.output = runner->log.write_end;
    if (local_process_start(&launch->process, &launch->guard, err) < 0)
        return error_wrap(err, "pod %s, container %s", runner->shown.name, launch->container);
    /* container 0 is the first to start in each pod */
    if (i == 0 ? runner->starts[0] > 0 : runner->pod.containers[i].started_ms > 0)
        runner->shown.restarts++;
    local_pod_started(&runner->pod, i, now_ms);
    runner->starts[i]++;
    return 0;
}

int local_runner_start(struct local_runner *runner, const char *log_path, int64_t now_ms,
                       struct error *err)
{
    size_t i;
    int started = 0;
    while (runner->arena && !runner->deleted_ms && local_pod_next(&runner->pod, now_ms, &i)) {
        if (!runner->log_is_open) {
            runner->log_is_open = true;
            runner->shown.log_path = xstrdup(log_path);
            if (local_log_open(&runner->log, log_path, err) < 0)
                return -1;
        }
        if (start_one(runner, i, now_ms, err) < 0)
            return -1;
        runner->shown.state = state_of(runner);
        started++;
    }
    return started;
}

/* The container whose guard this is; pod.count if there is none. */
static size_t find_launch(const struct local_runner *runner, pid_t guard)
{
    size_t i = 0;
    while (i < runner->pod.count && runner->launches[i].guard != guard)
        i++;
    return i;
}

bool local_runner_has_guard(const struct local_runner *runner, pid_t guard)
{
    return find_launch(runner, guard) < runner->pod.count;
}

/* What people are to know of an end that nobody asked for. */
static void note_end(struct local_runner *runner, size_t i, int code, int64_t now_ms)
{
    bool waits = runner->pod.containers[i].state == CONTAINER_WAITING;
    if (code != 0) {
        runner->shown.failures++;
        runner->shown.failure_code = code;
        runner->shown.failed_ms = now_ms;
        runner->shown.runs_on = !waits && local_pod_phase(&runner->pod) == POD_RUNNING;
    } else if (waits) {
        runner->shown.repeats++;
    }
    if (i == runner->main || code != 0)
        runner->ended = code ? LOCAL_FAILED : LOCAL_SUCCEEDED;
    runner->shown.state = state_of(runner);
}

bool local_runner_reap(struct local_runner *runner, pid_t guard, int wait_status, int64_t now_ms)
{
    size_t i = find_launch(runner, guard);
    if (i == runner->pod.count)
        return false;
    runner->launches[i].guard = 0;
    /* Now, before anything is reported of the end: its last lines come before the news of it. */
    local_runner_read_output(runner);
    int code = local_process_exit_code(wait_status);
    if (i == runner->main || (i < runner->pod.init_count && code != 0))
        runner->shown.exit_code = code;
    if (runner->deleted_ms) {
        local_pod_ended(&runner->pod, i, code, now_ms, NULL);
        return true;
    }
    runner->not_before_ms = local_pod_ended(&runner->pod, i, code, now_ms, &runner->backoff);
    note_end(runner, i, code, now_ms);
    return true;
}

void local_runner_delete(struct local_runner *runner, int64_t now_ms)
{
    if (!runner->arena || runner->deleted_ms)
        return;
    runner->deleted_ms = now_ms;
    for (size_t i = 0; i < runner->pod.count; i++)
        if (runner->launches[i].guard)
            local_process_terminate(runner->launches[i].guard);
    enum local_state state = runner->shown.state;
    if (state == LOCAL_RESTARTING && local_runner_is_idle(runner))
        runner->shown.state = runner->ended; /* there is nothing to stop: it stays what it was */
    else if (state == LOCAL_INIT || state == LOCAL_RUNNING || state == LOCAL_RESTARTING)
        runner->shown.state = LOCAL_STOPPING;
}

void local_runner_kill(struct local_runner *runner)
{
    runner->killed = true;
    for (size_t i = 0; i < runner->pod.count; i++)
        if (runner->launches[i].guard)
            local_process_kill(runner->launches[i].guard);
}

/* As the kubelet: SIGTERM, the grace period, SIGKILL. */
void local_runner_clean_up(struct local_runner *runner, int64_t now_ms)
{
    if (!runner->deleted_ms)
        return;
    if (local_runner_is_idle(runner)) {
        release(runner);
        if (runner->shown.state == LOCAL_STOPPING)
            runner->shown.state = runner->ended = LOCAL_STOPPED;
    } else if (!runner->killed && now_ms >= runner->deleted_ms + runner->grace_ms) {
        local_runner_kill(runner);
    }
}

bool local_runner_has_pod(const struct local_runner *runner)
{
    return runner->arena;
}

bool local_runner_is_idle(const struct local_runner *runner)
{
    for (size_t i = 0; i < runner->pod.count; i++)
        if (runner->launches[i].guard)
            return false;
    return true;
}

int64_t local_runner_due(const struct local_runner *runner)
{
    if (!runner->arena)
        return LOCAL_POD_NEVER;
    if (!runner->deleted_ms)
        return local_pod_due(&runner->pod);
    if (local_runner_is_idle(runner))
        return 0;
    return runner->killed ? LOCAL_POD_NEVER : runner->deleted_ms + runner->grace_ms;
}

/* The last end that a restart follows or that made the pod fail. */
static struct pod_end last_end(const struct local_runner *runner)
{
    const struct local_container *last = NULL;
    const char *name = NULL;
    for (size_t i = 0; i < runner->pod.count; i++) {
        const struct local_container *container = &runner->pod.containers[i];
        bool failed = container->state == CONTAINER_ENDED && container->exit_code != 0;
        if ((!container->restarts && !failed) || (last && container->ended_ms < last->ended_ms))
            continue;
        last = container;
        name = runner->launches[i].container;
    }
    return last ? (struct pod_end){.container = name, .code = last->exit_code}
                : (struct pod_end){.container = NULL};
}

void local_runner_get_pod(const struct local_runner *runner, struct pod *ret_pod)
{
    const struct local_container *main = &runner->pod.containers[runner->main];
    *ret_pod = (struct pod){
        .name = runner->shown.name,
        .uid = runner->uid,
        .owner_uid = runner->owner_uid,
        .type = runner->type,
        .index = runner->index,
        .attempt = runner->attempt,
        .phase = local_pod_phase(&runner->pod),
        .scheduled_ms = 1, /* no scheduler has kept it waiting */
        .started_ms = main->state == CONTAINER_RUNNING ? main->started_ms : 0,
        .deleted_ms = runner->deleted_ms,
        .restart_count = local_pod_restarts(&runner->pod),
        .exited = main->state == CONTAINER_ENDED,
        .exit_code = main->exit_code,
        .exited_ms = main->ended_ms,
        .end = last_end(runner),
    };
}

void local_runner_read_output(struct local_runner *runner)
{
    if (!runner->log_is_open)
        return;
    char chunk[LOCAL_LOG_CHUNK_BYTES];
    size_t count;
    for (int i = 0; i < READ_CHUNKS_MAX && (count = local_log_pump(&runner->log, chunk)) > 0; i++)
        if (runner->is_leader)
            runner->options->output(runner->options->context, chunk, count);
    if (runner->log.failure.code != ERR_NONE && !runner->log_failure_reported) {
        runner->log_failure_reported = true;
        runner->options->warn(runner->options->context, runner->log.failure.msg);
    }
}
