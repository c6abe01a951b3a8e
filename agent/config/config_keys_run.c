/* The keys of logging, the profiler and the launcher. */
#include "agent/config/config_keys.h"

#include "agent/comm/comm_device.h"
#include "agent/health/hang_action.h"
#include "agent/telemetry/gpu_metrics.h"
#include "agent/telemetry/log_lines.h"
#include "base/contract.h"
#include "base/log.h"

#define QUOTED(text)    #text
#define TEXT_OF(number) QUOTED(number)

static const struct config_key keys[] = {
    KEY_INT("logging", "logging_steps", logging.steps, "-1", -1, 1e12, "logging_freq",
            "optimizer steps between lines with step and loss; 0: none; -1: 10, mnist_cnn: 0"),
    KEY_CHOICE(
        "logging", "style", logging.style, "auto",
        CHOICES({"mnist=none", STYLE_NONE}, {"plain", STYLE_PLAIN}, {"adt", STYLE_ADT},
                {"fabric", STYLE_FABRIC}, {"t5-fsdp", STYLE_T5}, {"auto", CONFIG_STYLE_AUTO}),
        NULL,
        "format of the lines of a run; mnist: PyTorch's MNIST example, plain: Shoal's own, adt: AWS's "
        "FSDP sample, fabric: the GPLSI Fabric scripts, t5-fsdp: PyTorch's T5 tutorial; auto: mnist for "
        "mnist_cnn, else plain"),
    KEY_CHOICE("logging", "lang", logging.lang, "en", CHOICES({"en", LANG_EN}, {"ko", LANG_KO}),
               NULL, "language of the lines of style t5-fsdp; all others are English"),
    KEY_CHOICE("logging", "level", logging.level, "info",
               CHOICES({"debug", LOG_DEBUG}, {"info", LOG_INFO}, {"warning", LOG_WARNING},
                       {"error", LOG_ERROR}),
               "log_level", "lowest level that the log on stderr has"),
    KEY_TEXT("logging", "csv", logging.csv, "", NULL,
             "a row per step, evaluation and save to this file"),
    KEY_TEXT("logging", "jsonl", logging.jsonl, "", NULL,
             "an object per step, evaluation and save to this file"),
    KEY_TEXT("logging", "tensorboard_dir", logging.tensorboard_dir, "", "logging_dir",
             "directory for TensorBoard's event files"),
    KEY_CHOICE(
        "logging", "wandb", logging.wandb, "off",
        CHOICES({"off=0=false=no=disabled", 0}, {"offline=1=true=yes=dryrun=online", 1}), NULL,
        "offline: a folder for Weights & Biases, which `wandb sync` uploads from where there "
        "is a network; nothing is sent from here",
        .implied = "offline", .environment = "WANDB_MODE"),
    KEY_TEXT("logging", "wandb_dir", logging.wandb_dir, "", NULL,
             "where its folder wandb is; empty: where the agent runs", .environment = "WANDB_DIR",
             .needs = {NEED_WANDB}),
    KEY_TEXT("logging", "wandb_entity", logging.wandb_entity, "", "entity",
             "account that the run belongs to", .environment = "WANDB_TEAM WANDB_ENTITY",
             .needs = {NEED_WANDB}),
    KEY_TEXT("logging", "wandb_project", logging.wandb_project, "", "project", "project of the run",
             .environment = "WANDB_PROJECT", .needs = {NEED_WANDB}),
    KEY_TEXT("logging", "wandb_run_name", logging.wandb_run_name, "", "run_name",
             "what the run is called there", .environment = "WANDB_RUN_NAME WANDB_NAME",
             .needs = {NEED_WANDB}),
    KEY_TEXT("logging", "wandb_run_id", logging.wandb_run_id, "", NULL,
             "the run's identity; empty: a new one", .environment = "WANDB_RUN_ID",
             .needs = {NEED_WANDB}),
    KEY_TEXT("logging", "wandb_group", logging.wandb_group, "", NULL, "group of runs",
             .environment = "WANDB_RUN_GROUP", .needs = {NEED_WANDB}),
    KEY_TEXT("logging", "wandb_job_type", logging.wandb_job_type, "", NULL, "kind of run",
             .environment = "WANDB_RUN_JOB_TYPE WANDB_JOB_TYPE", .needs = {NEED_WANDB}),
    KEY_TEXT("logging", "wandb_tags", logging.wandb_tags, "", NULL, "separated by commas",
             .environment = "WANDB_RUN_TAGS WANDB_TAGS", .needs = {NEED_WANDB}),
    KEY_TEXT("logging", "wandb_notes", logging.wandb_notes, "", NULL, "a text about the run",
             .environment = "WANDB_RUN_NOTES WANDB_NOTES", .needs = {NEED_WANDB}),
    KEY_CHOICE("logging", "log_model", logging.log_model, "false",
               CHOICES({"false=0=no=off", 0}, {"true=1=yes=on=all=checkpoint=end", 1}), NULL,
               "the record names the checkpoints; none is uploaded", .implied = "true",
               .needs = {NEED_WANDB}),
    KEY_TEXT("logging", "prometheus_addr", logging.http_addr, "", NULL,
             "where /metrics, /status and /healthz listen: an address; empty: all of them, but "
             "127.0.0.1 where all ranks meet on the loopback and this is no pod",
             .needs = {NEED_SERVER}),
    KEY_INT("logging", "prometheus_port", logging.http_port, "9401", 0, 65535, NULL,
            "their port; 0: no server"),
    KEY_BOOL("logging", "gpu_metrics", logging.gpu_metrics, "true", NULL,
             "with device cuda: metrics of the pod's GPUs, on /metrics",
             .needs = {NEED_GPUS, NEED_SERVER}),
    KEY_CHOICE(
        "logging", "metric_names", logging.metric_names, "native",
        CHOICES({"native", GPU_NAMES_NATIVE}, {"dcgm", GPU_NAMES_DCGM}, {"both", GPU_NAMES_BOTH}),
        NULL,
        "their names: ours, those of NVIDIA's DCGM exporter (only where none runs: GPUs "
        "would be counted twice), or both",
        .needs = {NEED_GPU_METRICS}),
    KEY_DURATION("logging", "gpu_interval", logging.gpu_interval_s, "10", 0.1, 1e5, NULL,
                 "seconds between two readings", .needs = {NEED_GPU_METRICS}),

    KEY_BOOL("profiler", "enable", profiler.enable, "false", "enable_profiling",
             "write traces of some steps, for ui.perfetto.dev or chrome://tracing",
             .needs_group = true, .ranks = RANKS_MATCH),
    KEY_TEXT("profiler", "dir", profiler.dir, "profiling", "save_traces_folder",
             "their folder; it may have {step}, a trace's last step, and {rank}",
             .needs_group = true, .needs = {NEED_PROFILER}),
    KEY_TEXT("profiler", "file", profiler.file, "trace.json", NULL,
             "their name; with several ranks or repeat_every, {rank} and {step} distinguish them",
             .needs_group = true, .needs = {NEED_PROFILER}),
    KEY_INT("profiler", "start_step", profiler.start_step, "0", 0, 1e12, NULL,
            "optimizer steps of the run before the first warm-up", .needs_group = true,
            .needs = {NEED_PROFILER}),
    KEY_INT("profiler", "warmup_steps", profiler.warmup_steps, "3", 0, 1e6, NULL,
            "steps that are traced and thrown away: tools are slow at first", .needs_group = true,
            .needs = {NEED_PROFILER}),
    KEY_INT("profiler", "active_steps", profiler.active_steps, "1", 1, 1e6, NULL,
            "steps of a trace, after the warm-up", .needs_group = true, .needs = {NEED_PROFILER}),
    KEY_INT("profiler", "repeat_every", profiler.repeat_every, "0", 0, 1e12, "profile_freq",
            "steps from one trace to the next; 0: there is one", .needs_group = true,
            .needs = {NEED_PROFILER}),
    KEY_TEXT("profiler", "ranks", profiler.ranks, "0", NULL,
             "which ranks write traces: numbers separated by commas, or all", .needs_group = true,
             .needs = {NEED_PROFILER}),
    KEY_BOOL("profiler", "memory", profiler.memory, "true", "profile_memory",
             "traces show the memory in use, by kind, too", .needs_group = true,
             .needs = {NEED_PROFILER}),
    KEY_BOOL("profiler", "gzip", profiler.gzip, "false", NULL,
             "compress them, as a name that ends in .gz does, too", .needs_group = true,
             .needs = {NEED_PROFILER}),

    KEY_INT("runtime", "seed", runtime.seed, "42", 0, 9e15, NULL,
            "initial values, dropout and data order are pure functions of it",
            .ranks = RANKS_MATCH),
    KEY_BOOL("runtime", "same_seed", runtime.same_seed, "false", NULL,
             "dropout draws the same numbers on all ranks", .needs = {NEED_DROPOUT},
             .ranks = RANKS_MATCH),
    KEY_TEXT(
        "runtime", "device", runtime.device, "auto", "backend",
        "where the model runs: cpu; cuda, each rank of a node on a GPU of its own; cuda:N, all on "
        "GPU N; auto: cuda where there are GPUs, else cpu"),
    KEY_BOOL("runtime", "share_gpus", runtime.share_gpus, "false", NULL,
             "more ranks than GPUs on a node: rank r takes GPU r modulo their number",
             .needs = {NEED_GPUS}),
    KEY_TEXT("runtime", "gpu_ids", runtime.gpu_ids, "all", NULL,
             "GPUs that the ranks of a node take: all, or their numbers separated by commas, as "
             "CUDA_VISIBLE_DEVICES",
             .needs = {NEED_GPUS}),
    KEY_BOOL(
        "runtime", "cpu_affinity", runtime.cpu_affinity, "false", "enable_cpu_affinity",
        "each rank of a node stays on the cores of one NUMA node: its GPU's, else the nodes are "
        "dealt out in order",
        .environment = "ACCELERATE_CPU_AFFINITY"),
    KEY_CHOICE(
        "runtime", "collectives", runtime.collectives, "auto",
        CHOICES({"auto", COMM_DEVICE_AUTO}, {"nccl", COMM_DEVICE_NCCL}, {"host", COMM_DEVICE_HOST}),
        NULL,
        "between GPUs: nccl; host: through host memory and sockets; auto: nccl where it is to be "
        "had",
        .needs = {NEED_GPUS}, .ranks = RANKS_MATCH),
    KEY_BOOL("runtime", "concurrent_collectives", runtime.concurrent_collectives, "true", NULL,
             "gradients are reduced beside gathers, over a communicator of their own, where NCCL "
             "(2.26 or newer) allows it",
             .needs = {NEED_GPUS}, .ranks = RANKS_MATCH),
    KEY_BOOL(
        "runtime", "cuda_graphs", runtime.cuda_graphs, "false", NULL,
        "GPUs: hand them the work between two waits as one graph, to the same bits; for models "
        "whose ops are short"),
    KEY_BOOL(
        "runtime", "overlap_optimizer", runtime.overlap_optimizer, "true", NULL,
        "GPUs: the optimizer updates a unit beside the next forward pass, which waits where it uses "
        "the unit; to the same bits. Not with cuda_graphs or cpu_offload",
        .needs = {NEED_GPUS}),
    KEY_BOOL(
        "runtime", "deterministic", runtime.deterministic, "true", "precision.deterministic",
        "equal runs have equal bits; false: on GPUs where cuDNN does attention, its backward adds up "
        "in any order, which is faster and needs less memory; gradients of biases, and GPT-2's GELU, "
        "are made in the epilogues of matrix products. Two runs from the same start may differ in "
        "their last bits then, as may one that is resumed",
        .needs = {NEED_GPUS, NEED_LANGUAGE}, .ranks = RANKS_MATCH),
    KEY_BOOL(
        "runtime", "tune", runtime.tune, "false", NULL,
        "GPUs: the first time a matrix product is met, up to 8 algorithms of cuBLASLt's are timed, "
        "and the fastest is kept. Times vary, and so do the last bits: it needs deterministic=false",
        .needs = {NEED_GPUS, NEED_LANGUAGE}, .ranks = RANKS_MATCH),
    KEY_CHOICE(
        "runtime", "register_buffers", runtime.register_buffers, "false",
        CHOICES({"false=0=no=off=n", REGISTER_NOTHING}, {"true=1=yes=on=y", REGISTER_BUFFERS},
                {"symmetric", REGISTER_SYMMETRIC}),
        NULL,
        "true: memory of gathers and reduces is registered with NCCL (2.19 or newer), which may then "
        "move it without a copy of its own; symmetric: and units smaller than 32 MiB lie in "
        "symmetric windows (2.27 or newer)",
        .implied = "true", .needs = {NEED_GPUS}, .ranks = RANKS_MATCH),
    KEY_INT(
        "runtime", "threads", runtime.threads, "0", 0, 4096, NULL,
        "CPU threads per rank; 0: the cores that affinity and the container's CPU limit allow, divided by the machine's ranks"),
    KEY_TEXT(
        "runtime", "nproc_per_node", runtime.nproc_per_node, "", "devices",
        "processes per pod: a number, cpu (one), auto or gpu (one per GPU); empty: from the environment"),
    KEY_INT(
        "runtime", "num_processes", runtime.num_processes, "0", -1, 1e6, NULL,
        "processes of all pods together, as accelerate counts them; -1: nproc_per_node=auto; 0: "
        "as nproc_per_node says"),
    KEY_TEXT("runtime", "nnodes", runtime.nnodes, "", "num_machines",
             "pods, N or MIN:MAX; empty: from the environment"),
    KEY_INT("runtime", "node_rank", runtime.node_rank, "-1", -1, 1e6, "machine_rank",
            "which pod this is; -1: from the environment"),
    KEY_TEXT("runtime", "master_addr", runtime.master_addr, "", "main_process_ip",
             "where rank 0 is; empty: from the environment"),
    KEY_INT("runtime", "master_port", runtime.master_port, "0", 0, 65535, "main_process_port",
            "0: from the environment"),
    KEY_TEXT(
        "runtime", "rdzv_backend", runtime.rdzv_backend, "", NULL,
        "static or c10d: both meet at rdzv_endpoint, or at master_addr; empty: from the environment"),
    KEY_TEXT("runtime", "rdzv_endpoint", runtime.rdzv_endpoint, "", NULL,
             "HOST or HOST:PORT (0: a free one, for one node); empty: from the environment"),
    KEY_TEXT("runtime", "rdzv_id", runtime.rdzv_id, "", NULL,
             "only processes with the same one meet; empty: from the environment"),
    KEY_BOOL("runtime", "standalone", runtime.standalone, "false", NULL,
             "this pod alone, whatever the environment says, at a port of its own"),
    KEY_INT("runtime", "max_restarts", runtime.max_restarts, "-1", -1, 1e6, NULL,
            "how often a pod's ranks are started again, in its running container, after one "
            "failed; -1: 3 in a PyTorchJob's pod, else 0",
            .environment = "PET_MAX_RESTARTS"),
    KEY_DURATION("runtime", "monitor_interval", runtime.monitor_interval_s, "0.1", 0, 1e6, NULL,
                 "seconds between a failure and the ranks' new start", .needs = {NEED_ROUNDS}),
    KEY_DURATION(
        "runtime", "shrink_after", runtime.shrink_after_s, TEXT_OF(SHRINK_AFTER_S), 0, 1e6, NULL,
        "with nnodes MIN:MAX: seconds to wait for a pod that is gone, before the others go "
        "on without it",
        .environment = ENV_SHRINK_AFTER, .needs = {NEED_ELASTIC}),
    KEY_TEXT("runtime", "log_dir", runtime.log_dir, "", NULL,
             "directory for what redirects and tee keep", .needs = {NEED_LOGS}),
    KEY_TEXT(
        "runtime", "redirects", runtime.redirects, "", NULL,
        "ranks' output that goes to files of log_dir: 1 stdout, 2 stderr, 3 both, or RANK:WHICH,..."),
    KEY_TEXT("runtime", "tee", runtime.tee, "", NULL, "the same, and to the terminal too"),
    KEY_DURATION("runtime", "timeout", runtime.timeout_s, "1800", 0.1, 1e6, "ddp_timeout",
                 "seconds a collective may take", .environment = "NCCL_TIMEOUT"),
    KEY_CHOICE(
        "runtime", "hang_action", runtime.hang_action, "restart",
        CHOICES({"restart", HANG_RESTART}, {"report", HANG_REPORT}, {"none", HANG_IGNORE}), NULL,
        "a rank that makes no progress while the others wait for it: report: the log names it, and it writes its call stacks; restart: where ranks are started again (max_restarts), it is also killed if it hangs on (hang_patience); none: nobody looks for one"),
    KEY_DURATION(
        "runtime", "hang_patience", runtime.hang_patience_s, "0", 0, 1e6, NULL,
        "seconds from the log's word that a rank hangs to its end by hang_action=restart; 0: 1 to 5 min, by its phase",
        .needs = {NEED_HANG_RESTART, NEED_RESTARTS}),
    KEY_BOOL(
        "runtime", "leave_bad_hardware", runtime.leave_bad_hardware, "true", NULL,
        "GPUs, in a pod: when one reports that it must be reset, its machine restarted or support asked, or loses data in its memory, all ranks save and the pod ends with code 144, for another node; false: it is only logged",
        .needs = {NEED_GPUS}),
    KEY_CHOICE("runtime", "debug", runtime.debug, "off",
               CHOICES({"off=info", DEBUG_OFF}, {"detail", DEBUG_DETAIL}), NULL,
               "detail: log each collective between GPUs as it is queued",
               .environment = "TORCH_DISTRIBUTED_DEBUG", .needs = {NEED_GPUS}),
    KEY_CHOICE(
        "runtime", "abort_collectives", runtime.abort_collectives, "true",
        CHOICES({"false=0=no=off", 0}, {"true=1=2=3=yes=on", 1}), NULL,
        "GPUs: a collective that fails or takes too long ends the run; false: it is only logged",
        .environment = "NCCL_ASYNC_ERROR_HANDLING TORCH_NCCL_ASYNC_ERROR_HANDLING",
        .needs = {NEED_GPUS}),
    KEY_BOOL("runtime", "exit_if_stuck", runtime.exit_if_stuck, "true", NULL,
             "GPUs: a process that does not end after such a failure is ended all the same",
             .environment = "TORCH_NCCL_ENABLE_MONITORING", .needs = {NEED_GPUS}),
    KEY_DURATION(
        "runtime", "heartbeat_timeout", runtime.heartbeat_timeout_s, "480", 2, 1e6, NULL,
        "GPUs: seconds after which the launcher kills a process that gives it no sign of life",
        .environment = "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", .needs = {NEED_GPUS}),
    KEY_INT(
        "runtime", "flight_recorder_size", runtime.flight_recorder_size, "2000", 0, 1e6,
        "collective_notes",
        "GPUs: how many of the last collectives the flight recorder keeps, to report them if one takes too long",
        .environment = "TORCH_NCCL_TRACE_BUFFER_SIZE AGENT_RUNTIME_COLLECTIVE_NOTES",
        .needs = {NEED_GPUS}),
    KEY_BOOL("runtime", "dump_on_timeout", runtime.dump_on_timeout, "true", NULL,
             "GPUs: dump the flight recorder if a collective times out",
             .environment = "TORCH_NCCL_DUMP_ON_TIMEOUT", .needs = {NEED_GPUS}),
    KEY_TEXT(
        "runtime", "dump_path", runtime.dump_path, "", NULL,
        "all of them go to this file, with the rank added to its name; empty: the last 10 to the "
        "log only",
        .environment = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", .needs = {NEED_DUMPS}),
    KEY_DURATION("runtime", "join_timeout", runtime.join_timeout_s, "600", 0.1, 1e6, NULL,
                 "seconds to wait for all ranks at the start"),
    KEY_CHOICE("runtime", "nan_policy", runtime.nan_policy, "warn",
               CHOICES({"warn", NAN_WARN}, {"skip", NAN_SKIP}, {"abort", NAN_ABORT}), NULL,
               "a loss or gradient that is no number: train on, leave the step out, or end",
               .ranks = RANKS_MATCH),
    KEY_BOOL(
        "runtime", "strict", runtime.strict, "false", NULL,
        "unknown flags and variables are errors, as is a broken line of data; false: one warning "
        "names them. A flag with one of these groups before it, or nearly a known one, is an error in "
        "any case"),
    KEY_TEXT(
        "runtime", "script", runtime.script, "", NULL,
        "the script that a launcher was given, whose place a preset takes: it is not run; if it is "
        "there, its differences from the preset are warnings",
        .needs_group = true),
    KEY_BOOL(
        "runtime", "dry_run", runtime.dry_run, "false", NULL,
        "print the resolved configuration, the units, the memory and what is missing, then leave"),
};

const struct config_table config_table_run = {keys, sizeof keys / sizeof keys[0], RANKS_DIFFER};
