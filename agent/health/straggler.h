/* Which ranks are slow, from what all ranks tell: whose own compute time (forward and backward,
 * waits left out) is more than 1.3 times the median rank's in 5 windows running. Pure. */
#ifndef SHOAL_AGENT_HEALTH_STRAGGLER_H
#define SHOAL_AGENT_HEALTH_STRAGGLER_H

#include "agent/health/rank_report.h"

enum { STRAGGLER_WINDOWS = 5, STRAGGLER_WINDOW_MS = 10 * 1000, STRAGGLER_WINDOW_STEPS = 3 };
#define STRAGGLER_RATIO 1.3

struct stragglers;

struct stragglers *stragglers_open(int ranks);
void stragglers_close(struct stragglers *stragglers); /* NULL-safe */

/* reports[ranks]; NULL: not heard. A window ends when it is so long and all ranks have done so many
 * steps in it. Returns whether one has: only then do the answers below change. */
bool stragglers_tick(struct stragglers *stragglers, const struct rank_report *const reports[],
                     int64_t now_ms);

bool straggler_is_slow(const struct stragglers *stragglers, int rank); /* for 5 windows */
bool straggler_is_news(const struct stragglers *stragglers, int rank); /* since this window */
/* Its compute time over the median's in the last window; 0: there was none. */
double straggler_ratio(const struct stragglers *stragglers, int rank);
#endif
