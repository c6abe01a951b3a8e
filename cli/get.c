#include "cli/get.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/contract.h"
#include "base/exit_code.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/str.h"
#include "cli/cluster_jobs.h"
#include "cli/job_json.h"
#include "cli/layout.h"
#include "cli/local_runs.h"
#include "cli/story.h"
#include "cli/terminal.h"

enum { TEXT_MAX_BYTES = 64 << 20, HINT_MAX_BYTES = 4096, NO_STOP_FD = -1 };

struct get_options {
    struct option_arguments jobs;
    struct cluster_options cluster;
    bool local, json, help;
};

struct table {
    struct option_row rows[9];
};

static struct table table_of(struct get_options *o)
{
    return (struct table){{
        {"JOB", 0, OPTION_ARGUMENTS, &o->jobs, NULL, "name of a PyTorchJob", 0, 0, NULL},
        CLUSTER_OPTION_ROWS(&o->cluster),
        {"local", 0, OPTION_FLAG, &o->local, NULL,
         "a job of your `shoal run`s on this machine, of no cluster", 0, 0, NULL},
        {"json", 0, OPTION_FLAG, &o->json, NULL, "all of it as one JSON object", 0, 0, NULL},
        {"help", 'h', OPTION_FLAG, &o->help, NULL, "print this help", 0, 0, NULL},
    }};
}

static int print_help(void)
{
    struct get_options none;
    struct table table = table_of(&none);
    auto_str struct str help;
    str_init(&help, TEXT_MAX_BYTES);
    str_add(&help,
            "Usage: shoal get JOB [OPTION...]\n"
            "\n"
            "Tells how a PyTorchJob of a cluster is doing: its state and progress, who waits for\n"
            "what, where its time went, what happened, and what to look at next. As a plugin:\n"
            "`kubectl shoal get JOB`. With --local: a job that a `shoal run` of yours on this\n"
            "machine is at.\n"
            "\n");
    options_help(table.rows, &help);
    str_add(&help, "\nExit code: 0 told, 1 no answer, 2 bad input or no such job.\n");
    fputs(str_text(&help), stdout);
    return EXIT_DONE;
}

/* That one may not read is no reason to say nothing at all. */
static int read_parts(struct cluster *cluster, struct story *story, struct arena *arena,
                      struct error *err)
{
    struct pod_list pods = {0};
    struct event_list events = {0};
    if (cluster_pods(cluster, story->job, arena, &pods, err) < 0) {
        if (err->code != ERR_FORBIDDEN)
            return -1;
        story->pods_missing = arena_printf(arena, "Its pods are not shown: %s", err->msg);
    }
    if (cluster_events(cluster, story->job, arena, &events, err) < 0) {
        if (err->code != ERR_FORBIDDEN)
            return -1;
        story->events_missing = arena_printf(arena, "Its events are not shown: %s", err->msg);
    }
    story->pods = pods.items;
    story->pod_count = pods.count;
    story->events = events.items;
    story->event_count = events.count;
    return 0;
}

static void print_story(const struct story *story)
{
    auto_str struct str text;
    str_init(&text, TEXT_MAX_BYTES);
    int columns, rows;
    if (!terminal_window(STDOUT_FILENO, &columns, &rows))
        columns = LAYOUT_UNLIMITED;
    story_render(story, columns, clock_now_ms(), &text);
    fputs(str_text(&text), stdout);
}

static int get_cluster(struct cluster *cluster, const struct get_options *o, struct arena *arena,
                       struct job_facts *job, struct story *story, struct error *err)
{
    *story = (struct story){.job = job};
    if (cluster_job(cluster, o->jobs.items[0], arena, job, err) < 0)
        return -1;
    return read_parts(cluster, story, arena, err);
}

static int get_local(const struct get_options *o, struct arena *arena, struct job_facts *job,
                     struct story *story, struct error *err)
{
    const struct local_runs_query query = {o->jobs.items[0], o->cluster.namespace_};
    size_t count;
    if (local_runs_story(&query, arena, job, story, &count, err) < 0)
        return -1;
    if (count > 1)
        fprintf(stderr,
                "shoal get: note: %zu runs are at a job %s: this is the one that began last%s\n",
                count, query.name, query.namespace_ ? "" : "; -n names a namespace");
    return 0;
}

/* cluster NULL: of this machine. */
static int get(struct cluster *cluster, const struct get_options *o, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct job_facts job;
    struct story story;
    int result = cluster ? get_cluster(cluster, o, arena, &job, &story, err)
                         : get_local(o, arena, &job, &story, err);
    if (result < 0)
        return -1;
    if (!o->json) {
        print_story(&story);
        return 0;
    }
    auto_free char *text = job_json_story(&story);
    puts(text);
    return 0;
}

static int check(const struct get_options *o, struct error *err)
{
    if (o->jobs.count != 1)
        return error_set(err, ERR_CONFIG, "%s: name one job; `shoal top%s` lists all",
                         o->jobs.count ? "several jobs" : "no job", o->local ? " --local" : "");
    const char *name = o->jobs.items[0];
    if (!*name)
        return error_set(err, ERR_CONFIG, "the job's name must not be empty");
    if (strchr(name, '/')) { /* as some tools write a kind or a namespace before it */
        const char *alone = str_after_last(name, '/');
        return error_set(err, ERR_CONFIG, "%s: name the job alone%s%s%s", name,
                         *alone ? ", as " : "", alone, o->local ? "" : "; -n names its namespace");
    }
    if (o->local && (o->cluster.context || o->cluster.kubeconfig))
        return error_set(err, ERR_CONFIG,
                         "--local is of no cluster: drop --context and --kubeconfig");
    return cluster_options_check(&o->cluster, err);
}

int get_command(int argc, char *const *argv)
{
    struct get_options options = {0};
    struct table table = table_of(&options);
    struct cluster *cluster = NULL;
    struct error err;
    int result = options_parse(table.rows, argc - 1, argv + 1, &err);
    if (result == 0 && options.help) {
        free(options.jobs.items);
        return print_help();
    }
    if (result == 0)
        result = check(&options, &err);
    bool is_asked = result == 0;
    if (result == 0 && !options.local)
        result = cluster_open(&cluster, &options.cluster, NO_STOP_FD, &err);
    if (result == 0)
        result = get(cluster, &options, &err);
    int code = EXIT_DONE;
    if (result < 0)
        code = is_asked && !options.local ? cluster_failed("shoal get", cluster, &err)
                                          : exit_failed("shoal get", &err);
    cluster_close(cluster);
    free(options.jobs.items);
    return code;
}
