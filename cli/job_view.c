#include "cli/job_view.h"

#include <string.h>

#include "cli/changes.h"
#include "cli/goodput_table.h"
#include "cli/screen.h"
#include "operator/job/condition.h"
#include "operator/job/names.h"
#include "operator/reconcile/reconcile.h"

enum {
    DRAW_EVERY_MS = 200, /* at most */
    TICK_MS = 1000,      /* without news: its clock moves on */
    TEXT_MAX_BYTES =
        4 * 1024 * 1024, /* a table of 512 replicas whose logs have the longest paths */
};

static const char *state_name(const struct job_status *status)
{
    const struct condition *last = condition_last(status);
    return last ? names_condition(last->type) : "New";
}

/* The text without its last newline: terminal_line adds it. */
static void print(struct job_view *view, const struct str *text)
{
    if (text->length > 0)
        terminal_line(&view->terminal, "%.*s", (int)text->length - 1, str_text(text));
}

void job_view_print_changes(struct job_view *view, const struct job_status *status, bool ending)
{
    const struct optional *limit = &view->job->run_policy.backoff_limit;
    struct changes_job job = {
        .finished = ending || condition_finished(status),
        .failures = status->history.failures,
        .limit = limit->set ? limit->value : -1,
    };
    auto_str struct str lines;
    str_init(&lines, TEXT_MAX_BYTES);
    size_t count;
    const struct local_replica *replicas = local_replicas(view->local, &count);
    for (size_t i = 0; i < count; i++) {
        struct local_replica fresh = {.name = replicas[i].name};
        changes_print(i < view->replica_count ? &view->replicas[i] : &fresh, &replicas[i], &job,
                      view->terminal.live, &lines);
        view->replicas[i] = replicas[i];
    }
    view->replica_count = count;
    changes_print_ranks(view->job->name, view->rank_restarts, status->history.rank_restarts,
                        &lines);
    view->rank_restarts = status->history.rank_restarts;
    const char *state = state_name(status);
    if (!view->terminal.live && view->state && strcmp(state, view->state) != 0)
        str_printf(&lines, "%s: %s -> %s\n", view->job->name, view->state, state);
    view->state = state;
    if (view->reports.progress.url[0] && strcmp(view->reports.progress.url, view->url) != 0) {
        memcpy(view->url, view->reports.progress.url, sizeof view->url);
        str_printf(&lines, "%s: served at %s\n", view->job->name, view->url);
    }
    print(view, &lines);
}

void job_view_take_reports(struct job_view *view)
{
    const struct progress *p = &view->reports.progress;
    if (p->known && p->has_loss)
        series_add(&view->losses, &(struct series_point){.step = p->step, .loss = (float)p->loss});
}

void job_view_draw(struct job_view *view, int64_t now_ms)
{
    if (!view->terminal.live)
        return;
    struct screen screen = {
        .job = view->job->name,
        .state = view->state,
        .started_ms = view->started_ms,
        .replicas = view->replicas,
        .replica_count = view->replica_count,
        .rank_restarts = view->rank_restarts,
        .progress = view->reports.progress,
        .training = &view->reports.training,
        .ranks = &view->reports.ranks,
        .losses = &view->losses,
        .unicode = view->unicode,
    };
    int columns, rows;
    terminal_size(&columns, &rows);
    auto_str struct str text;
    str_init(&text, TEXT_MAX_BYTES);
    screen_render(&screen, columns, rows, now_ms, &text);
    terminal_draw(&view->terminal, str_text(&text));
    view->drawn_ms = now_ms;
}

int64_t job_view_due(const struct job_view *view, bool changed)
{
    if (!view->terminal.live)
        return INT64_MAX;
    return view->drawn_ms + (changed ? DRAW_EVERY_MS : TICK_MS);
}

/* As the table above it tells a short one. */
static void add_run_time(int64_t ms, struct str *out)
{
    char text[TRAINING_TEXT_BYTES];
    if (ms >= GOODPUT_SHORT_MS) {
        screen_duration(ms, out);
        return;
    }
    goodput_time_text(ms > 0 ? ms : 0, text);
    str_add(out, text);
}

void job_view_summarize(struct job_view *view, const struct job_status *status, int64_t now_ms)
{
    auto_str struct str text;
    str_init(&text, TEXT_MAX_BYTES);
    screen_summary(view->replicas, view->replica_count, status->history.rank_restarts, &text);
    bool finished = condition_finished(status);
    struct goodput spent = status->goodput;
    if (!finished) /* no pass takes in the rest */
        goodput_stop(&spent, &status->training, &view->reports.training, view->job->created_ms,
                     now_ms);
    goodput_table(&spent, &text);
    str_printf(&text, "%s %s ", view->job->name, finished ? state_name(status) : "was stopped");
    str_add(&text, finished ? "in " : "after ");
    add_run_time(now_ms - view->started_ms, &text);
    if (condition_is_true(status, CONDITION_FAILED)) {
        const char *message = condition_last(status)->message;
        const char *failure = strstr(message, RECONCILE_LAST_FAILURE); /* its log follows below */
        str_printf(&text, ": %.*s", (int)(failure ? (size_t)(failure - message) : strlen(message)),
                   message);
        screen_last_failure(view->replicas, view->replica_count, &text);
    }
    str_add(&text, "\n");
    print(view, &text);
}
