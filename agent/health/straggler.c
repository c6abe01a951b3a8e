#include "agent/health/straggler.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

struct pace {
    int64_t compute_us, steps; /* when the window began */
    int pid;                   /* a new process counts anew */
    double ratio;
    int windows; /* in a row that it was slow */
};

struct stragglers {
    int ranks;
    struct pace *paces;   /* [ranks] */
    double *each, *order; /* [ranks] microseconds of a step; the same in order */
    bool has_begun;
    int64_t begin_ms;
};

struct stragglers *stragglers_open(int ranks)
{
    assert(ranks > 0);
    struct stragglers *s = xcalloc(1, sizeof *s);
    s->ranks = ranks;
    s->paces = xcalloc((size_t)ranks, sizeof *s->paces);
    s->each = xcalloc((size_t)ranks, sizeof *s->each);
    s->order = xcalloc((size_t)ranks, sizeof *s->order);
    return s;
}

void stragglers_close(struct stragglers *s)
{
    if (!s)
        return;
    free(s->paces);
    free(s->each);
    free(s->order);
    free(s);
}

static void begin_window(struct stragglers *s, const struct rank_report *const reports[],
                         int64_t now_ms)
{
    s->has_begun = true;
    s->begin_ms = now_ms;
    for (int i = 0; i < s->ranks; i++) {
        s->paces[i].compute_us = reports[i]->compute_us;
        s->paces[i].steps = reports[i]->steps;
        s->paces[i].pid = reports[i]->pid;
    }
}

static bool are_all_here(const struct stragglers *s, const struct rank_report *const reports[])
{
    for (int i = 0; i < s->ranks; i++)
        if (!reports[i] || (s->has_begun && (reports[i]->pid != s->paces[i].pid ||
                                             reports[i]->steps < s->paces[i].steps)))
            return false;
    return true;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void compare(struct stragglers *s)
{
    for (int i = 0; i < s->ranks; i++)
        s->order[i] = s->each[i];
    qsort(s->order, (size_t)s->ranks, sizeof *s->order, by_size);
    /* Of an even number the lower: with two ranks the slow one is not compared with itself. */
    double median = s->order[(s->ranks - 1) / 2];
    for (int i = 0; i < s->ranks; i++) {
        struct pace *p = &s->paces[i];
        p->ratio = median > 0 ? s->each[i] / median : 0;
        p->windows = p->ratio > STRAGGLER_RATIO ? p->windows + 1 : 0;
    }
}

bool stragglers_tick(struct stragglers *s, const struct rank_report *const reports[],
                     int64_t now_ms)
{
    if (!are_all_here(s, reports)) {
        s->has_begun = false;
        return false;
    }
    if (!s->has_begun || now_ms < s->begin_ms) {
        begin_window(s, reports, now_ms);
        return false;
    }
    bool is_over = now_ms - s->begin_ms >= STRAGGLER_WINDOW_MS;
    for (int i = 0; i < s->ranks && is_over; i++) {
        int64_t steps = reports[i]->steps - s->paces[i].steps;
        is_over = steps >= STRAGGLER_WINDOW_STEPS;
        s->each[i] = (double)(reports[i]->compute_us - s->paces[i].compute_us) / (double)steps;
    }
    if (!is_over)
        return false;
    compare(s);
    begin_window(s, reports, now_ms);
    return true;
}

bool straggler_is_slow(const struct stragglers *s, int rank)
{
    return s->paces[rank].windows >= STRAGGLER_WINDOWS;
}

bool straggler_is_news(const struct stragglers *s, int rank)
{
    return s->paces[rank].windows == STRAGGLER_WINDOWS;
}

double straggler_ratio(const struct stragglers *s, int rank)
{
    return s->paces[rank].ratio;
}
