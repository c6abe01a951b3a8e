/* shoal-agent: one rank of a training job, or the launcher of a pod's ranks. */
#include "agent/comm/comm_device.h"
#include "agent/comm/rendezvous.h"
#include "agent/compat/accelerate.h"
#include "agent/compat/command_stubs.h"
#include "agent/compat/script.h"
#include "agent/compat/shim.h"
#include "agent/config/config.h"
#include "agent/config/model_path.h"
#include "agent/doctor/doctor.h"
#include "agent/dry_run.h"
#include "agent/health/hang_action.h"
#include "agent/health/hang_detector.h"
#include "agent/launch/crash.h"
#include "agent/launch/last_words.h"
#include "agent/launch/launch.h"
#include "agent/launch/stop.h"
#include "agent/launch/thread_stacks.h"
#include "agent/launch/topology.h"
#include "agent/notices.h"
#include "agent/process_group.h"
#include "agent/rank.h"
#include "agent/telemetry/termination_log.h"
#include "agent/trainer/build.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/environment.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/open_files.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

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
    auto_str struct str others;
    str_init(&others, 4096);
    shim_variables(&others);
    while (argv[argc])
        argc++;
    if (config_parse(argc - 1, (const char *const *)argv + 1, environment_get, NULL, arena, config,
                     err) ||
        config_check_variables(environ, str_text(&others), arena, config, err))
        return -1;
    if (config->help || config->help_markdown || config->version)
        return 0;
    if (script_check(config, arena, err))
        return -1;
    notices_complete(config, arena);
    if (resolve_config_paths(config, environment_get, NULL, arena, err))
        return -1;
    build_warn(config, arena);
    const struct agent_config *c = &config->value;
    if (strcmp(c->runtime.gpu_ids, "all") != 0)
        setenv("CUDA_VISIBLE_DEVICES", c->runtime.gpu_ids, 1); /* also for the ranks it starts */
    const struct topology_request wish = {
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
        .launch = is_shim || c->runtime.redirects[0] || c->runtime.tee[0],
        .max_restarts = (int)c->runtime.max_restarts,
    };
    if (topology_read(environment_get, NULL, &wish, topology, err))
        return -1;
    topology->is_launcher = topology->is_launcher || needs_parent(c, topology);
    return 0;
}

/* What is wrong may be so for the preset alone: whose place it takes is said first. */
static void explain(struct config *config, struct arena *arena)
{
    if (!config->script_notice[0])
        script_describe(config, access(config->value.runtime.script, F_OK) == 0, arena);
    if (config->script_notice[0])
        log_info("%s", config->script_notice);
}

/* The reduction slots of an elastic run; 0: none. Its first world is as large as the job was made:
 * so they cost nothing there, and a step's samples stay when nodes come and go. None where the host
 * adds up, which cannot do so in the order of slots. */
static int64_t launch_slots(const struct agent_config *c, const struct topology *t,
                            enum slots_source *ret_source)
{
    int64_t asked = c->parallel.reduction_slots, saved = 0;
    *ret_source = SLOTS_ASKED;
    if (asked != SLOTS_AUTO || !topology_is_elastic(t))
        return asked == SLOTS_AUTO ? 0 : asked;
    if (t->node_rank == 0)
        saved = rank_saved_slots(c, t);
    *ret_source = saved > 0 ? SLOTS_SAVED : SLOTS_DEFAULT;
    return saved > 0 ? saved : c->memory.cpu_offload ? 0 : (int64_t)t->nodes * t->local_size;
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

static int describe(const struct config *asked, const struct topology *t, struct error *err)
{
    struct config resolved = *asked;
    const struct config *config = &resolved;
    enum slots_source ignored;
    if (topology_is_elastic(t))
        resolved.value.parallel.reduction_slots = launch_slots(&asked->value, t, &ignored);
    auto_str struct str text;
    str_init(&text, 256 * 1024);
    const int min_ranks = topology_is_elastic(t) ? t->min_nodes * t->local_size : 0;
    int result = dry_run(config, t->world_size, t->local_size, min_ranks, &text, err);
    if (result == 0)
        fputs(str_text(&text), stdout);
    return result;
}

static void explain_to_kubelet(const char *why, const char *lines)
{
    termination_log_explain(TERMINATION_LOG_PATH, why, lines);
}

/* As long as of a rank that another one of its pod sees. */
static int64_t stopped_most_ms(const struct agent_config *c)
{
    if (c->runtime.hang_action != HANG_RESTART)
        return 0;
    return hang_detector_silence_ms(RENDEZVOUS_BEAT_MS,
                                    (int64_t)(c->runtime.hang_patience_s * 1000));
}

static int launch(const struct agent_config *c, const struct topology *t, char *const *argv,
                  bool is_shim, struct error *err)
{
    enum slots_source slots_are;
    int64_t slots = launch_slots(c, t, &slots_are);
    const struct launch_options options = {
        .topology = t,
        .argv = argv,
        .max_restarts = t->max_restarts,
        .restart_delay_s = c->runtime.monitor_interval_s,
        .shrink_after_s = c->runtime.shrink_after_s,
        .join_timeout_s = c->runtime.join_timeout_s,
        .stopped_most_ms = stopped_most_ms(c),
        .reduction_slots = slots,
        .slots_are = slots_are,
        .slots_are_refused = c->memory.cpu_offload,
        .names_endpoint = is_shim || c->runtime.max_restarts > 0,
        .is_verbose = is_shim || t->max_restarts > 0,
        .output = {.log_dir = c->runtime.log_dir,
                   .run = t->job_id,
                   .redirects = c->runtime.redirects,
                   .tee = c->runtime.tee},
        .explain_end = getenv("KUBERNETES_SERVICE_HOST") ? explain_to_kubelet : NULL,
    };
    int exit_code = EXIT_FAILED;
    char interface[NET_INTERFACE_BYTES], address[STORE_HOST_MAX];
    /* here, and not by each rank: they would all say the same */
    return process_group_find_interface(t, interface, address, err) ||
                   launch_local_ranks(&options, &exit_code, err)
               ? exit_failed("shoal-agent", err)
               : exit_code;
}

/* Command lines that train nothing. */
static bool is_aside(char *const *argv, int *ret_exit_code)
{
    auto_str struct str text;
    str_init(&text, 4096);
    if (doctor_command(argv, ret_exit_code))
        return true;
    if (!command_stub(argv, &text, ret_exit_code))
        return accelerate_command(argv, environment_get, NULL, ret_exit_code);
    fputs(str_text(&text), stderr);
    return true;
}

/* The end of what only prints. */
static int printed(void)
{
    struct error err;
    return file_flush_standard(&err) < 0 ? exit_failed("shoal-agent", &err) : EXIT_DONE;
}

int main(int argc, char **argv)
{
    (void)argc;
    int exit_aside;
    if (is_aside(argv, &exit_aside))
        return exit_aside ? exit_aside : printed();
    int64_t start_us = clock_monotonic_us();
    /* A rank's name would be "exe": its launcher has executed /proc/self/exe. */
    prctl(PR_SET_NAME, program_invocation_short_name);
    signal(SIGPIPE, SIG_IGN);
    open_files_raise(); /* rank 0 has a connection to every other */
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct topology topology;
    struct error err;
    char *const *own_argv;
    bool is_shim;
    if (shim_rewrite(argv, environment_get, NULL, arena, &is_shim, &own_argv, &err))
        return exit_failed("shoal-agent", &err);
    if (read_configuration(own_argv, is_shim, arena, &config, &topology, &err)) {
        explain(&config, arena);
        return exit_failed("shoal-agent", &err);
    }
    if (config.help || config.help_markdown) {
        print_help(config.help_markdown);
        return printed();
    }
    if (config.version) {
        printf("shoal-agent %s\n", SHOAL_VERSION);
        return printed();
    }
    log_set_level((enum log_level)config.value.logging.level);
    if (config.value.runtime.dry_run)
        return describe(&config, &topology, &err) ? exit_failed("shoal-agent", &err) : printed();
    if (topology.is_launcher)
        return launch(&config.value, &topology, own_argv, is_shim, &err);
    last_words_inherit();
    crash_install_handlers(topology.rank);
    thread_stacks_install();
    if (rank_run(&config, &topology, start_us, &err) == 0)
        return EXIT_DONE;
    last_words_send(&err, false); /* unless rank_run() has sent them after the meeting */
    if (err.shared && topology.local_rank != 0)
        stop_await_first_rank();
    else
        exit_failed("shoal-agent", &err);
    return stop_exit_code(&err);
}
