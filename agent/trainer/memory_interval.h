/* How often a run saves to memory where checkpoint.memory_every_steps is `auto`: so often that it
 * costs at most the 100th part of the time that steps take. Pure: times are arguments. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_INTERVAL_H
#define SHOAL_AGENT_TRAINER_MEMORY_INTERVAL_H

#include <stdint.h>

enum { MEMORY_INTERVAL_PART = 100, MEMORY_INTERVAL_MOST = 100000 };

/* What a rank has measured since its start, in microseconds. */
struct memory_cost {
    int64_t steps_us; /* of all steps since then */
    int64_t spent_us; /* for all snapshots since then, and for agreeing on them */
    int64_t step_us;  /* of one step, as they were lately */
    int64_t save_us;  /* of one snapshot: the last, or what it will probably be */
};

/* After how many steps the next snapshot is due, by what each of `count` ranks has measured: the
 * slowest save and the fastest step count. 1 .. MEMORY_INTERVAL_MOST, after which the ranks look
 * again. */
int64_t memory_interval(const struct memory_cost *ranks, int count);
#endif
