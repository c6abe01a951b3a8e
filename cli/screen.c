#include "cli/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LINE_MAX_BYTES = 512,
    BAR_MAX = 60,
    FIXED_ROWS = 3, /* job, progress, bar */
};

void screen_duration(int64_t ms, struct str *out)
{
    int64_t s = ms < 0 ? 0 : ms / 1000;
    if (s >= 3600)
        str_printf(out, "%" PRId64 "h%02d", s / 3600, (int)(s / 60 % 60));
    else if (s >= 60)
        str_printf(out, "%d", (int)(s / 60));
    if (s >= 60)
        str_printf(out, "m%02d", (int)(s % 60));
    else
        str_printf(out, "%d", (int)s);
    str_add(out, "s");
}

/* Adds a line, cut to what fits. */
static void add_line(struct str *out, const char *line, int columns)
{
    /* In the last column a terminal may wrap: the view would then take more rows than terminal.c
     * counts. */
    str_add_bytes(out, line, strnlen(line, columns > 1 ? (size_t)columns - 1 : 0));
    str_add(out, "\n");
}

static void add_replica(struct str *line, const struct local_replica *replica, int name_width)
{
    str_printf(line, "  %-*s  %s", name_width, replica->name, local_state_name(replica->state));
    if (replica->state == LOCAL_RESTARTING)
        str_printf(line, " %" PRId32, replica->restarts + 1);
    if (replica->state == LOCAL_FAILED || replica->state == LOCAL_RESTARTING)
        str_printf(line, " (exit code %" PRId32 ")", replica->failure_code);
    else if (replica->restarts > 0)
        str_printf(line, " (restarts: %" PRId32 ")", replica->restarts);
}

static void add_replicas(const struct screen *screen, int columns, struct str *out)
{
    int width = 0;
    for (size_t i = 0; i < screen->replica_count; i++) {
        int length = (int)strlen(screen->replicas[i].name);
        width = length > width ? length : width;
    }
    for (size_t i = 0; i < screen->replica_count; i++) {
        auto_str struct str line;
        str_init(&line, LINE_MAX_BYTES);
        add_replica(&line, &screen->replicas[i], width);
        add_line(out, str_text(&line), columns);
    }
}

static void add_counts(const struct screen *screen, int columns, struct str *out)
{
    size_t counts[LOCAL_FAILED + 1] = {0};
    for (size_t i = 0; i < screen->replica_count; i++)
        counts[screen->replicas[i].state]++;
    auto_str struct str line;
    str_init(&line, LINE_MAX_BYTES);
    str_printf(&line, "  %zu replicas:", screen->replica_count);
    for (int state = 0; state <= LOCAL_FAILED; state++)
        if (counts[state] > 0)
            str_printf(&line, " %zu %s", counts[state], local_state_name(state));
    add_line(out, str_text(&line), columns);
}

static void add_progress(const struct progress *p, int columns, struct str *out)
{
    auto_str struct str line;
    str_init(&line, LINE_MAX_BYTES);
    if (p->epoch >= 0)
        str_printf(&line, "  epoch %" PRId64, p->epoch);
    if (p->epoch >= 0 && p->epochs > 0)
        str_printf(&line, "/%" PRId64, p->epochs);
    if (p->step >= 0)
        str_printf(&line, "  step %" PRId64, p->step);
    if (p->step >= 0 && p->steps > 0)
        str_printf(&line, "/%" PRId64, p->steps);
    if (p->has_loss)
        str_printf(&line, "  loss %.4f", p->loss);
    if (p->samples_per_s >= 0)
        str_printf(&line, "  %.0f samples/s", p->samples_per_s);
    if (p->seconds_left >= 0) {
        str_add(&line, "  ");
        screen_duration((int64_t)(p->seconds_left * 1000), &line);
        str_add(&line, " left");
    }
    add_line(out, str_text(&line), columns);
}

static void add_bar(int64_t step, int64_t steps, int columns, struct str *out)
{
    int width = columns - 11; /* "  [", "] 100%", and the last column */
    width = width > BAR_MAX ? BAR_MAX : width;
    if (width < 4)
        return;
    if (step > steps)
        step = steps;
    int done = (int)((double)step / (double)steps * width);
    char bar[BAR_MAX + 1] = "";
    memset(bar, '-', (size_t)width);
    memset(bar, '#', (size_t)done);
    str_printf(out, "  [%.*s] %3d%%\n", width, bar, (int)((double)step / (double)steps * 100));
}

void screen_render(const struct screen *screen, int columns, int rows, int64_t now_ms,
                   struct str *out)
{
    auto_str struct str head;
    str_init(&head, LINE_MAX_BYTES);
    str_printf(&head, "%s  %s  ", screen->job, screen->state);
    screen_duration(now_ms - screen->started_ms, &head);
    add_line(out, str_text(&head), columns);
    if ((int64_t)screen->replica_count + FIXED_ROWS < rows)
        add_replicas(screen, columns, out);
    else
        add_counts(screen, columns, out);
    const struct progress *p = &screen->progress;
    if (!p->known)
        return;
    add_progress(p, columns, out);
    if (p->steps > 0 && p->step >= 0)
        add_bar(p->step, p->steps, columns, out);
}

void screen_summary(const struct local_replica *replicas, size_t count, struct str *out)
{
    int width = (int)strlen("REPLICA");
    for (size_t i = 0; i < count; i++) {
        int length = (int)strlen(replicas[i].name);
        width = length > width ? length : width;
    }
    str_printf(out, "%-*s  %-10s  %8s  %9s  %s\n", width, "REPLICA", "STATE", "RESTARTS",
               "EXIT CODE", "LOG");
    for (size_t i = 0; i < count; i++) {
        const struct local_replica *replica = &replicas[i];
        char code[16] = "-";
        if (replica->exit_code >= 0)
            snprintf(code, sizeof code, "%" PRId32, replica->exit_code);
        str_printf(out, "%-*s  %-10s  %8" PRId32 "  %9s  %s\n", width, replica->name,
                   local_state_name(replica->state), replica->restarts, code,
                   replica->log_path ? replica->log_path : "-");
    }
}

void screen_last_failure(const struct local_replica *replicas, size_t count, struct str *out)
{
    const struct local_replica *last = NULL;
    for (size_t i = 0; i < count; i++)
        if (replicas[i].failures > 0 && (!last || replicas[i].failed_ms > last->failed_ms))
            last = &replicas[i];
    if (last)
        str_printf(out, "; last failure: %s with exit code %" PRId32 ", see %s", last->name,
                   last->failure_code, last->log_path);
}
