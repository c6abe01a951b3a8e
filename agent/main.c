/* shoal-agent: one rank of a training job, or the launcher of a pod's ranks. */
#include "agent/comm/comm_ring.h"
#include "agent/comm/net.h"
#include "agent/comm/rendezvous.h"
#include "agent/config/config.h"
#include "agent/config/model_path.h"
#include "agent/config/shim.h"
#include "agent/config/stand_in.h"
#include "agent/launch/accelerate.h"
#include "agent/launch/launch.h"
#include "agent/launch/numa.h"
#include "agent/launch/pulse.h"
#include "agent/launch/topology.h"
#include "agent/trainer/banner.h"
#include "agent/trainer/build.h"
#include "agent/trainer/report.h"
#include "agent/trainer/trainer.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/cores.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

static bool stop_asked(void *ctx)
{
    (void)ctx;
    return stop_signal != 0;
}

static const char *environment(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

/* A person who stops the run by Ctrl-C is told so by the code, too. */
static int exit_code(const struct error *err)
{
    bool interrupted = err->code == ERR_CANCELLED && stop_signal == SIGINT;
    return interrupted ? 128 + SIGINT : exit_code_of(err->code);
}

/* What all ranks would say alike, the first of each pod says. Its end makes the launcher signal the
 * others; if one of them went before it, the launcher would cut the first one short. */
static void await_first_rank(void)
{
    const struct timespec most = {.tv_sec = 5};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (!stop_signal)
        sigtimedwait(&set, NULL, &most);
}

/* A container's first process has nobody who could end it when a GPU or NCCL has it stuck. */
static bool needs_parent(const struct agent_config *c, const struct topology *t)
{
    return getpid() == 1 && t->world_size > 1 && t->local_size == 1 && c->runtime.exit_if_stuck &&
           strcmp(c->runtime.device, "cpu") != 0 && launch_count_gpus() > 0;
}

static int read_configuration(char *const *argv, bool is_shim, struct arena *arena,
                              struct config *config, struct topology *topology, struct error *err)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    if (config_parse(argc - 1, (const char *const *)argv + 1, environment, NULL, arena, config,
                     err))
        return -1;
    if (config->help || config->help_markdown || config->version)
        return 0;
    if (resolve_config_paths(config, environment, NULL, arena, err))
        return -1;
    const struct agent_config *c = &config->value;
    if (strcmp(c->runtime.gpu_ids, "all") != 0)
        setenv("CUDA_VISIBLE_DEVICES", c->runtime.gpu_ids, 1); /* also for the ranks it starts */
    const struct topology_wish wish = {
        .nproc_per_node = c->runtime.nproc_per_node,
        .nnodes = c->runtime.nnodes,
        .node_rank = (int)c->runtime.node_rank,
        .master_addr = c->runtime.master_addr,
        .master_port = (int)c->runtime.master_port,
        .rdzv_backend = c->runtime.rdzv_backend,
        .rdzv_endpoint = c->runtime.rdzv_endpoint,
        .rdzv_id = c->runtime.rdzv_id,
        .standalone = c->runtime.standalone,
        .count_gpus = strcmp(c->runtime.device, "cpu") == 0 ? NULL : launch_count_gpus,
        .launch =
            is_shim || c->runtime.max_restarts > 0 || c->runtime.redirects[0] || c->runtime.tee[0],
    };
    if (topology_read(environment, NULL, &wish, topology, err))
        return -1;
    topology->is_launcher |= needs_parent(c, topology);
    return 0;
}

static void print_help(bool as_page)
{
    auto_str struct str text;
    str_init(&text, 64 * 1024);
    if (as_page)
        config_markdown(&text);
    else
        config_help(&text);
    fputs(str_text(&text), stdout);
}

static int dry_run(const struct config *config, struct arena *arena, struct error *err)
{
    struct model *model = NULL;
    if (config->warning[0])
        log_warning("%s", config->warning);
    if (build_model(&config->value, arena, &model, err))
        return -1;
    auto_str struct str text;
    str_init(&text, 256 * 1024);
    build_describe(config, model, &text);
    fputs(str_text(&text), stdout);
    return 0;
}

/* A node of SageMaker HyperPod: it may have been put in the place of a broken one, so its first
 * start goes on from the latest checkpoint as a restart does. */
static bool is_hyperpod(void)
{
    return access("/opt/sagemaker_cluster", F_OK) == 0;
}

static void print_banner(const struct config *config, const struct topology *t)
{
    auto_str struct str text;
    str_init(&text, 256 * 1024);
    if (config->warning[0])
        log_warning("%s", config->warning);
    banner_print(config, t, environ, is_hyperpod(), &text);
    fputs(str_text(&text), stdout);
    fflush(stdout);
}

/* CPU threads of a rank: what the configuration says, else its share of the cores we may use.
 * on_node: how many of the pod's ranks have these cores. */
static int thread_count(const struct agent_config *c, const struct topology *t, int on_node)
{
    if (c->runtime.threads > 0)
        return (int)c->runtime.threads;
    int cores = cores_available();
    /* Ranks of one job on one machine meet on the loopback: all of them share its cores. */
    int pods = strncmp(t->host, "127.", 4) == 0 ? t->world_size / t->local_size : 1;
    int sharing = pods * on_node;
    return cores > sharing ? cores / sharing : 1;
}

/* The meeting of all ranks, as long as the run. */
struct meeting {
    struct rendezvous *rendezvous; /* NULL with one rank */
    struct comm *world;
};

/* The network interface that others reach this process at: Gloo's variable names one, NCCL's may
 * mean several, and is for its own sockets first: one that means none here is passed over. "": the
 * one that leads to rank 0. */
static void choose_interface(const struct topology *t, char *out, size_t out_bytes)
{
    const char *gloo = getenv("GLOO_SOCKET_IFNAME"), *nccl = getenv("NCCL_SOCKET_IFNAME");
    bool is_local = strncmp(t->host, "127.", 4) == 0;
    out[0] = '\0';
    if (gloo && gloo[0])
        snprintf(out, out_bytes, "%s", gloo);
    else if (nccl && nccl[0] && !is_local)
        net_interface_choose(nccl, out, out_bytes);
}

static int meet(const struct agent_config *c, const struct topology *t, struct meeting *m,
                struct error *err)
{
    if (t->world_size == 1)
        return comm_self_open(&m->world, err);
    const struct rendezvous_options options = {
        .host = t->host,
        .port = t->port,
        .rank = t->rank,
        .size = t->world_size,
        .job_id = t->job_id,
        .join_timeout_ms = (int)(c->runtime.join_timeout_s * 1000),
        .beat_ms = RENDEZVOUS_BEAT_MS,
        .silence_ms = RENDEZVOUS_SILENCE_MS,
    };
    if (rendezvous_open(&options, &m->rendezvous, err))
        return -1;
    char interface[64];
    choose_interface(t, interface, sizeof interface);
    const struct comm_ring_options ring = {
        .join_timeout_ms = options.join_timeout_ms,
        .timeout_ms = (int)(c->runtime.timeout_s * 1000),
        .interface = interface[0] ? interface : NULL,
    };
    return comm_ring_open(rendezvous_store(m->rendezvous), t->rank, t->world_size, &ring, &m->world,
                          err);
}

/* What all ranks have in common each finds for itself. */
static int tell_others(const struct meeting *m, int result, const struct error *err)
{
    if (result && m->rendezvous && !err->shared && err->code != ERR_CANCELLED)
        rendezvous_fail(m->rendezvous, err->msg);
    return result;
}

static void part(struct meeting *m)
{
    comm_close(m->world);
    rendezvous_close(m->rendezvous);
}

/* From here on a signal asks the loop to stop; before, there is nothing to save and it simply ends
 * the process. */
static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
}

static int save_model(struct trainer *trainer, const char *path, int rank, struct error *err)
{
    if (trainer_save_model(trainer, path, err))
        return -1;
    if (rank == 0)
        printf("Model saved: %s\n", path);
    return 0;
}

/* A GPU that does not answer keeps even the end of its process waiting. */
static void end_at_once(void)
{
    _exit(EXIT_RETRYABLE);
}

static int train(const struct config *config, const struct topology *t, const struct meeting *m,
                 struct report *report, struct error *err)
{
    const struct agent_config *c = &config->value;
    int on_node = t->local_size;
    auto_str struct str yaml;
    str_init(&yaml, 256 * 1024);
    config_yaml(config, &yaml);
    if (c->runtime.cpu_affinity && numa_stay(t->local_rank, t->local_size, &on_node, err))
        return -1;
    struct trainer_listener listener = report_listener(report);
    listener.stop_asked = stop_asked;
    struct pulse pulse = pulse_take();
    const struct trainer_place place = {
        .world = m->world,
        .store = m->rendezvous ? rendezvous_store(m->rendezvous) : NULL,
        .stuck = end_at_once,
        .alive = pulse_give,
        .alive_ctx = &pulse,
        .local_rank = t->local_rank,
        .local_size = t->local_size,
        .threads = thread_count(c, t, on_node),
        .restarted = t->restart_count > 0 || is_hyperpod(),
        .agent_config = str_text(&yaml),
    };
    struct trainer *trainer = NULL;
    if (trainer_open(c, &place, &listener, &trainer, err))
        return tell_others(m, -1, err);
    handle_signals();
    report_begin(report);
    int result = trainer_run(trainer, err);
    if (result == 0) {
        struct memory_use use;
        trainer_memory_use(trainer, &use);
        report_end(report, trainer_module(trainer), &use);
    }
    if (result == 0 && c->checkpoint.save_model[0])
        result = save_model(trainer, c->checkpoint.save_model, t->rank, err);
    tell_others(m, result, err); /* now: closing may take its time */
    trainer_close(trainer);
    return result;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static int64_t wall_us(void)
{
    return clock_now_ms() * 1000;
}

static int run_rank(const struct config *config, const struct topology *t, int64_t start_us,
                    struct error *err)
{
    if (t->rank == 0)
        print_banner(config, t);
    struct meeting meeting = {0};
    int result = meet(&config->value, t, &meeting, err);
    if (result == 0) {
        const struct report_setting setting = {
            .config = config,
            .rank = t->rank,
            .local_rank = t->local_rank,
            .world_size = t->world_size,
            .restarts = t->restart_count,
            .job = t->job_id,
            .node = or_empty(getenv("NODE_NAME")),
            .pod_namespace = or_empty(getenv("POD_NAMESPACE")),
            .pod = or_empty(getenv("HOSTNAME")),
            .gpus_visible = getenv("CUDA_VISIBLE_DEVICES"),
            .progress_socket = t->rank == 0 ? getenv(ENV_PROGRESS_SOCKET) : NULL,
            .start_us = start_us,
            .wall_us = wall_us,
            .steady_us = clock_monotonic_us,
        };
        struct report *report = report_open(&setting);
        result = train(config, t, &meeting, report, err);
        if (result < 0)
            report_failed(report, exit_code(err));
        report_close(report);
    }
    part(&meeting);
    return result;
}

static int launch(const struct agent_config *c, const struct topology *t, char *const *argv,
                  bool is_shim, struct error *err)
{
    const struct launch_options options = {
        .topology = t,
        .argv = argv,
        .max_restarts = (int)c->runtime.max_restarts,
        .restart_delay_s = c->runtime.monitor_interval_s,
        .is_talkative = is_shim || c->runtime.max_restarts > 0,
        .output = {.log_dir = c->runtime.log_dir,
                   .run = t->job_id,
                   .redirects = c->runtime.redirects,
                   .tee = c->runtime.tee},
    };
    int exit_code = EXIT_FAILED;
    return launch_local_ranks(&options, &exit_code, err) ? exit_failed("shoal-agent", err)
                                                         : exit_code;
}

/* Command lines that train nothing. */
static bool is_aside(char *const *argv, int *ret_exit_code)
{
    auto_str struct str text;
    str_init(&text, 4096);
    if (!stand_in(argv, &text, ret_exit_code))
        return accelerate_command(argv, environment, NULL, ret_exit_code);
    fputs(str_text(&text), stderr);
    return true;
}

int main(int argc, char **argv)
{
    (void)argc;
    int exit_aside;
    if (is_aside(argv, &exit_aside))
        return exit_aside;
    int64_t start_us = clock_monotonic_us();
    signal(SIGPIPE, SIG_IGN);
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct topology topology;
    struct error err;
    char *const *own_argv;
    bool is_shim;
    if (shim_rewrite(argv, environment, NULL, arena, &is_shim, &own_argv, &err) ||
        read_configuration(own_argv, is_shim, arena, &config, &topology, &err))
        return exit_failed("shoal-agent", &err);
    if (config.help || config.help_markdown) {
        print_help(config.help_markdown);
        return EXIT_DONE;
    }
    if (config.version) {
        printf("shoal-agent %s\n", SHOAL_VERSION);
        return EXIT_DONE;
    }
    log_set_level((enum log_level)config.value.logging.level);
    if (config.value.runtime.dry_run)
        return dry_run(&config, arena, &err) ? exit_failed("shoal-agent", &err) : EXIT_DONE;
    if (topology.is_launcher)
        return launch(&config.value, &topology, own_argv, is_shim, &err);
    if (run_rank(&config, &topology, start_us, &err) == 0)
        return EXIT_DONE;
    if (!err.shared || topology.local_rank == 0)
        return exit_failed("shoal-agent", &err);
    await_first_rank();
    return exit_code(&err);
}
