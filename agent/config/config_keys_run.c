/* Keys of where it runs and what it says. */
#include "agent/config/config_keys.h"

static const struct config_key keys[] = {
    KEY_INT("logging", "logging_steps", logging.steps, "-1", -1, 1e12, "logging_freq",
            "optimizer steps between lines with step and loss; 0: none; -1: 10, mnist_cnn: 0"),
    KEY_CHOICE("logging", "style", logging.style, "auto",
               "mnist=none plain adt fabric t5-fsdp auto", NULL,
               "whose lines are printed; auto: mnist for mnist_cnn, else plain"),
    KEY_CHOICE("logging", "lang", logging.lang, "en", "en ko", NULL,
               "language of the lines of style t5-fsdp; all others are English"),
    KEY_CHOICE("logging", "level", logging.level, "info", "debug info warning error", "log_level",
               "least of what the log on stderr tells"),
    KEY_TEXT("logging", "csv", logging.csv, "", NULL,
             "a row per step, evaluation and save to this file"),
    KEY_TEXT("logging", "jsonl", logging.jsonl, "", NULL,
             "an object per step, evaluation and save to this file"),
    KEY_TEXT("logging", "tensorboard_dir", logging.tensorboard_dir, "", "logging_dir",
             "directory for TensorBoard's event files"),
    KEY_TEXT("logging", "prometheus_addr", logging.http_addr, "0.0.0.0", NULL,
             "where rank 0's /metrics, /status and /healthz listen"),
    KEY_INT("logging", "prometheus_port", logging.http_port, "9401", 0, 65535, NULL,
            "their port; 0: no server"),
    KEY_BOOL("logging", "gpu_metrics", logging.gpu_metrics, "true", NULL,
             "with device cuda: what the pod's GPUs tell of themselves, on /metrics"),
    KEY_CHOICE("logging", "metric_names", logging.metric_names, "native", "native dcgm both", NULL,
               "their names: ours, those of NVIDIA's DCGM exporter (only where none runs: GPUs "
               "would be counted twice), or both"),
    KEY_DURATION("logging", "gpu_interval", logging.gpu_interval_s, "10", 0.1, 1e5, NULL,
                 "seconds between two readings"),

    KEY_INT("runtime", "seed", runtime.seed, "42", 0, 9e15, NULL,
            "initial values, dropout and data order are pure functions of it"),
    KEY_BOOL("runtime", "same_seed", runtime.same_seed, "false", NULL,
             "dropout draws the same numbers on all ranks"),
    KEY_TEXT(
        "runtime", "device", runtime.device, "auto", "backend",
        "where the model runs: cpu; cuda, each rank of a node on a GPU of its own; cuda:N, all on "
        "GPU N; auto: cuda where there are GPUs, else cpu"),
    KEY_BOOL("runtime", "share_gpus", runtime.share_gpus, "false", NULL,
             "more ranks than GPUs on a node: rank r takes GPU r modulo their number"),
    KEY_CHOICE(
        "runtime", "collectives", runtime.collectives, "auto", "auto nccl host", NULL,
        "between GPUs: nccl; host: through host memory and sockets; auto: nccl where it is to be "
        "had"),
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
             "HOST or HOST:PORT; empty: from the environment"),
    KEY_TEXT("runtime", "rdzv_id", runtime.rdzv_id, "", NULL,
             "only processes with the same one meet; empty: from the environment"),
    KEY_BOOL("runtime", "standalone", runtime.standalone, "false", NULL,
             "this pod alone, whatever the environment says, at a port of its own"),
    KEY_INT("runtime", "max_restarts", runtime.max_restarts, "0", 0, 1e6, NULL,
            "how often a pod's ranks are started again after one failed"),
    KEY_DURATION("runtime", "monitor_interval", runtime.monitor_interval_s, "0.1", 0, 1e6, NULL,
                 "seconds between a failure and the ranks' new start"),
    KEY_TEXT("runtime", "log_dir", runtime.log_dir, "", NULL,
             "directory for what redirects and tee keep"),
    KEY_TEXT(
        "runtime", "redirects", runtime.redirects, "", NULL,
        "ranks' output that goes to files of log_dir: 1 stdout, 2 stderr, 3 both, or RANK:WHICH,..."),
    KEY_TEXT("runtime", "tee", runtime.tee, "", NULL, "the same, and to the terminal too"),
    KEY_DURATION("runtime", "timeout", runtime.timeout_s, "1800", 0.1, 1e6, NULL,
                 "seconds a collective may take", .environment = "NCCL_TIMEOUT"),
    KEY_CHOICE("runtime", "debug", runtime.debug, "off", "off info detail", NULL,
               "detail: log each collective between GPUs as it is queued",
               .environment = "TORCH_DISTRIBUTED_DEBUG"),
    KEY_CHOICE(
        "runtime", "abort_collectives", runtime.abort_collectives, "true",
        "false=0=no=off true=1=2=3=yes=on", NULL,
        "GPUs: a collective that fails or takes too long ends the run; false: it is told only",
        .environment = "NCCL_ASYNC_ERROR_HANDLING TORCH_NCCL_ASYNC_ERROR_HANDLING"),
    KEY_BOOL("runtime", "exit_if_stuck", runtime.exit_if_stuck, "true", NULL,
             "GPUs: a process that does not end after such a failure is ended all the same",
             .environment = "TORCH_NCCL_ENABLE_MONITORING"),
    KEY_INT(
        "runtime", "collective_notes", runtime.collective_notes, "2000", 0, 1e6, NULL,
        "GPUs: how many of the last collectives are remembered, to be told if one takes too long",
        .environment = "TORCH_NCCL_TRACE_BUFFER_SIZE"),
    KEY_BOOL("runtime", "dump_on_timeout", runtime.dump_on_timeout, "true", NULL,
             "GPUs: tell the last collectives if one takes too long",
             .environment = "TORCH_NCCL_DUMP_ON_TIMEOUT"),
    KEY_TEXT(
        "runtime", "dump_path", runtime.dump_path, "", NULL,
        "all of them go to this file, with the rank added to its name; empty: the last 10 to the "
        "log only",
        .environment = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"),
    KEY_DURATION("runtime", "join_timeout", runtime.join_timeout_s, "600", 0.1, 1e6, NULL,
                 "seconds to wait for all ranks at the start"),
    KEY_CHOICE("runtime", "nan_policy", runtime.nan_policy, "warn", "warn skip abort", NULL,
               "a loss or gradient that is no number: train on, leave the step out, or end"),
    KEY_BOOL(
        "runtime", "strict", runtime.strict, "false", NULL,
        "unknown flags are errors, as is a broken line of data; false: one warning names them"),
    KEY_BOOL("runtime", "dry_run", runtime.dry_run, "false", NULL,
             "print the resolved configuration and the units, then leave"),
};

const struct config_table config_table_run = {keys, sizeof keys / sizeof keys[0]};
