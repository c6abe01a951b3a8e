#include "agent/rank.h"

#include "agent/launch/device_choice.h"
#include "agent/launch/heartbeat.h"
#include "agent/launch/job_name.h"
#include "agent/launch/last_words.h"
#include "agent/launch/numa.h"
#include "agent/launch/rank_memory.h"
#include "agent/launch/rank_note.h"
#include "agent/launch/stop.h"
#include "agent/notices.h"
#include "agent/process_group.h"
#include "agent/rank_meeting.h"
#include "agent/report/banner.h"
#include "agent/report/report.h"
#include "agent/telemetry/termination_log.h"
#include "agent/trainer/trainer.h"
#include "agent/trainer/trainer_saved_slots.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/cores.h"
#include "base/log.h"
#include "base/str.h"
#include "kernels/device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A node of SageMaker HyperPod may replace a broken one. So the first start of a process there
 * resumes from the latest checkpoint, as a restart does. */
static bool is_hyperpod(void)
{
    return access("/opt/sagemaker_cluster", F_OK) == 0;
}

static bool is_restarted(const struct topology *t)
{
    return t->restart_count > 0 || is_hyperpod();
}

static const char *run_of(const struct topology *t)
{
    return is_hyperpod() ? "" : t->run_id;
}

int64_t rank_saved_slots(const struct agent_config *c, const struct topology *t)
{
    return trainer_saved_slots(c, run_of(t), is_restarted(t));
}

static void print_banner(const struct config *config, const struct topology *t)
{
    auto_str struct str text;
    str_init(&text, 256 * 1024);
    notices_log(config);
    banner_print(config, t, environ, is_hyperpod(), &text);
    log_print(stdout, str_text(&text));
}

/* CPU threads of a rank: the configuration's, else its share of the cores that this process may
 * use. on_node: how many of the pod's ranks share these cores. */
static int thread_count(const struct agent_config *c, const struct topology *t, int on_node)
{
    if (c->runtime.threads > 0)
        return (int)c->runtime.threads;
    int cores = cores_available();
    /* A rendezvous on the loopback: all pods of the job are on this machine and share its cores. */
    int pods = net_loopback(t->host) ? t->world_size / t->local_size : 1;
    int sharing = pods * on_node;
    return cores > sharing ? cores / sharing : 1;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* POD_NAME first: with hostNetwork, HOSTNAME is the node's name. */
static const char *pod_name(void)
{
    const char *name = getenv("POD_NAME");
    return name && name[0] ? name : or_empty(getenv("HOSTNAME"));
}

/* Where the pod's name says nothing of the machine, Kubernetes tells it to those who ask. */
static const char *node_name(void)
{
    static char host[HOST_NAME_MAX + 1];
    const char *name = getenv("NODE_NAME");
    if (name && name[0])
        return name;
    gethostname(host, sizeof host - 1);
    return host;
}

/* What the launcher hands to its ranks; taken before any thread starts. */
struct inheritance {
    struct heartbeat heartbeat;
    int memory, note; /* 0: none */
};

static int save_model(struct trainer *trainer, const char *path, int rank, struct error *err)
{
    if (trainer_save_model(trainer, path, err))
        return -1;
    auto_str struct str line;
    str_init(&line, PATH_MAX);
    str_printf(&line, "Model saved: %s\n", path);
    if (rank == 0)
        log_print(stdout, str_text(&line));
    return 0;
}

/* exit() would run destructors of the CUDA driver, which wait for a GPU that does not answer. */
static void end_at_once(void)
{
    _exit(EXIT_RETRYABLE);
}

/* Binds the rank to the cores beside its GPU. *ret_sharing: how many of the pod's ranks share them.
 * Errors of the device are left for device_open() to report. */
static int bind_cpu_affinity(const struct agent_config *c, const struct topology *t,
                             int *ret_sharing, struct error *err)
{
    struct device_choice choice;
    struct error ignored;
    char pci[DEVICE_PCI_BYTES];
    bool has_gpu = device_choose_here(c->runtime.device, c->runtime.share_gpus, t->local_rank,
                                      &choice, &ignored) == 0 &&
                   device_pci(choice.name, pci);
    return numa_bind(has_gpu ? pci : NULL, t->local_rank, t->local_size, ret_sharing, err);
}

/* Whether this rank wants all ranks to save and stop. */
static bool should_stop(void *report)
{
    char sign[GPU_SIGN_BYTES];
    return stop_requested(NULL) || report_bad_hardware(report, false, sign);
}

static void tell_kubelet(const char *why)
{
    struct termination_log *log = termination_log_open(TERMINATION_LOG_PATH);
    if (log)
        termination_log_write(log, why, "");
    termination_log_close(log);
}

/* A run that ends where a GPU is bad ends by that, whichever call met it first; and of a run that
 * was to stop for that, this rank is the one that leaves. */
static void blame_hardware(const struct topology *t, struct report *report, struct error *err)
{
    char sign[GPU_SIGN_BYTES];
    bool may_be = err->code == ERR_DEVICE || err->code == ERR_PEER || err->code == ERR_TIMEOUT ||
                  err->code == ERR_CANCELLED;
    if (!may_be || !report_bad_hardware(report, err->code != ERR_CANCELLED, sign))
        return;
    bool agreed = err->shared; /* then nobody needs to be told: all stop, each by itself */
    error_set(err, ERR_HARDWARE, HARDWARE_MESSAGE "%s", sign);
    err->shared = agreed;
    if (t->rank != 0) /* whose report tells the kubelet why it ends */
        tell_kubelet(err->msg);
}

/* What the launcher hears of this rank. */
struct vital_signs {
    const struct heartbeat *heartbeat;
    struct rank_health *health; /* NULL with one rank */
};

static void send_heartbeat(void *ctx, int64_t wait_ms)
{
    const struct vital_signs *vital = ctx;
    char doing[HEARTBEAT_DOING_BYTES] = "";
    if (vital->health)
        rank_health_describe(vital->health, doing, sizeof doing);
    heartbeat_send(vital->heartbeat, wait_ms, doing);
}

static int train(const struct config *config, const struct topology *t,
                 const struct process_group *m, struct inheritance *inheritance,
                 struct report *report, struct error *err)
{
    const struct agent_config *c = &config->value;
    int on_node = t->local_size;
    struct vital_signs vital = {&inheritance->heartbeat, m->health};
    auto_str struct str yaml;
    str_init(&yaml, 256 * 1024);
    config_yaml(config, &yaml);
    if (c->runtime.cpu_affinity && bind_cpu_affinity(c, t, &on_node, err))
        return -1;
    struct trainer_listener listener = report_listener(report);
    listener.stop_requested = should_stop;
    const struct rank_env env = {
        .world = m->world,
        .store = m->rendezvous ? rendezvous_store(m->rendezvous) : NULL,
        .stuck = end_at_once,
        .alive = send_heartbeat,
        .alive_ctx = &vital,
        .activity = m->health ? rank_health_activity(m->health) : NULL,
        .progress = m->health ? rank_health_progress(m->health) : NULL,
        .local_rank = t->local_rank,
        .local_size = t->local_size,
        .node = getenv("NODE_NAME"),
        .memory_fd = inheritance->memory,
        .note_fd = inheritance->note,
        .now_us = clock_monotonic_us,
        .memory_left = memory_bounds,
        .threads = thread_count(c, t, on_node),
        .min_ranks = rank_meeting_number(ENV_MIN_RANKS),
        .slots = rank_meeting_number(ENV_SLOTS),
        .restarted = is_restarted(t),
        .run = run_of(t),
        .agent_config = str_text(&yaml),
    };
    struct trainer *trainer = NULL;
    if (trainer_open(c, &env, &listener, &trainer, err))
        return process_group_report_failure(m, -1, err);
    stop_install_handlers();
    report_begin(report);
    int result = trainer_run(trainer, err);
    if (result)
        blame_hardware(t, report, err);
    activity_enter(env.activity, RANK_END);
    if (result == 0) {
        struct memory_use use;
        trainer_memory_use(trainer, &use);
        report_end(report, trainer_module(trainer), &use);
    }
    if (result == 0 && c->checkpoint.save_model[0])
        result = save_model(trainer, c->checkpoint.save_model, t->rank, err);
    process_group_report_failure(m, result, err); /* before trainer_close(), which may take long */
    trainer_close(trainer);
    return result;
}

static int64_t wall_us(void)
{
    return clock_now_ms() * 1000;
}

static void show_health(void *ctx, const struct rank_health_view *view)
{
    report_health(ctx, &(struct telemetry_health){.ranks_json = view->ranks_json,
                                                  .hung = view->hung,
                                                  .straggling = view->straggling,
                                                  .hung_rank = view->hung_rank,
                                                  .hung_node = view->hung_node,
                                                  .last_hang = view->last_hang});
}

_Static_assert((int)PAGE_NOTE_BYTES <= (int)RANK_NOTE_BYTES, "a note of the page fits");

static void keep_page(void *ctx, const char *note)
{
    const struct inheritance *inheritance = ctx;
    rank_note_write(inheritance->note, RANK_NOTE_PAGE, note);
}

/* note: what it refers to; the caller's. */
static struct page_keeper page_keeper_of(struct inheritance *inheritance, struct str *note)
{
    str_init(note, PAGE_NOTE_BYTES);
    rank_note_read(inheritance->note, RANK_NOTE_PAGE, note);
    return (struct page_keeper){str_text(note), keep_page, inheritance};
}

static struct trainjob_status_setting trainjob_setting(void)
{
    return (struct trainjob_status_setting){.url = getenv("KUBEFLOW_TRAINER_SERVER_URL"),
                                            .ca_file = getenv("KUBEFLOW_TRAINER_SERVER_CA_CERT"),
                                            .token_file = getenv("KUBEFLOW_TRAINER_SERVER_TOKEN"),
                                            .interval_ms = TRAINJOB_STATUS_INTERVAL_MS};
}

int rank_run(const struct config *config, const struct topology *t, int64_t start_us,
             struct error *err)
{
    struct inheritance inheritance = {heartbeat_inherit(), rank_memory_inherit(),
                                      rank_note_inherit()};
    stop_end_at_once();
    if (t->rank == 0)
        print_banner(config, t);
    const struct process_group_options options = {
        .topology = t,
        .host = node_name(),
        .pod = pod_name(),
        .note_fd = inheritance.note,
    };
    struct process_group group = {0};
    int64_t meeting_us = clock_monotonic_us();
    int result = process_group_init(&config->value, &options, &group, err);
    if (result)
        last_words_send(err, group.rendezvous != NULL);
    if (result == 0)
        result =
            process_group_report_failure(&group, process_group_agree(&group, config, t, err), err);
    if (result == 0) {
        const struct job_name job =
            job_name_of(getenv(ENV_JOB), t->job_id, getenv("POD_NAMESPACE"));
        auto_str struct str page = {.text = NULL};
        const struct report_setting setting = {
            .config = config,
            .rank = t->rank,
            .local_rank = t->local_rank,
            .world_size = t->world_size,
            .shares_machine = net_loopback(t->host) != NULL,
            .in_pod = getenv("KUBERNETES_SERVICE_HOST") != NULL,
            .restarts = t->restart_count,
            .job = job.name,
            .run_id = getenv(ENV_JOB) ? t->run_id : "", /* else nobody's but the launcher's */
            .node = node_name(),
            .pod_namespace = job.namespace_,
            .pod = pod_name(),
            .progress_socket = t->rank == 0 ? getenv(ENV_PROGRESS_SOCKET) : NULL,
            .trainjob = trainjob_setting(),
            .termination_log = getenv("KUBERNETES_SERVICE_HOST") ? TERMINATION_LOG_PATH : NULL,
            .page = page_keeper_of(&inheritance, &page),
            .start_us = start_us,
            .meeting_us = meeting_us,
            .wall_us = wall_us,
            .steady_us = clock_monotonic_us,
        };
        struct report *report = report_open(&setting);
        if (group.health)
            rank_health_show_to(group.health, show_health, report);
        result = train(config, t, &group, &inheritance, report, err);
        if (result < 0)
            report_failed(report, stop_exit_code(err), err->msg);
        if (group.health)
            rank_health_show_to(group.health, NULL, NULL);
        report_close(report);
    }
    process_group_leave(&group);
    return result;
}
