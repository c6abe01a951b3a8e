#include "operator/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "operator/job/job_status.h"
#include "operator/local/local_runner.h"

struct local {
    struct job job; /* `deleting` is ours, the rest is borrowed */
    struct local_options options;
    int64_t now_ms; /* as last passed */
    int64_t serial; /* makes UIDs */
    struct job_status status;
    struct arena *status_arena; /* of the status; a new one each time it is set */
    struct local_runner runners[LOCAL_REPLICAS_MAX];
    size_t runner_count;
    struct local_replica shown[LOCAL_REPLICAS_MAX]; /* local_replicas' */
    struct pod pods[LOCAL_REPLICAS_MAX];            /* local_snapshot's */
    struct service *services;
    size_t service_count;
    struct training told; /* by the training, last */
    struct local_events events;
    struct local_addresses addresses;
    struct arena *arena; /* names and UIDs */
    int log_folder;      /* LOG_DIR/JOB, locked against other runs; -1: not made yet */
};

/* ---- life-cycle ---- */

int local_open(struct local **ret_local, const struct job *job, const struct local_options *options,
               struct error *err)
{
    int64_t replicas = 0;
    for (int type = 0; type < REPLICA_TYPES; type++)
        replicas += job->replicas[type].present ? job->replicas[type].replicas.value : 0;
    if (replicas > LOCAL_REPLICAS_MAX)
        return error_set(err, ERR_UNSUPPORTED,
                         "%" PRId64 " replicas: at most %d run on one machine", replicas,
                         LOCAL_REPLICAS_MAX);
    struct local *local = xcalloc(1, sizeof *local);
    local->job = *job;
    local->options = *options;
    local->arena = arena_open();
    local->log_folder = -1;
    local->options.site.addresses = &local->addresses;
    if (local_process_adopt(err) < 0 ||
        local_addresses_open(&local->addresses, job, options->keep_ports, err) < 0) {
        local_close(local);
        return -1;
    }
    *ret_local = local;
    return 0;
}

static bool is_guard(pid_t pid, void *context)
{
    struct local *local = context;
    for (size_t i = 0; i < local->runner_count; i++)
        if (local_runner_has_guard(&local->runners[i], pid))
            return true;
    return false;
}

void local_close(struct local *local)
{
    if (!local)
        return;
    local_kill(local);
    /* Each guard ends after it has reaped its whole tree. What is left after this loop has outlived
     * a guard that somebody killed. */
    while (!local_is_idle(local)) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        for (size_t i = 0; pid > 0 && i < local->runner_count; i++)
            local_runner_reap(&local->runners[i], pid, status, local->now_ms);
    }
    local_process_kill_orphans(is_guard, local);
    for (size_t i = 0; i < local->runner_count; i++)
        local_runner_close(&local->runners[i]);
    local_addresses_close(&local->addresses);
    mem_cleanup_close(&local->log_folder);
    free(local->services);
    arena_close(local->status_arena);
    arena_close(local->arena);
    free(local);
}

/* ---- the backend's functions ---- */

static const char *next_uid(struct local *local)
{
    return arena_printf(local->arena, "local-%" PRId64, ++local->serial);
}

static int set_status(void *context, const struct job *job, const struct job_status *status,
                      struct error *err)
{
    (void)job, (void)err;
    struct local *local = context;
    /* Copied before the old arena goes: the new status may share texts with the old one. */
    struct arena *arena = arena_open();
    local->status = job_status_copy(status, arena);
    arena_close(local->status_arena);
    local->status_arena = arena;
    return 0;
}

static struct local_runner *find_runner(struct local *local, enum replica_type type, int32_t index)
{
    for (size_t i = 0; i < local->runner_count; i++)
        if (local->runners[i].type == type && local->runners[i].index == index)
            return &local->runners[i];
    return NULL;
}

static int create_pod(void *context, const struct pod_spec *spec, struct error *err)
{
    struct local *local = context;
    struct local_runner *runner = find_runner(local, spec->type, spec->index);
    if (!runner) {
        bool has_master = local->job.replicas[REPLICA_MASTER].present;
        bool is_leader =
            spec->type == (has_master ? REPLICA_MASTER : REPLICA_WORKER) && spec->index == 0;
        /* A runner stays when its pod goes: log, restart counts and back-off are the replica's. */
        runner = &local->runners[local->runner_count++];
        local_runner_open(runner, spec, is_leader, &local->options);
    }
    if (local_runner_has_pod(runner))
        return error_set(err, ERR_EXISTS, "pod %s exists", spec->name);
    runner->shown.created_ms = local->now_ms;
    return local_runner_admit(runner, spec, &local->options.site, next_uid(local), err);
}

static int delete_pod(void *context, const struct job *job, const char *name, const char *uid,
                      struct error *err)
{
    (void)job;
    struct local *local = context;
    for (size_t i = 0; i < local->runner_count; i++) {
        struct local_runner *runner = &local->runners[i];
        if (local_runner_has_pod(runner) && !strcmp(runner->uid, uid)) {
            local_runner_delete(runner, local->now_ms);
            return 0;
        }
    }
    return error_set(err, ERR_NOT_FOUND, "pod %s is gone", name);
}

static int create_service(void *context, const struct service_spec *spec, struct error *err)
{
    (void)err;
    struct local *local = context;
    local->services =
        xrealloc(local->services, (local->service_count + 1) * sizeof *local->services);
    local->services[local->service_count++] = (struct service){
        .name = arena_strdup(local->arena, spec->name),
        .uid = next_uid(local),
        .owner_uid = local->job.uid,
        .type = spec->type,
        .index = spec->index,
    };
    return 0;
}

static int delete_service(void *context, const struct job *job, const char *name, const char *uid,
                          struct error *err)
{
    (void)job;
    struct local *local = context;
    for (size_t i = 0; i < local->service_count; i++)
        if (!strcmp(local->services[i].uid, uid)) {
            local->services[i] = local->services[--local->service_count];
            return 0;
        }
    return error_set(err, ERR_NOT_FOUND, "service %s is gone", name);
}

static int delete_job(void *context, const struct job *job, struct error *err)
{
    (void)job, (void)err;
    struct local *local = context;
    local->job.deleting = true;
    local_stop(local, local->now_ms);
    return 0;
}

static void keep_event(void *context, const struct job *job, enum event_type type,
                       const char *reason, const char *message)
{
    (void)job;
    struct local *local = context;
    local_events_add(&local->events, local->now_ms, type, reason, message);
}

struct backend local_backend(struct local *local)
{
    return (struct backend){
        .context = local,
        .set_status = set_status,
        .create_pod = create_pod,
        .create_service = create_service,
        .delete_pod = delete_pod,
        .delete_service = delete_service,
        .delete_job = delete_job,
        .event = keep_event,
    };
}

/* ---- snapshots and time ---- */

void local_snapshot(struct local *local, int64_t now_ms, struct snapshot *ret_snapshot)
{
    local->now_ms = now_ms;
    size_t count = 0;
    for (size_t i = 0; i < local->runner_count; i++)
        if (local_runner_has_pod(&local->runners[i]))
            local_runner_get_pod(&local->runners[i], &local->pods[count++]);
    *ret_snapshot = (struct snapshot){
        .job = &local->job,
        .status = &local->status,
        .pods = local->pods,
        .pod_count = count,
        .services = local->services,
        .service_count = local->service_count,
        .training = local->told.known ? &local->told : NULL,
        .now_ms = now_ms,
    };
}

void local_tell(struct local *local, const struct training *told)
{
    local->told = *told;
}

static void reap_one(struct local *local, pid_t pid, int wait_status)
{
    size_t i = 0;
    while (i < local->runner_count &&
           !local_runner_reap(&local->runners[i], pid, wait_status, local->now_ms))
        i++;
    if (WIFSIGNALED(wait_status)) /* a guard only dies so when someone kills it */
        local_process_kill_orphans(is_guard, local);
}

void local_reap(struct local *local, int64_t now_ms)
{
    local->now_ms = now_ms;
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        reap_one(local, pid, status);
    for (size_t i = 0; i < local->runner_count; i++)
        local_runner_clean_up(&local->runners[i], now_ms);
}

static int make_folder(const char *path, struct error *err)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return error_set(err, ERR_IO, "make folder %s for the logs: %s; choose another --log-dir",
                         path, strerror(errno));
    return 0;
}

/* LOG_DIR with its parents, and the job's own folder in it, which one run at a time may use. */
static int make_log_folder(struct local *local, struct error *err)
{
    auto_free char *path = xasprintf("%s/%s", local->options.log_dir, local->job.name);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (make_folder(path, err) < 0)
            return -1;
        *slash = '/';
    }
    if (make_folder(path, err) < 0)
        return -1;
    local->log_folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (local->log_folder < 0 && (errno == ELOOP || errno == ENOTDIR))
        return error_set(err, ERR_EXISTS,
                         "folder %s for the logs: there is a link or a file: remove it, or choose "
                         "another --log-dir",
                         path);
    if (local->log_folder < 0)
        return error_errno(err, errno, "open folder %s", path);
    /* A lock of the kernel's goes with the process, however that ends: none is left behind as a
     * file would be. */
    if (flock(local->log_folder, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, ERR_EXISTS,
                         "job %s is being run already: its logs in %s are in use; choose another "
                         "--log-dir or name",
                         local->job.name, path);
    return 0;
}

int local_start(struct local *local, int64_t now_ms, struct error *err)
{
    local->now_ms = now_ms;
    if (local->log_folder < 0 && make_log_folder(local, err) < 0)
        return -1;
    int sum = 0;
    for (size_t i = 0; i < local->runner_count; i++) {
        struct local_runner *runner = &local->runners[i];
        auto_free char *log_path =
            xasprintf("%s/%s/%s.log", local->options.log_dir, local->job.name, runner->shown.name);
        int started = local_runner_start(runner, log_path, now_ms, err);
        if (started < 0)
            return -1;
        sum += started;
    }
    return sum;
}

int64_t local_due(const struct local *local)
{
    int64_t due = LOCAL_POD_NEVER;
    for (size_t i = 0; i < local->runner_count; i++) {
        int64_t one = local_runner_due(&local->runners[i]);
        due = one < due ? one : due;
    }
    return due;
}

static bool is_read(const struct local *local, const struct local_runner *runner)
{
    return runner->log_is_open &&
           (!runner->is_leader || local->options.has_room(local->options.context));
}

size_t local_poll_fds(const struct local *local, struct pollfd *fds, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < local->runner_count && count < max; i++)
        if (is_read(local, &local->runners[i]))
            fds[count++] = (struct pollfd){.fd = local->runners[i].log.read_end, .events = POLLIN};
    return count;
}

void local_read_output(struct local *local)
{
    for (size_t i = 0; i < local->runner_count; i++)
        if (is_read(local, &local->runners[i]))
            local_runner_read_output(&local->runners[i]);
}

void local_stop(struct local *local, int64_t now_ms)
{
    local->now_ms = now_ms;
    for (size_t i = 0; i < local->runner_count; i++)
        local_runner_delete(&local->runners[i], now_ms);
}

void local_kill(struct local *local)
{
    for (size_t i = 0; i < local->runner_count; i++)
        local_runner_kill(&local->runners[i]);
}

bool local_is_idle(const struct local *local)
{
    for (size_t i = 0; i < local->runner_count; i++)
        if (!local_runner_is_idle(&local->runners[i]))
            return false;
    return true;
}

const struct local_replica *local_replicas(struct local *local, size_t *ret_count)
{
    for (size_t i = 0; i < local->runner_count; i++)
        local->shown[i] = local->runners[i].shown;
    *ret_count = local->runner_count;
    return local->shown;
}

const struct local_events *local_events(const struct local *local)
{
    return &local->events;
}

const char *local_state_name(enum local_state state)
{
    static const char *const names[] = {"Pending",  "Init",    "Running",   "Restarting",
                                        "Stopping", "Stopped", "Succeeded", "Failed"};
    return names[state];
}
