#include "operator/job/goodput.h"

#include "base/contract.h"

#include <math.h>
#include <string.h>

/* Clocks of two machines, and times in whole seconds: what a process tells may end so much after
 * what we take for now. */
enum { SLACK_MS = 2000 };

const char *goodput_kind_name(int kind)
{
    switch (kind) {
    case GOODPUT_PENDING:
        return "pending";
    case GOODPUT_CONTAINER_START:
        return "containerStart";
    case GOODPUT_RECOVERY:
        return TIME_NAME_RECOVERY;
    case GOODPUT_SUSPENDED:
        return "suspended";
    case GOODPUT_UNTOLD:
        return "untold";
    default:
        return training_spent_name(kind);
    }
}

int64_t goodput_sum_ms(const struct goodput *g)
{
    int64_t sum_ms = 0;
    for (int k = 0; k < GOODPUT_KINDS; k++)
        sum_ms += g->ms[k];
    return sum_ms;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Moves *at_ms on to until_ms, if that is later and within end_ms. */
static void spend_until(struct goodput *g, int kind, int64_t *at_ms, int64_t until_ms,
                        int64_t end_ms)
{
    int64_t ms = clamp(until_ms, *at_ms, end_ms) - *at_ms;
    g->ms[kind] += ms;
    *at_ms += ms;
}

int64_t goodput_open_ms(const struct goodput *g, int64_t created_ms, int64_t now_ms)
{
    if (!g->known || g->now == GOODPUT_INSIDE || !created_ms)
        return 0;
    return clamp(now_ms - created_ms - goodput_sum_ms(g), 0, INT64_MAX);
}

struct goodput goodput_shown(const struct goodput *g, int64_t created_ms, int64_t now_ms)
{
    struct goodput shown = *g;
    shown.ms[g->now] += goodput_open_ms(g, created_ms, now_ms);
    return shown;
}

double goodput_ratio(const struct goodput *g)
{
    int64_t inside_ms = 0;
    for (int k = 0; k < TRAINING_SPENT_KINDS; k++)
        inside_ms += g->ms[k];
    int64_t active_ms = goodput_sum_ms(g) - g->ms[GOODPUT_SUSPENDED] - g->ms[GOODPUT_UNTOLD];
    return inside_ms > 0 ? (double)g->ms[TRAINING_SPENT_STEP] / (double)active_ms : (double)NAN;
}

void goodput_turn(struct goodput *g, int kind, int inside, int64_t since_ms, int64_t created_ms,
                  int64_t now_ms)
{
    int64_t at_ms = created_ms + goodput_sum_ms(g);
    if (!created_ms || (g->known && g->now == kind))
        return;
    spend_until(g, g->now == GOODPUT_INSIDE ? inside : g->now, &at_ms, since_ms,
                now_ms > at_ms ? now_ms : at_ms);
    g->known = true;
    g->now = kind;
}

void goodput_turn_open(struct goodput *g, int kind)
{
    if (g->known)
        g->now = kind;
}

/* What lies before a process that began at end_ms. */
static void spend_gap(struct goodput *g, bool is_first, const struct goodput_start *start,
                      int64_t at_ms, int64_t end_ms)
{
    int kind = g->now;
    if (!is_first && kind != GOODPUT_SUSPENDED)
        kind = GOODPUT_RECOVERY;
    else if (kind == GOODPUT_INSIDE || kind == GOODPUT_UNTOLD)
        kind = GOODPUT_CONTAINER_START;
    if (kind == GOODPUT_PENDING) {
        spend_until(g, GOODPUT_PENDING, &at_ms, start->scheduled_ms, end_ms);
        kind = GOODPUT_CONTAINER_START;
    }
    spend_until(g, kind, &at_ms, end_ms, end_ms);
}

/* An operator or agent of before knows whole seconds. */
static bool began_together(int64_t a_ms, int64_t b_ms)
{
    bool is_rough = a_ms % 1000 == 0 || b_ms % 1000 == 0;
    return a_ms == b_ms || (is_rough && a_ms / 1000 == b_ms / 1000);
}

bool goodput_is_another(const struct training *before, const struct training *told)
{
    if (!before->known || !began_together(before->process_ms, told->process_ms))
        return true;
    for (int k = 0; k < TRAINING_SPENT_KINDS; k++)
        if (told->spent_ms[k] < before->spent_ms[k])
            return true;
    return false;
}

/* Of the time of steps, what went to those that had been done before; unless the process knows
 * itself. */
static int64_t lost_ms(const struct goodput *g, int64_t first_step, int64_t step,
                       const int64_t delta_ms[TRAINING_SPENT_KINDS])
{
    if (delta_ms[TRAINING_SPENT_LOST_WORK] > 0 || first_step < 0 || step <= first_step)
        return 0;
    int64_t again = clamp(g->furthest_step - first_step, 0, step - first_step);
    return (int64_t)((double)delta_ms[TRAINING_SPENT_STEP] * (double)again /
                     (double)(step - first_step));
}

void goodput_told(struct goodput *g, const struct training *before, const struct training *told,
                  const struct goodput_start *start, int64_t created_ms, int64_t now_ms)
{
    int64_t delta_ms[TRAINING_SPENT_KINDS], sum_ms = 0;
    if (!told->known || !told->process_ms || !created_ms)
        return;
    if (!g->known)
        *g = (struct goodput){.known = true, .now = GOODPUT_PENDING};
    bool another = goodput_is_another(before, told);
    for (int k = 0; k < TRAINING_SPENT_KINDS; k++) {
        delta_ms[k] = told->spent_ms[k] - (another ? 0 : before->spent_ms[k]);
        sum_ms += delta_ms[k];
    }
    int64_t at_ms = created_ms + goodput_sum_ms(g);
    int64_t room_ms = clamp(now_ms + SLACK_MS - at_ms, 0, INT64_MAX);
    if (sum_ms > room_ms) { /* no clock is that wrong */
        for (int k = 0; k < TRAINING_SPENT_KINDS; k++)
            delta_ms[k] = (int64_t)((double)delta_ms[k] * (double)room_ms / (double)sum_ms);
        sum_ms = room_ms;
    }
    if (another)
        spend_gap(g, !before->known || !before->process_ms, start, at_ms,
                  clamp(told->process_ms, at_ms, at_ms + room_ms - sum_ms));
    int64_t first_step = another ? told->resumed_step : before->step;
    int64_t lost = lost_ms(g, first_step, told->step, delta_ms);
    delta_ms[TRAINING_SPENT_STEP] -= lost;
    delta_ms[TRAINING_SPENT_LOST_WORK] += lost;
    for (int k = 0; k < TRAINING_SPENT_KINDS; k++)
        g->ms[k] += delta_ms[k];
    g->now = GOODPUT_INSIDE;
    if (told->step > g->furthest_step)
        g->furthest_step = told->step;
}

void goodput_rest(struct goodput *g, int kind, int64_t created_ms, int64_t now_ms)
{
    int64_t at_ms = created_ms + goodput_sum_ms(g);
    if (g->known)
        spend_until(g, kind, &at_ms, now_ms, now_ms > at_ms ? now_ms : at_ms);
}

static bool is_news(const struct training *before, const struct training *told)
{
    return told->known && (goodput_is_another(before, told) ||
                           memcmp(before->spent_ms, told->spent_ms, sizeof told->spent_ms) != 0);
}

void goodput_stop(struct goodput *g, const struct training *before, const struct training *told,
                  int64_t created_ms, int64_t now_ms)
{
    const struct goodput_start not_known = {.scheduled_ms = 0};
    int now = g->now;
    goodput_told(g, before, told, &not_known, created_ms, now_ms);
    if (!is_news(before, told)) /* the last word of a process that may have gone since */
        g->now = now;
    bool has_told = (told->known ? told : before)->process_ms != 0;
    int inside = has_told ? TRAINING_SPENT_OTHER : GOODPUT_UNTOLD;
    goodput_rest(g, g->now == GOODPUT_INSIDE ? inside : g->now, created_ms, now_ms);
}

bool goodput_equal(const struct goodput *a, const struct goodput *b)
{
    return a->known == b->known && a->now == b->now && a->furthest_step == b->furthest_step &&
           memcmp(a->ms, b->ms, sizeof a->ms) == 0;
}
