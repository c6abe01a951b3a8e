/* Where a trace collects its events: backends add theirs here. */
#ifndef SHOAL_KERNELS_TRACE_LOG_H
#define SHOAL_KERNELS_TRACE_LOG_H

#include "base/clock.h"
#include "kernels/backend.h"

/* A clock that is not the host's, and the host's at two moments. */
struct trace_clock {
    int64_t theirs_ns[2], ours_ns[2];
};
enum { TRACE_LOOKS = 5 }; /* readings of both clocks; the quickest one counts */
/* Sets moment `which`, 0 or 1, to now. look: reads their clock; if it returns false the moment does
 * not change. */
static inline void trace_clock_compare(struct trace_clock *c, int which,
                                       bool (*look)(void *ctx, int64_t *ret_ns), void *ctx)
{
    int64_t shortest_ns = INT64_MAX;
    for (int i = 0; i < TRACE_LOOKS; i++) {
        int64_t theirs_ns = 0, begin_ns = clock_monotonic_ns();
        if (!look(ctx, &theirs_ns))
            return;
        int64_t took_ns = clock_monotonic_ns() - begin_ns;
        if (took_ns >= shortest_ns)
            continue;
        shortest_ns = took_ns;
        c->theirs_ns[which] = theirs_ns;
        c->ours_ns[which] = begin_ns + took_ns / 2;
    }
}
enum { TRACE_DRIFT_NS = 1000 * 1000000 }; /* over so long it shows that no clock is exact */
/* Their time as ours. Grows with it. */
static inline int64_t trace_clock_map(const struct trace_clock *c, int64_t theirs_ns)
{
    int64_t theirs = c->theirs_ns[1] - c->theirs_ns[0], ours = c->ours_ns[1] - c->ours_ns[0];
    int64_t since_ns = theirs_ns - c->theirs_ns[0];
    if (theirs < TRACE_DRIFT_NS) /* the two looks are less exact than the clocks */
        return c->ours_ns[0] + since_ns + (ours - theirs) / 2;
    return c->ours_ns[0] + (int64_t)((double)since_ns * ((double)ours / (double)theirs));
}

/* Room for one more event, of that stream ("": none), all else 0; NULL: there is none any more.
 * From any thread. An event whose end_ns stays 0 is none. */
struct trace_event *trace_add_event(struct trace *trace, enum trace_kind kind, const char *stream);

/* For device.c. */
void trace_range_begin(struct stream *s, enum trace_kind kind, const struct stream_range *range);
void trace_range_end(struct stream *s);
void trace_memory(struct device *device);
#endif
