#include "cli/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/contract.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/open_files.h"
#include "base/signals.h"
#include "base/yaml.h"
#include "cli/job_run.h"
#include "cli/kustomize.h"
#include "cli/launcher_hint.h"
#include "cli/run_options.h"
#include "operator/decode/decode.h"

enum { SOURCES_MAX = 2 * OPTION_LIST_MAX, JOBS_MAX = 256, HELP_MAX_BYTES = 16 * 1024 };

/* All that is to be run, and the manifests that hold it. */
struct work {
    struct manifest *manifests[SOURCES_MAX];
    size_t manifest_count;
    char *sources[SOURCES_MAX]; /* of each manifest: its file, or the command that made it; owned */
    struct entry {
        struct job *job;
        const char *source;
    } jobs[JOBS_MAX]; /* in the order given */
    size_t job_count;
};

/* Takes `source` over. */
static int add_text(struct work *work, const char *text, size_t bytes, char *source,
                    const struct run_options *options, struct error *err)
{
    work->sources[work->manifest_count] = source;
    struct manifest **manifest = &work->manifests[work->manifest_count++];
    if (decode_manifest(text, bytes, source, options->default_backoff_limit, manifest, err) < 0)
        return -1;
    for (size_t i = 0; i < (*manifest)->job_count; i++) {
        if (work->job_count == JOBS_MAX)
            return error_set(err, ERR_INPUT, "%s: more than %d jobs", source, JOBS_MAX);
        work->jobs[work->job_count++] = (struct entry){(*manifest)->jobs[i], source};
    }
    return 0;
}

/* kubectl would fetch it. But kubectl asks a cluster to isolate what the manifest says; here it
 * would run with the user's own rights. */
static int refuse_address(const char *path, const char *how, struct error *err)
{
    if (!str_starts_with(path, "https://") && !str_starts_with(path, "http://"))
        return 0;
    return error_set(err, ERR_INPUT,
                     "%s: not fetched: a manifest's commands run on this machine as you. Fetch it, "
                     "read it, then run it: %s %s",
                     path, how, path);
}

static int read_manifests(struct work *work, const struct run_options *options, struct error *err)
{
    for (int i = 0; i < options->files.count; i++) {
        const char *path = options->files.items[i];
        auto_free char *text = NULL;
        size_t bytes;
        if (refuse_address(path, "curl -fsSLo job.yaml", err) < 0 ||
            file_read(path, YAML_MAX_BYTES, &text, &bytes, err) < 0 ||
            add_text(work, text, bytes, xstrdup(path), options, err) < 0)
            return -1;
    }
    for (int i = 0; i < options->folders.count; i++) {
        const char *folder = options->folders.items[i];
        char *command;
        auto_str struct str text;
        str_init(&text, YAML_MAX_BYTES);
        if (refuse_address(folder, "git clone", err) < 0 ||
            kustomize_build(folder, &text, &command, err) < 0 ||
            add_text(work, str_text(&text), text.length, command, options, err) < 0)
            return -1;
    }
    return 0;
}

/* What a cluster would let wait for someone: here nobody could come. */
static int check_job(const struct work *work, size_t index, struct error *err)
{
    const struct job *job = work->jobs[index].job;
    const char *source = work->jobs[index].source;
    const char *manager = job->run_policy.managed_by;
    if (job->run_policy.suspend)
        return error_set(err, ERR_INPUT,
                         "%s: job %s is suspended: set spec.runPolicy.suspend to false to run it",
                         source, job->name);
    if (manager && strcmp(manager, API_MANAGED_BY) != 0)
        return error_set(err, ERR_INPUT,
                         "%s: job %s is managed by %s: drop spec.runPolicy.managedBy", source,
                         job->name, manager);
    for (size_t i = 0; i < index; i++)
        if (!strcmp(work->jobs[i].job->name, job->name))
            return error_set(err, ERR_INPUT, "%s: job %s is in %s, too: give one another name",
                             source, job->name, work->jobs[i].source);
    return 0;
}

static void print_launcher_hint(const struct job *job)
{
    auto_str struct str note;
    str_init(&note, 4096);
    launcher_hint(job, getenv("PATH"), &note);
    if (note.length)
        fprintf(stderr, "shoal: note: %s\n", str_text(&note));
}

/* One after the other, until one does not succeed. Returns the exit code. */
static int run_jobs(const struct work *work, const struct run_options *options, struct error *err)
{
    for (size_t i = 0; i < work->job_count; i++)
        if (check_job(work, i, err) < 0)
            return -1;
    for (size_t i = 0; i < work->manifest_count; i++)
        for (size_t j = 0; j < work->manifests[i]->notes.count; j++)
            fprintf(stderr, "shoal: note: %s\n", work->manifests[i]->notes.items[j]);
    for (size_t i = 0; i < work->job_count; i++)
        print_launcher_hint(work->jobs[i].job);
    uint64_t number; /* of this start: what it runs is no run of before */
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return error_errno(err, errno, "getrandom");
    struct signals signals;
    int code = signals_open(&signals, err);
    for (size_t i = 0; i < work->job_count && code == 0; i++) {
        auto_free char *uid = xasprintf("%016" PRIx64 "-%zu", number, i);
        work->jobs[i].job->uid = uid;
        work->jobs[i].job->created_ms = clock_now_ms();
        code = job_run(work->jobs[i].job, work->jobs[i].source, options, &signals);
        work->jobs[i].job->uid = "";
    }
    signals_close(&signals);
    return code;
}

/* Everything that is wrong with the last manifest, if that is what is wrong; else the error. */
static void print_problems(const struct work *work, const struct error *err)
{
    const struct manifest *last =
        work->manifest_count > 0 ? work->manifests[work->manifest_count - 1] : NULL;
    size_t count = last ? last->problems.count : 0;
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "shoal: %s\n", last->problems.items[i]);
    if (count == 0)
        fprintf(stderr, "shoal: %s\n", err->msg);
}

static int print_help(void)
{
    auto_str struct str help;
    str_init(&help, HELP_MAX_BYTES);
    run_options_help(&help);
    fputs(str_text(&help), stdout);
    return 0;
}

int run_command(int argc, char *const *argv)
{
    struct run_options options;
    struct error err;
    if (run_options_parse(&options, argc - 1, argv + 1, &err) < 0) {
        fprintf(stderr, "shoal run: %s\n", err.msg);
        return EXIT_BAD_INPUT;
    }
    if (options.help)
        return print_help();
    open_files_raise(); /* each container has a log, a guard and ports */
    struct work work = {.manifest_count = 0};
    int code = read_manifests(&work, &options, &err);
    if (code == 0)
        code = run_jobs(&work, &options, &err);
    if (code < 0) {
        print_problems(&work, &err);
        code = EXIT_BAD_INPUT;
    }
    for (size_t i = 0; i < work.manifest_count; i++) {
        decode_close(work.manifests[i]);
        free(work.sources[i]);
    }
    return code;
}
