/* Which rank hangs, from what all ranks tell each second. Pure: time and reports are arguments.
 *
 * Progress is any change of a rank's report. A rank makes none for longer than its bound: what its
 * phase allows, and max(2 s, 3 x the median step) beyond that. A phase allows as much as was seen
 * in it before (docs/troubleshooting.md has the table). A rank that waits in a collective is never
 * the one that hangs: it waits for the one that did not come. Nor does a rank hang for which nobody
 * waits: all do the same, and it takes long. A rank that is silent while another
 * of its pod is heard is stopped. If a whole pod is silent, its machine or the network is away;
 * that is no hang, and the rendezvous loses such ranks after a while.
 *
 * Time counts only while the detector is ticked, at most a beat a tick: time that this process
 * itself was paused, and jumps of the clock, count for nothing. */
#ifndef SHOAL_AGENT_HEALTH_HANG_DETECTOR_H
#define SHOAL_AGENT_HEALTH_HANG_DETECTOR_H

#include "agent/health/rank_report.h"

#include <stdbool.h>
#include <stdint.h>

enum { HANG_SILENT_BEATS = 8 }; /* a stopped rank is named after so many */

struct hang_verdict {
    int rank;
    bool is_silent;    /* nothing is heard of it; else it is heard, and makes no progress */
    int64_t still_ms;  /* without progress, or silent, for so long */
    int64_t bound_ms;  /* what it was allowed */
    int waiting;       /* other ranks that wait in a collective */
    int waiting_first; /* the first of them; -1: none */
};

struct hang_detector;

struct hang_detector *hang_detector_open(int ranks, int64_t beat_ms);
void hang_detector_close(struct hang_detector *detector); /* NULL-safe */

/* A report has come. */
void hang_detector_hear(struct hang_detector *detector, int rank, const struct rank_report *report);

/* The rank has left: it is not heard any more, and that is as it should be. */
void hang_detector_drop(struct hang_detector *detector, int rank);

enum hang_news { HANG_NONE, HANG_FOUND, HANG_OVER };
/* Once a beat. HANG_FOUND: *ret_verdict is a rank that hangs. It is told once; until it goes on
 * (HANG_OVER, likewise once) no other is. */
enum hang_news hang_detector_tick(struct hang_detector *detector, int64_t now_ms,
                                  struct hang_verdict *ret_verdict);

int hang_detector_hung(const struct hang_detector *detector); /* the rank; -1: none */
int64_t hang_detector_still_ms(const struct hang_detector *detector, int rank);
/* NULL: the rank has not been heard yet. */
const struct rank_report *hang_detector_report(const struct hang_detector *detector, int rank);
/* How long the rank may be without progress in this phase. */
int64_t hang_detector_bound_ms(const struct hang_detector *detector, int rank,
                               enum rank_phase phase);
/* Whether the rank that hangs has done so for as long beyond its bound that it hardly goes on:
 * patience_ms; 0: as long as its phase has it. A silent one only for 4 s at most. */
bool hang_detector_must_end(const struct hang_detector *detector, int64_t patience_ms);
/* How long a rank may be silent until then: its name, and the patience with one that is. */
int64_t hang_detector_silence_ms(int64_t beat_ms, int64_t patience_ms);
#endif
