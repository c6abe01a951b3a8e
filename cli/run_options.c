#include "cli/run_options.h"

enum { ROWS_MAX = 16 };

static const char *const progress_choices[] = {"auto", "always", "never", NULL};

struct table {
    struct option_row rows[ROWS_MAX];
};

static struct table table_of(struct run_options *o)
{
    return (struct table){{
        {"file", 'f', OPTION_LIST, &o->files, "FILE", "manifest to run, - for stdin; repeatable", 0,
         0, NULL},
        {"kustomize", 'k', OPTION_LIST, &o->folders, "DIR",
         "kustomization to build and run (needs kubectl or kustomize)", 0, 0, NULL},
        {"log-dir", 0, OPTION_TEXT, &o->log_dir, "DIR",
         "one log per replica goes to DIR/JOB/POD.log (shoal-logs)", 0, 0, NULL},
        {"progress", 0, OPTION_CHOICE, &o->progress, "WHEN",
         "live view: auto (on a terminal), always, never", 0, 0, progress_choices},
        {"default-backoff-limit", 0, OPTION_NUMBER, &o->default_backoff_limit, "N",
         "backoffLimit of jobs without one; -1: no limit (6)", -1, INT32_MAX, NULL},
        {"restart-delay", 0, OPTION_NUMBER, &o->restart_delay_s, "SECONDS",
         "wait before a second restart; doubles each time (1)", 0, 3600, NULL},
        {"restart-delay-max", 0, OPTION_NUMBER, &o->restart_delay_max_s, "SECONDS",
         "longest wait before a restart (30)", 0, 3600, NULL},
        {"keep-ports", 0, OPTION_FLAG, &o->keep_ports, NULL,
         "use the manifest's ports instead of free ones", 0, 0, NULL},
        {"help", 'h', OPTION_FLAG, &o->help, NULL, "print this help", 0, 0, NULL},
    }};
}

int run_options_parse(struct run_options *options, int argc, char *const *argv, struct error *err)
{
    *options = (struct run_options){
        .log_dir = "shoal-logs",
        .default_backoff_limit = 6,
        .restart_delay_s = 1,
        .restart_delay_max_s = 30,
    };
    struct table table = table_of(options);
    if (options_parse(table.rows, argc, argv, err) < 0)
        return -1;
    if (!*options->log_dir)
        return error_set(err, ERR_CONFIG, "--log-dir: must name a folder; . is this one");
    if (!options->help && options->files.count + options->folders.count == 0)
        return error_set(err, ERR_CONFIG, "nothing to run: give -f FILE or -k DIR");
    return 0;
}

void run_options_help(struct str *out)
{
    struct run_options none;
    struct table table = table_of(&none);
    str_add(
        out,
        "Usage: shoal run -f FILE | -k DIR [OPTION...]\n"
        "\n"
        "Runs kubeflow.org/v1 PyTorchJobs on this machine, one after the other: each container\n"
        "of a pod becomes a process, and the rules that the cluster's controller applies\n"
        "restart it, count its failures and end the job. Services become 127.0.0.1 with a free\n"
        "port; MASTER_ADDR, MASTER_PORT and the like are set to match. The master's output\n"
        "also goes to stdout, byte for byte.\n"
        "\n");
    options_help(table.rows, out);
    str_add(
        out,
        "\n"
        "Ctrl-C ends all processes within their terminationGracePeriodSeconds; a second\n"
        "one at once. Exit code: 0 Succeeded, 1 Failed, 2 bad input, 129, 130 or 143 stopped\n"
        "(SIGHUP, Ctrl-C, SIGTERM). The containers' own codes are in the table at the end; 144\n"
        "there: the hardware of this machine is bad.\n");
}
