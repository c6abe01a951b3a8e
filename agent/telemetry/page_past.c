#include "agent/telemetry/page_past.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/contract.h"

static const char *kind_name(int kind)
{
    return kind == PAGE_TIME_RECOVERY ? TIME_NAME_RECOVERY : time_kind_name((enum time_kind)kind);
}

/* As a job goes through them, each process anew. */
const struct timeline_kinds page_time_kinds = {
    .count = PAGE_TIME_KINDS,
    .order = (const int[PAGE_TIME_KINDS]){PAGE_TIME_RECOVERY, TIME_INITIALIZATION, TIME_PEER_WAIT,
                                          TIME_RESTORE, TIME_LOST_WORK, TIME_DATA, TIME_STEP,
                                          TIME_EVALUATION, TIME_SAVE, TIME_OTHER},
    .name = kind_name,
};

void page_past_free(struct page_past *past)
{
    series_free(&past->series);
    timeline_free(&past->timeline);
}

/* ---- the note: when it began, milliseconds of each kind, and kind and end of each piece ---- */

void page_past_note(const struct page_past *past, struct str *out)
{
    const struct timeline *t = &past->timeline;
    str_printf(out, "%" PRId64, past->begin_ms);
    for (int kind = 0; kind < PAGE_TIME_KINDS; kind++)
        str_printf(out, " %" PRId64, t->seen_ms[kind]);
    for (int i = 0; i < t->count; i++)
        str_printf(out, " %d %" PRId64, (int)t->pieces[i].kind, (int64_t)t->pieces[i].until_ms);
}

/* The next number of a note; false: none is left, or it is none of low .. high. */
static bool next_number(const char **text, int64_t low, int64_t high, int64_t *ret_number)
{
    char *end;
    errno = 0;
    int64_t number = strtoll(*text, &end, 10);
    if (end == *text || errno || number < low || number > high)
        return false;
    *text = end;
    *ret_number = number;
    return true;
}

/* Tells the timeline its pieces again, one by one. */
static bool read_pieces(const char *text, struct timeline *timeline, int64_t sum_ms)
{
    int64_t ms[PAGE_TIME_KINDS] = {0}, at_ms = 0, kind, until_ms;
    while (*text) {
        if (!next_number(&text, 0, PAGE_TIME_KINDS - 1, &kind) ||
            !next_number(&text, at_ms + 1, sum_ms, &until_ms))
            return false;
        ms[kind] += until_ms - at_ms;
        at_ms = until_ms;
        timeline_told(timeline, &page_time_kinds, ms);
    }
    return at_ms == sum_ms;
}

static bool read_note(struct page_past *past, const char *text)
{
    int64_t sum_ms = 0;
    if (!next_number(&text, 1, INT64_MAX / 2, &past->begin_ms))
        return false;
    for (int kind = 0; kind < PAGE_TIME_KINDS; kind++) {
        if (!next_number(&text, 0, INT64_MAX / 2 - sum_ms, &past->before_ms[kind]))
            return false;
        sum_ms += past->before_ms[kind];
    }
    if (!read_pieces(text, &past->timeline, sum_ms))
        return false;
    /* What was too short for a piece of its own is in another kind's. */
    memcpy(past->timeline.seen_ms, past->before_ms, sizeof past->before_ms);
    return true;
}

void page_past_begin(struct page_past *past, const char *note, int64_t process_ms)
{
    if (!read_note(past, note)) {
        timeline_free(&past->timeline);
        memset(past->before_ms, 0, sizeof past->before_ms);
        past->begin_ms = process_ms;
        return;
    }
    int64_t until_ms = past->begin_ms;
    for (int kind = 0; kind < PAGE_TIME_KINDS; kind++)
        until_ms += past->before_ms[kind];
    if (process_ms > until_ms)
        past->before_ms[PAGE_TIME_RECOVERY] += process_ms - until_ms;
    timeline_told(&past->timeline, &page_time_kinds, past->before_ms);
}

/* ---- how it goes on ---- */

void page_past_step(struct page_past *past, const struct run_state *s)
{
    double rate = s->facts.predicts_tokens ? s->tokens_per_s : s->samples_per_s;
    const struct series_point sample = {.time_s = (uint32_t)(s->progress_wall_us / 1000000),
                                        .step = s->last.step,
                                        .loss = (float)s->last.loss,
                                        .rate = rate > 0 ? (float)rate : NAN,
                                        .world_size = s->facts.world_size};
    series_add(&past->series, &sample);
}

void page_past_look(struct page_past *past, const struct time_account *account)
{
    int64_t ms[PAGE_TIME_KINDS];
    memcpy(ms, past->before_ms, sizeof ms);
    for (int kind = 0; kind < TIME_KINDS; kind++)
        ms[kind] += account->us[kind] / 1000;
    timeline_told(&past->timeline, &page_time_kinds, ms);
}

const int64_t *page_past_ms(const struct page_past *past)
{
    return past->timeline.seen_ms;
}
