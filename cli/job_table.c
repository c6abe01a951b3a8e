#include "cli/job_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/layout.h"

#define UNKNOWN "-" /* an empty place could be of any column */

enum { BAR_COLUMNS = 10, STATES_MAX = CONDITION_TYPES + 2 };

const char *const job_sort_names[] = {"name",    "age",  "step",     "eta",
                                      "goodput", "gpus", "restarts", NULL};

/* ---- which, and in which order ---- */

/* What the job is sorted by: less comes first. NaN: it is not known. */
static double key_of(const struct job_facts *job, int sort)
{
    const struct training *t = &job->training;
    switch (sort) {
    case JOB_SORT_AGE:
        return job->created_ms ? -(double)job->created_ms : (double)NAN;
    case JOB_SORT_STEP:
        return t->known && t->step >= 0 ? -(double)t->step : (double)NAN;
    case JOB_SORT_ETA:
        return t->known && t->seconds_left >= 0 ? (double)t->seconds_left : (double)NAN;
    case JOB_SORT_GOODPUT:
        return job->goodput.known ? goodput_ratio(&job->goodput) : (double)NAN;
    case JOB_SORT_GPUS:
        return -(double)job->gpus;
    case JOB_SORT_RESTARTS:
        return -(double)job->restarts;
    default:
        return 0;
    }
}

static int compare(const void *a, const void *b, void *context)
{
    const struct job_table *table = context;
    const struct job_facts *x = *(const struct job_facts *const *)a,
                           *y = *(const struct job_facts *const *)b;
    double p = key_of(x, table->sort), q = key_of(y, table->sort);
    if (isnan(p) || isnan(q)) {
        if (isnan(p) != isnan(q))
            return isnan(p) ? 1 : -1;
        p = q = 0;
    }
    int order = (p > q) - (p < q);
    order = order ? order : strcmp(x->namespace_, y->namespace_);
    order = order ? order : strcmp(x->name, y->name);
    return table->reverse ? -order : order;
}

static bool is_wanted(const struct job_facts *job, const char *filter)
{
    return !filter || strcasestr(job->name, filter) || strcasestr(job->namespace_, filter) ||
           strcasestr(job->state, filter);
}

size_t job_table_select(const struct job_table *table, const struct job_facts **ret_jobs)
{
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++)
        if (is_wanted(&table->jobs[i], table->filter))
            ret_jobs[count++] = &table->jobs[i];
    if (count)
        qsort_r(ret_jobs, count, sizeof *ret_jobs, compare, (void *)table);
    return count;
}

/* ---- its cells ---- */

static const char *bar_text(const struct job_facts *job, struct arena *arena)
{
    const struct training *t = &job->training;
    auto_str struct str bar;
    str_init(&bar, LAYOUT_BAR_MAX);
    if (!t->known || t->step < 0 || t->steps <= 0)
        return UNKNOWN;
    layout_bar((double)(t->step < t->steps ? t->step : t->steps) / (double)t->steps, BAR_COLUMNS,
               &bar);
    return arena_strdup(arena, str_text(&bar));
}

static const char *speed_text(const struct training *t, struct arena *arena)
{
    if (t->known && !isnan(t->tokens_per_s))
        return arena_printf(arena, "%.0f tok/s", t->tokens_per_s);
    if (t->known && !isnan(t->samples_per_s))
        return arena_printf(arena, "%.0f samples/s", t->samples_per_s);
    return UNKNOWN;
}

static const char *goodput_text(const struct goodput *goodput, struct arena *arena)
{
    double ratio = goodput_ratio(goodput);
    return goodput->known && !isnan(ratio) ? arena_printf(arena, "%.1f%%", ratio * 100) : UNKNOWN;
}

static const char *age_text(const struct job_facts *job, int64_t now_ms, struct arena *arena)
{
    char text[TRAINING_TEXT_BYTES];
    if (!job->created_ms)
        return UNKNOWN;
    training_duration_text((now_ms - job->created_ms) / 1000, text);
    return arena_strdup(arena, text);
}

static const struct layout_column titles[] = {
    {"NAME", false, 0},   {"STATE", false, 0},   {"PROGRESS", false, 10}, {"STEP", true, 1},
    {"LOSS", true, 9},    {"SPEED", true, 6},    {"ETA", true, 2},        {"GPUS", true, 4},
    {"GOODPUT", true, 3}, {"RESTARTS", true, 8}, {"AGE", true, 7},
};

/* One for each title. */
static void add_cells(const struct job_facts *job, int64_t now_ms, const char **cells,
                      struct arena *arena)
{
    const struct training *t = &job->training;
    char progress[TRAINING_TEXT_BYTES], left[TRAINING_TEXT_BYTES];
    training_progress_text(t, progress);
    training_left_text(t, left);
    *cells++ = job->name;
    *cells++ = job->state;
    *cells++ = bar_text(job, arena);
    *cells++ = *progress ? arena_strdup(arena, progress) : UNKNOWN;
    *cells++ = t->known && !isnan(t->loss) ? arena_printf(arena, "%.5g", t->loss) : UNKNOWN;
    *cells++ = speed_text(t, arena);
    *cells++ = *left ? arena_strdup(arena, left) : UNKNOWN;
    *cells++ = arena_printf(arena, "%" PRId64, job->gpus);
    *cells++ = goodput_text(&job->goodput, arena);
    *cells++ = arena_printf(arena, "%" PRId64, job->restarts);
    *cells++ = age_text(job, now_ms, arena);
}

void job_table_render(const struct job_facts *const *jobs, size_t count, bool with_namespace,
                      int columns, int64_t now_ms, struct str *out)
{
    struct layout_column shown[array_length(titles) + 1];
    size_t column_count = array_length(titles) + with_namespace;
    auto_arena struct arena *arena = arena_open();
    const char **cells = arena_array(arena, const char *, count *column_count + 1);
    shown[0] = titles[0];
    if (with_namespace)
        shown[1] = (struct layout_column){"NAMESPACE", false, 5};
    memcpy(shown + 1 + with_namespace, titles + 1, sizeof titles - sizeof *titles);
    for (size_t i = 0; i < count; i++) {
        const char **row = cells + i * column_count;
        add_cells(jobs[i], now_ms, row + with_namespace, arena);
        row[0] = jobs[i]->name;
        if (with_namespace)
            row[1] = jobs[i]->namespace_;
    }
    const struct layout_table table = {
        .columns = shown, .column_count = column_count, .cells = cells, .row_count = count};
    layout_table(&table, columns, out);
}

void job_table_count(const struct job_facts *const *jobs, size_t count, struct str *out)
{
    const char *states[STATES_MAX];
    size_t counts[STATES_MAX] = {0}, state_count = 0;
    int64_t gpus = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < state_count && strcmp(states[k], jobs[i]->state) != 0)
            k++;
        if (k == STATES_MAX)
            continue;
        if (k == state_count)
            states[state_count++] = jobs[i]->state;
        counts[k]++;
        gpus += job_facts_finished(jobs[i]) ? 0 : jobs[i]->gpus;
    }
    str_printf(out, "%zu job%s", count, count == 1 ? "" : "s");
    for (size_t k = 0; k < state_count; k++)
        str_printf(out, "%s %zu %s", k ? "," : ":", counts[k], states[k]);
    if (gpus > 0)
        str_printf(out, "; %" PRId64 " GPU%s", gpus, gpus == 1 ? "" : "s");
}
