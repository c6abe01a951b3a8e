/* How a run went so far, for the live page: its losses and rates, and what its time went to. A
 * launcher may start a rank again in place; then the time that the processes before had spent is
 * the job's, too. Each leaves a note of it for the next one, which takes it up. What lies between
 * the last that one told and the start of the next is recovery, as for the operator. Losses and
 * rates are of this process alone. Pure: knows not who keeps the note. */
#ifndef SHOAL_AGENT_TELEMETRY_PAGE_PAST_H
#define SHOAL_AGENT_TELEMETRY_PAGE_PAST_H

#include <stdint.h>

#include "agent/telemetry/run_state.h"
#include "base/series.h"
#include "base/str.h"
#include "base/timeline.h"

enum { PAGE_NOTE_BYTES = 2048 }; /* a note is shorter */

/* The first are enum time_kind: within a process. */
enum { PAGE_TIME_RECOVERY = TIME_KINDS, PAGE_TIME_KINDS };

/* Their order in a timeline, and their names. */
extern const struct timeline_kinds page_time_kinds;

/* All zero: it has just begun, and when is not known. */
struct page_past {
    struct series series;
    struct timeline timeline;
    int64_t begin_ms;                   /* when the first process began; since 1970 */
    int64_t before_ms[PAGE_TIME_KINDS]; /* what went by until this process began */
};

/* Who keeps notes from one process to the next. All zero: nobody. */
struct page_keeper {
    const char *note; /* of the process before; NULL or "": none; read once */
    void (*keep)(void *context, const char *note);
    void *context;
};

void page_past_free(struct page_past *past);

/* Once, before the others. note: of the process before, as page_past_note() wrote it; "": there is
 * none, as if it were no note. process_ms: when this process began; since 1970. */
void page_past_begin(struct page_past *past, const char *note, int64_t process_ms);
/* Adds what the next process needs: PAGE_NOTE_BYTES - 1 at most. The same program reads it. */
void page_past_note(const struct page_past *past, struct str *out);

/* Takes the step that has just ended. */
void page_past_step(struct page_past *past, const struct run_state *state);
/* Takes what this process's time went to since the last look. */
void page_past_look(struct page_past *past, const struct time_account *account);

/* What the time went to until the last look, of all processes: ms[PAGE_TIME_KINDS]. */
const int64_t *page_past_ms(const struct page_past *past);
#endif
