#include "agent/health/hang_detector.h"

#include "base/mem.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS_KEPT = 15,     /* durations of which the median step is taken */
    LATE_BEATS = 2,      /* a report may be so old, and some more be lost around a pause */
    AWAY_BEATS = 3,      /* a longer gap between two ticks: this process was paused */
    NODE_AWAY_BEATS = 3, /* a pod that is not heard for longer is away */
    PAUSE_BEATS = 15,    /* of a pause so much may have been a rank's own */
    /* Of a silent rank the rendezvous says after 15 s that it is lost. */
    SILENT_PATIENCE_MS = 4 * 1000
};

/* What a phase allows, in seconds. A name that comes too early costs a line, an end that comes too
 * early costs the work since the last checkpoint: the patience is for what heals by itself. */
static const struct allowance {
    int first;    /* before this rank has passed it for the first time */
    int least;    /* after that */
    int times;    /* the longest time without progress that was seen in it */
    int patience; /* from the rank's name to its end */
} allowances[RANK_PHASES] = {
    /* Both have had many minutes by then. */
    [RANK_START] = {.first = 1200, .least = 1200, .times = 1, .patience = 60},
    [RANK_FIRST_STEP] = {.first = 600, .least = 600, .times = 1, .patience = 60},
    /* It writes its lines to stdout and to CSV files, whose disk may be a server that fails over:
     * NFS takes 60 to 90 s for that. */
    [RANK_STEP] = {.first = 0, .least = 0, .times = 1, .patience = 120},
    /* All of these wait for storage as long as they run, and an evaluation reads its data. Storage
     * that is overloaded, or fails over more than once, is back within minutes. */
    [RANK_DATA] = {.first = 600, .least = 30, .times = 3, .patience = 300},
    [RANK_EVALUATION] = {.first = 600, .least = 30, .times = 3, .patience = 300},
    [RANK_SAVE] = {.first = 600, .least = 60, .times = 3, .patience = 300},
    [RANK_TRACE] = {.first = 600, .least = 60, .times = 3, .patience = 300},
    /* No storage, but as many bytes, whose memory may have to be found first. */
    [RANK_SNAPSHOT] = {.first = 600, .least = 60, .times = 3, .patience = 300},
    /* The model is written, with nobody waiting: never. */
    [RANK_END] = {.first = INT_MAX, .least = INT_MAX, .times = 1, .patience = INT_MAX},
};

struct rank {
    struct rank_report report;
    bool is_known;
    bool is_heard, has_changed; /* since the last tick */
    int64_t still_ms;           /* heard all the time, and the report is the same */
    int64_t before_ms;          /* likewise, before a pause since when still_ms counts */
    int64_t silent_ms;          /* not heard, while another of its pod is */
    int64_t away_ms;            /* not heard, whoever else is */
};

struct hang_detector {
    int ranks;
    int64_t beat_ms;
    struct rank *rank; /* [ranks] */
    bool has_ticked;
    int64_t ticked_ms;
    int64_t watched_ms;              /* time that counts, so far */
    int64_t longest_ms[RANK_PHASES]; /* without progress, and it went on */
    int64_t front_step;              /* of the rank that is furthest */
    int64_t front_ms;                /* when it came there, in watched time */
    double step_ms[STEPS_KEPT];      /* the last ones'; a ring */
    int64_t steps_seen;
    double median_ms; /* of them */
    int hung;         /* -1: none */
    bool is_silent;   /* so it was named */
};

struct hang_detector *hang_detector_open(int ranks, int64_t beat_ms)
{
    assert(ranks > 0 && beat_ms > 0);
    struct hang_detector *d = xcalloc(1, sizeof *d);
    d->ranks = ranks;
    d->beat_ms = beat_ms;
    d->rank = xcalloc((size_t)ranks, sizeof *d->rank);
    d->front_step = -1;
    d->hung = -1;
    return d;
}

void hang_detector_close(struct hang_detector *d)
{
    if (!d)
        return;
    free(d->rank);
    free(d);
}

/* ---- what is learned ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_of(const struct hang_detector *d)
{
    double sorted[STEPS_KEPT];
    size_t count = d->steps_seen < STEPS_KEPT ? (size_t)d->steps_seen : STEPS_KEPT;
    if (count == 0)
        return 0;
    memcpy(sorted, d->step_ms, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    return sorted[count / 2];
}

int64_t hang_detector_bound_ms(const struct hang_detector *d, int rank, enum rank_phase phase)
{
    const struct allowance *a = &allowances[phase];
    /* Another's first time says little of this rank's: it may have done less. */
    bool is_first = !(d->rank[rank].report.passed & 1u << phase);
    int64_t allowed_ms = (is_first ? a->first : a->least) * INT64_C(1000);
    if (d->longest_ms[phase] * a->times > allowed_ms)
        allowed_ms = d->longest_ms[phase] * a->times;
    int64_t beyond_ms = (int64_t)(3 * d->median_ms);
    return allowed_ms + (beyond_ms > 2000 ? beyond_ms : 2000) + LATE_BEATS * d->beat_ms;
}

/* The rank has made progress again. */
static void learn(struct hang_detector *d, const struct rank *r)
{
    int64_t still_ms = r->before_ms + r->still_ms;
    if (!rank_report_is_in_collective(&r->report) && still_ms > d->longest_ms[r->report.phase])
        d->longest_ms[r->report.phase] = still_ms;
}

/* The durations of the steps of the rank that is furthest: all others are about there. */
static void measure_steps(struct hang_detector *d)
{
    int64_t front = -1;
    for (int i = 0; i < d->ranks; i++)
        if (d->rank[i].is_known && d->rank[i].report.step > front)
            front = d->rank[i].report.step;
    if (front <= d->front_step)
        return;
    if (d->front_step >= 0) {
        double each_ms = (double)(d->watched_ms - d->front_ms) / (double)(front - d->front_step);
        d->step_ms[d->steps_seen++ % STEPS_KEPT] = each_ms;
        d->median_ms = median_of(d);
    }
    d->front_step = front;
    d->front_ms = d->watched_ms;
}

/* ---- what is heard ---- */

static bool is_same(const struct rank_report *a, const struct rank_report *b)
{
    return a->step == b->step && a->phase == b->phase && a->passed == b->passed &&
           a->entered == b->entered && a->ended == b->ended && a->pid == b->pid;
}

void hang_detector_hear(struct hang_detector *d, int rank, const struct rank_report *report)
{
    assert(rank >= 0 && rank < d->ranks);
    struct rank *r = &d->rank[rank];
    if (!r->is_known || !is_same(&r->report, report)) {
        learn(d, r);
        r->has_changed = true;
        r->still_ms = r->before_ms = 0;
    }
    r->is_known = r->is_heard = true;
    r->report = *report;
}

void hang_detector_drop(struct hang_detector *d, int rank)
{
    assert(rank >= 0 && rank < d->ranks);
    d->rank[rank] = (struct rank){.is_known = false};
    if (d->hung == rank)
        d->hung = -1;
}

static bool hears_node(const struct hang_detector *d, int node)
{
    for (int i = 0; i < d->ranks; i++)
        if (d->rank[i].is_heard && d->rank[i].report.node == node)
            return true;
    return false;
}

/* A pause of so long: what was counted before says nothing of what comes. */
static void begin_anew(struct rank *r, int64_t paused_ms)
{
    r->before_ms += r->still_ms + paused_ms;
    r->still_ms = r->silent_ms = 0;
}

static void count(struct hang_detector *d, struct rank *r, int64_t passed_ms)
{
    if (r->is_heard) {
        r->still_ms = r->has_changed ? 0 : r->still_ms + passed_ms;
        r->silent_ms = r->away_ms = 0;
    } else if (hears_node(d, r->report.node)) {
        r->silent_ms += passed_ms;
        r->away_ms = 0;
    } else if ((r->away_ms += passed_ms) > NODE_AWAY_BEATS * d->beat_ms) {
        begin_anew(r, passed_ms); /* what its ranks do, when it comes back */
    }
}

/* ---- who hangs ---- */

/* Time without progress beyond what the rank is allowed; <= 0: it may still come. */
static int64_t excess_ms(const struct hang_detector *d, int rank, bool *ret_is_silent)
{
    const struct rank *r = &d->rank[rank];
    int64_t silent_ms = r->silent_ms - HANG_SILENT_BEATS * d->beat_ms;
    *ret_is_silent = silent_ms > 0;
    if (*ret_is_silent)
        return silent_ms;
    if (rank_report_is_in_collective(&r->report) || r->silent_ms > 0)
        return 0;
    return r->still_ms - hang_detector_bound_ms(d, rank, r->report.phase);
}

/* Whether another waits in a collective, or is ahead of this one. Else all do the same, and it
 * takes long on all of them. */
static bool is_missed(const struct hang_detector *d, int rank)
{
    const struct rank_report *r = &d->rank[rank].report;
    for (int i = 0; i < d->ranks; i++) {
        const struct rank_report *other = &d->rank[i].report;
        if (i != rank && d->rank[i].is_known &&
            (rank_report_is_in_collective(other) || other->entered > r->entered ||
             other->step > r->step))
            return true;
    }
    return false;
}

static bool hangs_for(const struct hang_detector *d, int rank, int64_t ms, int64_t silent_ms)
{
    bool is_silent;
    int64_t beyond_ms = excess_ms(d, rank, &is_silent);
    return is_silent ? beyond_ms > silent_ms : beyond_ms > ms && is_missed(d, rank);
}

/* Of several the one that is furthest behind in the sequence of collectives. */
static bool is_worse(const struct rank *a, const struct rank *b)
{
    if (a->report.entered != b->report.entered)
        return a->report.entered < b->report.entered;
    return a->still_ms + a->silent_ms > b->still_ms + b->silent_ms;
}

static int find_hung(const struct hang_detector *d)
{
    int worst = -1;
    for (int i = 0; i < d->ranks; i++) {
        const struct rank *r = &d->rank[i];
        if (r->is_known && hangs_for(d, i, 0, 0) && (worst < 0 || is_worse(r, &d->rank[worst])))
            worst = i;
    }
    return worst;
}

static void describe(const struct hang_detector *d, int rank, struct hang_verdict *ret)
{
    const struct rank *r = &d->rank[rank];
    *ret = (struct hang_verdict){.rank = rank, .waiting_first = -1};
    excess_ms(d, rank, &ret->is_silent);
    ret->still_ms = ret->is_silent ? r->silent_ms : r->still_ms;
    ret->bound_ms = ret->is_silent ? HANG_SILENT_BEATS * d->beat_ms
                                   : hang_detector_bound_ms(d, rank, r->report.phase);
    for (int i = 0; i < d->ranks; i++) {
        if (i == rank || !rank_report_is_in_collective(&d->rank[i].report))
            continue;
        ret->waiting++;
        if (ret->waiting_first < 0)
            ret->waiting_first = i;
    }
}

enum hang_news hang_detector_tick(struct hang_detector *d, int64_t now_ms,
                                  struct hang_verdict *ret_verdict)
{
    int64_t gap_ms = d->has_ticked ? now_ms - d->ticked_ms : 0;
    bool was_away = gap_ms < 0 || gap_ms > AWAY_BEATS * d->beat_ms;
    int64_t passed_ms = was_away ? 0 : gap_ms < d->beat_ms ? gap_ms : d->beat_ms;
    /* One that was silent and is heard again was only stopped: what it does counts anew. */
    const struct rank *hung = d->hung >= 0 ? &d->rank[d->hung] : NULL;
    bool goes_on = hung && (hung->has_changed || (d->is_silent && hung->is_heard));
    d->has_ticked = true;
    d->ticked_ms = now_ms;
    d->watched_ms += passed_ms;
    measure_steps(d);
    for (int i = 0; i < d->ranks; i++)
        count(d, &d->rank[i], passed_ms);
    for (int i = 0; i < d->ranks; i++)
        d->rank[i].is_heard = d->rank[i].has_changed = false;
    for (int i = 0; i < d->ranks && was_away; i++)
        begin_anew(&d->rank[i], PAUSE_BEATS * d->beat_ms);
    if (goes_on) {
        describe(d, d->hung, ret_verdict);
        d->hung = -1;
        return HANG_OVER;
    }
    if (d->hung >= 0 || (d->hung = find_hung(d)) < 0)
        return HANG_NONE;
    describe(d, d->hung, ret_verdict);
    d->is_silent = ret_verdict->is_silent;
    return HANG_FOUND;
}

static int64_t silent_patience_ms(int64_t patience_ms)
{
    return patience_ms > 0 && patience_ms < SILENT_PATIENCE_MS ? patience_ms : SILENT_PATIENCE_MS;
}

int64_t hang_detector_silence_ms(int64_t beat_ms, int64_t patience_ms)
{
    return HANG_SILENT_BEATS * beat_ms + silent_patience_ms(patience_ms);
}

bool hang_detector_must_end(const struct hang_detector *d, int64_t patience_ms)
{
    int64_t silent_ms = silent_patience_ms(patience_ms);
    if (d->hung < 0)
        return false;
    if (patience_ms <= 0)
        patience_ms = allowances[d->rank[d->hung].report.phase].patience * INT64_C(1000);
    return hangs_for(d, d->hung, patience_ms, silent_ms);
}

/* ---- what others show ---- */

int hang_detector_hung(const struct hang_detector *d)
{
    return d->hung;
}

int64_t hang_detector_still_ms(const struct hang_detector *d, int rank)
{
    const struct rank *r = &d->rank[rank];
    return r->silent_ms > 0 ? r->silent_ms : r->still_ms;
}

const struct rank_report *hang_detector_report(const struct hang_detector *d, int rank)
{
    return d->rank[rank].is_known ? &d->rank[rank].report : NULL;
}
