/* Ranks of one process that die where a test says: before one of their collectives, of which every
 * step, evaluation, save and start has some. The peers find out as they do of any rank that is
 * gone. */
#ifndef SHOAL_TESTS_AGENT_DOOM_H
#define SHOAL_TESTS_AGENT_DOOM_H

#include "agent/comm/comm.h"
#include "agent/health/activity.h"

struct doom {
    enum rank_phase phase;
    int nth; /* of its collectives in that phase: before that one it dies; 0: it lives on */
};

/* The rank of `world` dies so, in that or in what is split from it. All that is given lives until
 * doom_lift(), called before `world` is closed. That returns whether the rank has died. */
struct doomed *doom_put(struct comm *world, struct activity *activity, const struct doom *doom);
bool doom_lift(struct doomed *doomed);

#endif
