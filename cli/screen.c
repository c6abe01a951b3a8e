#include "cli/screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/layout.h"

#define RANKS_NAME "ranks in place" /* beside the names of replicas, which have no blanks */

enum {
    LINE_MAX_BYTES = 512,
    FIXED_ROWS = 4, /* job, progress, bar, curve */
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
    str_add_bytes(out, line, strnlen(line, (size_t)layout_room(columns)));
    str_add(out, "\n");
}

/* Adds a piece to a line that has room for all of it: "step 10" is never cut to "step 1". */
__attribute__((format(printf, 3, 4))) static void add_piece(struct str *line, int columns,
                                                            const char *format, ...)
{
    char piece[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (line->length + strlen(piece) <= (size_t)layout_room(columns))
        str_add(line, piece);
}

/* is_short: without the job's name before it. */
static const char *replica_name(const struct screen *screen, size_t i, bool is_short)
{
    const char *name = screen->replicas[i].name;
    size_t job = strlen(screen->job);
    bool has_job = strncmp(name, screen->job, job) == 0 && name[job] == '-';
    return is_short && has_job ? name + job + 1 : name;
}

static int widest_name(const struct screen *screen, bool is_short)
{
    int width = 0;
    for (size_t i = 0; i < screen->replica_count; i++) {
        int length = (int)strlen(replica_name(screen, i, is_short));
        width = length > width ? length : width;
    }
    return width;
}

static int widest_state(const struct screen *screen)
{
    int width = 0;
    for (size_t i = 0; i < screen->replica_count; i++) {
        int length = (int)strlen(local_state_name(screen->replicas[i].state));
        width = length > width ? length : width;
    }
    return width;
}

static void add_replica(struct str *line, const struct local_replica *replica, int columns)
{
    if (replica->state == LOCAL_RESTARTING)
        add_piece(line, columns, " %" PRId32, replica->restarts + 1);
    if (replica->state == LOCAL_FAILED || replica->state == LOCAL_RESTARTING)
        add_piece(line, columns, " (exit code %" PRId32 ")", replica->failure_code);
    else if (replica->restarts > 0)
        add_piece(line, columns, " (restarts: %" PRId32 ")", replica->restarts);
}

/* Where there is little room the names give way, and then what stands behind the states. */
static void add_replicas(const struct screen *screen, int columns, struct str *out)
{
    int blanks = (int)strlen("    "), left = layout_room(columns) - blanks - widest_state(screen);
    bool is_short = widest_name(screen, false) > left;
    int width = widest_name(screen, is_short);
    if (width > left)
        width = left > 0 ? left : 0;
    for (size_t i = 0; i < screen->replica_count; i++) {
        auto_str struct str line;
        str_init(&line, LINE_MAX_BYTES);
        str_printf(&line, "  %-*s  %s", width,
                   layout_end_of_name(replica_name(screen, i, is_short), width),
                   local_state_name(screen->replicas[i].state));
        add_replica(&line, &screen->replicas[i], columns);
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
    add_piece(&line, columns, "  %zu replicas:", screen->replica_count);
    for (int state = 0; state <= LOCAL_FAILED; state++)
        if (counts[state] > 0)
            add_piece(&line, columns, " %zu %s", counts[state], local_state_name(state));
    add_line(out, str_text(&line), columns);
}

/* An agent tells operators which of both its model counts, from its first steps on; until then
 * nothing is said, and no number of the process before it. What sends progress alone is no
 * agent. */
static void add_speed(const struct progress *progress, const struct training *t, int columns,
                      struct str *line)
{
    if (t->known && !isnan(t->tokens_per_s))
        add_piece(line, columns, "  %.0f tokens/s", t->tokens_per_s);
    else if (t->known && !isnan(t->samples_per_s))
        add_piece(line, columns, "  %.0f samples/s", t->samples_per_s);
    else if (!t->known && progress->samples_per_s > 0)
        add_piece(line, columns, "  %.0f samples/s", progress->samples_per_s);
}

static void add_progress(const struct screen *screen, int columns, struct str *out)
{
    const struct progress *p = &screen->progress;
    auto_str struct str line;
    str_init(&line, LINE_MAX_BYTES);
    if (p->epoch >= 0 && p->epochs > 0)
        add_piece(&line, columns, "  epoch %" PRId64 "/%" PRId64, p->epoch, p->epochs);
    else if (p->epoch >= 0)
        add_piece(&line, columns, "  epoch %" PRId64, p->epoch);
    if (p->step >= 0 && p->steps > 0)
        add_piece(&line, columns, "  step %" PRId64 "/%" PRId64, p->step, p->steps);
    else if (p->step >= 0)
        add_piece(&line, columns, "  step %" PRId64, p->step);
    if (p->has_loss)
        add_piece(&line, columns, "  loss %.4f", p->loss);
    add_speed(p, screen->training, columns, &line);
    if (p->seconds_left > 0) {
        auto_str struct str left;
        str_init(&left, LINE_MAX_BYTES);
        screen_duration((int64_t)(p->seconds_left * 1000), &left);
        add_piece(&line, columns, "  %s left", str_text(&left));
    }
    add_line(out, str_text(&line), columns);
}

static void add_bar(int64_t step, int64_t steps, int columns, struct str *out)
{
    int width = columns - 11; /* "  [", "] 100%", and the last column */
    width = width > LAYOUT_BAR_MAX ? LAYOUT_BAR_MAX : width;
    if (width < 4)
        return;
    double done = (double)(step < steps ? step : steps) / (double)steps;
    str_add(out, "  ");
    layout_bar(done, width, out);
    str_printf(out, " %3d%%\n", (int)(done * 100));
}

/* The loss from the run's beginning until now. */
static void add_losses(const struct screen *screen, int columns, struct str *out)
{
    auto_str struct str curve;
    str_init(&curve, LINE_MAX_BYTES);
    curve_draw(screen->losses, layout_room(columns) - (int)strlen("  loss "), screen->unicode,
               &curve);
    if (curve.length)
        str_printf(out, "  loss %s\n", str_text(&curve));
}

static int lines_of(const struct str *text)
{
    int lines = 0;
    for (size_t i = 0; i < text->length; i++)
        lines += text->text[i] == '\n';
    return lines;
}

void screen_render(const struct screen *screen, int columns, int rows, int64_t now_ms,
                   struct str *out)
{
    auto_str struct str head, elapsed;
    str_init(&head, LINE_MAX_BYTES);
    str_init(&elapsed, LINE_MAX_BYTES);
    int left = layout_room(columns) - (int)strlen("  ") - (int)strlen(screen->state);
    screen_duration(now_ms - screen->started_ms, &elapsed);
    str_printf(&head, "%s  %s", layout_end_of_name(screen->job, left > 0 ? left : 0),
               screen->state);
    add_piece(&head, columns, "  %s", str_text(&elapsed));
    if (screen->rank_restarts > 0)
        add_piece(&head, columns, "  " RANKS_NAME " (restarts: %" PRId32 ")",
                  screen->rank_restarts);
    add_line(out, str_text(&head), columns);
    if ((int64_t)screen->replica_count + FIXED_ROWS < rows)
        add_replicas(screen, columns, out);
    else
        add_counts(screen, columns, out);
    const struct progress *p = &screen->progress;
    if (!p->known)
        return;
    add_progress(screen, columns, out);
    if (p->steps > 0 && p->step >= 0)
        add_bar(p->step, p->steps, columns, out);
    add_losses(screen, columns, out);
    /* the last row is the cursor's: a view of all rows would scroll, and erasing miss its head */
    rank_list_draw(screen->ranks, columns, rows - 1 - lines_of(out), out);
}

static void add_summary_row(const char *name, int width, const char *state, int32_t restarts,
                            int32_t exit_code, const char *log_path, struct str *out)
{
    char code[16] = "-";
    if (exit_code >= 0)
        snprintf(code, sizeof code, "%" PRId32, exit_code);
    str_printf(out, "%-*s  %-10s  %8" PRId32 "  %9s  %s\n", width, name, state, restarts, code,
               log_path ? log_path : "-");
}

void screen_summary(const struct local_replica *replicas, size_t count, int32_t rank_restarts,
                    struct str *out)
{
    int width = (int)strlen(rank_restarts > 0 ? RANKS_NAME : "REPLICA");
    for (size_t i = 0; i < count; i++) {
        int length = (int)strlen(replicas[i].name);
        width = length > width ? length : width;
    }
    str_printf(out, "%-*s  %-10s  %8s  %9s  %s\n", width, "REPLICA", "STATE", "RESTARTS",
               "EXIT CODE", "LOG");
    for (size_t i = 0; i < count; i++) {
        const struct local_replica *r = &replicas[i];
        add_summary_row(r->name, width, local_state_name(r->state), r->restarts, r->exit_code,
                        r->log_path, out);
    }
    if (rank_restarts > 0)
        add_summary_row(RANKS_NAME, width, "-", rank_restarts, -1, NULL, out);
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
