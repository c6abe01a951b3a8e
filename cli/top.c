#include "cli/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/contract.h"
#include "base/exit_code.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/signals.h"
#include "cli/cluster_jobs.h"
#include "cli/job_json.h"
#include "cli/layout.h"
#include "cli/local_runs.h"
#include "cli/terminal.h"
#include "cli/top_live.h"

enum { TEXT_MAX_BYTES = 64 << 20, INTERVAL_S = 2, INTERVAL_MAX_S = 3600 };

struct top_options {
    struct cluster_options cluster;
    bool all_namespaces, local;
    const char *selector, *filter;
    int sort; /* enum job_sort */
    bool reverse, once, json, help;
    int64_t interval_s;
};

struct table {
    struct option_row rows[14];
};

static struct table table_of(struct top_options *o)
{
    return (struct table){{
        CLUSTER_OPTION_ROWS(&o->cluster),
        {"all-namespaces", 'A', OPTION_FLAG, &o->all_namespaces, NULL,
         "those of all namespaces, or none", 0, 0, NULL},
        {"local", 0, OPTION_FLAG, &o->local, NULL,
         "the jobs of your `shoal run`s on this machine, of no cluster", 0, 0, NULL},
        {"selector", 'l', OPTION_TEXT, &o->selector, "LABELS",
         "only jobs with these labels, as of kubectl: team=a,tier!=b", 0, 0, NULL},
        {"filter", 0, OPTION_TEXT, &o->filter, "TEXT",
         "only jobs with the text in name, namespace or state", 0, 0, NULL},
        {"sort", 0, OPTION_CHOICE, &o->sort, "KEY",
         "name, age, step, eta, goodput, gpus or restarts (name)", 0, 0, job_sort_names},
        {"reverse", 'r', OPTION_FLAG, &o->reverse, NULL, "the other way round", 0, 0, NULL},
        {"interval", 0, OPTION_NUMBER, &o->interval_s, "SECONDS", "between two looks (2)", 1,
         INTERVAL_MAX_S, NULL},
        {"once", 0, OPTION_FLAG, &o->once, NULL, "print them once, also on a terminal", 0, 0, NULL},
        {"json", 0, OPTION_FLAG, &o->json, NULL, "print them once, as one JSON object", 0, 0, NULL},
        {"help", 'h', OPTION_FLAG, &o->help, NULL, "print this help", 0, 0, NULL},
    }};
}

static int print_help(void)
{
    struct top_options none;
    struct table table = table_of(&none);
    auto_str struct str help;
    str_init(&help, TEXT_MAX_BYTES);
    str_add(
        &help,
        "Usage: shoal top [OPTION...]\n"
        "\n"
        "Shows the PyTorchJobs of a cluster: state, progress, speed, time left, GPUs, goodput\n"
        "and restarts. On a terminal it looks again and again, until q is pressed; s takes the\n"
        "next order and r reverses it. Elsewhere it prints the table once. Without -n and -A\n"
        "it shows all namespaces, or the context's where you may not. As a plugin:\n"
        "`kubectl shoal top`. With --local: the jobs of your `shoal run`s on this machine.\n"
        "\n");
    options_help(table.rows, &help);
    str_add(&help, "\nExit code: 0 shown, 1 no answer, 2 bad input or no right to read.\n");
    fputs(str_text(&help), stdout);
    return EXIT_DONE;
}

struct top {
    const struct top_options *options;
    struct cluster *cluster; /* NULL: of this machine */
    int stop_fd;             /* -1: none */
    bool is_narrowed;        /* all namespaces are not for us: only the context's */
};

/* As of struct top_source. */
static int read_jobs(void *context, struct arena *arena, struct job_table *table, struct error *err)
{
    struct top *top = context;
    const struct top_options *o = top->options;
    bool is_all = !o->cluster.namespace_ && !top->is_narrowed;
    struct job_list jobs;
    int result = cluster_jobs(top->cluster, is_all ? NULL : cluster_namespace(top->cluster),
                              o->selector, arena, &jobs, err);
    if (result < 0 && is_all && !o->all_namespaces && cluster_is_forbidden(top->cluster, err)) {
        top->is_narrowed = true;
        return read_jobs(context, arena, table, err);
    }
    if (result < 0)
        return -1;
    table->jobs = jobs.items;
    table->count = jobs.count;
    table->with_namespace = is_all;
    return 0;
}

static int read_local(void *context, struct arena *arena, struct job_table *table,
                      struct error *err)
{
    const struct top *top = context;
    struct job_list jobs;
    if (local_runs_jobs(top->stop_fd, arena, &jobs, err) < 0)
        return -1;
    table->jobs = jobs.items;
    table->count = jobs.count;
    table->with_namespace = true; /* two may hold the same name */
    return 0;
}

static struct top_source source_of(struct top *top)
{
    if (!top->cluster)
        return (struct top_source){.name = "this machine", .read = read_local, .context = top};
    return (struct top_source){
        .name = cluster_server(top->cluster), .read = read_jobs, .context = top};
}

static void print_table(const struct job_facts *const *jobs, size_t count, bool with_namespace)
{
    int columns, rows;
    auto_str struct str text;
    str_init(&text, TEXT_MAX_BYTES);
    if (!terminal_window(STDOUT_FILENO, &columns, &rows))
        columns = LAYOUT_UNLIMITED;
    job_table_render(jobs, count, with_namespace, columns, clock_now_ms(), &text);
    fputs(str_text(&text), stdout);
}

static int print_once(struct top *top, struct job_table table, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    const struct top_source source = source_of(top);
    if (source.read(top, arena, &table, err) < 0)
        return -1;
    const struct job_facts **jobs = arena_array(arena, const struct job_facts *, table.count + 1);
    size_t count = job_table_select(&table, jobs);
    if (top->options->json) {
        auto_free char *text = job_json_list(jobs, count);
        puts(text);
        return 0;
    }
    if (top->is_narrowed)
        fprintf(stderr, "shoal top: note: only namespace %s: you may not read all\n",
                cluster_namespace(top->cluster));
    if (count == 0 && !top->cluster)
        fputs("shoal top: no such jobs on this machine\n", stderr);
    else if (count == 0)
        fprintf(stderr, "shoal top: no such jobs in %s\n",
                table.with_namespace ? "any namespace" : cluster_namespace(top->cluster));
    else
        print_table(jobs, count, table.with_namespace);
    return 0;
}

static bool is_live(const struct top_options *o)
{
    const char *type = getenv("TERM");
    return !o->once && !o->json && isatty(STDOUT_FILENO) && type && *type && strcmp(type, "dumb");
}

static int top_run(struct top *top, struct error *err)
{
    const struct top_options *o = top->options;
    const struct job_table table = {.sort = o->sort, .reverse = o->reverse, .filter = o->filter};
    const struct top_source source = source_of(top);
    if (top->stop_fd < 0)
        return print_once(top, table, err);
    return top_live_run(&source, table, o->interval_s * 1000, top->stop_fd, err);
}

static int check(const struct top_options *o, struct error *err)
{
    if (o->all_namespaces && o->cluster.namespace_)
        return error_set(err, ERR_CONFIG, "-A and -n %s: give one of them", o->cluster.namespace_);
    const struct cluster_options *c = &o->cluster;
    if (o->local &&
        (o->all_namespaces || o->selector || c->namespace_ || c->context || c->kubeconfig))
        return error_set(err, ERR_CONFIG,
                         "--local is of no cluster: drop -A, -n, -l, --context and --kubeconfig");
    if ((o->selector && !*o->selector) || (o->filter && !*o->filter))
        return error_set(err, ERR_CONFIG, "--selector and --filter: must not be empty");
    return cluster_options_check(&o->cluster, err);
}

static int failed(const struct top *top, const struct error *err)
{
    if (top->options->local)
        return exit_failed("shoal top", err);
    return cluster_failed("shoal top", top->cluster, err);
}

static int run(const struct top_options *o)
{
    struct top top = {.options = o};
    struct signals signals = {-1, -1};
    struct error err;
    int result = is_live(o) ? signals_open(&signals, &err) : 0;
    top.stop_fd = signals.stop_fd;
    if (result == 0 && !o->local)
        result = cluster_open(&top.cluster, &o->cluster, top.stop_fd, &err);
    if (result == 0)
        result = top_run(&top, &err);
    int code = result < 0 ? failed(&top, &err) : EXIT_DONE;
    int signal = top.stop_fd >= 0 ? signals_take(top.stop_fd) : 0;
    cluster_close(top.cluster);
    signals_close(&signals);
    return signal ? 128 + signal : code;
}

int top_command(int argc, char *const *argv)
{
    struct top_options options = {.interval_s = INTERVAL_S};
    struct table table = table_of(&options);
    struct error err;
    if (options_parse(table.rows, argc - 1, argv + 1, &err) < 0)
        return exit_failed("shoal top", &err);
    if (options.help)
        return print_help();
    if (check(&options, &err) < 0)
        return exit_failed("shoal top", &err);
    return run(&options);
}
