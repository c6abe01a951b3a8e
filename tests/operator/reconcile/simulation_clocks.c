/* Time in a simulation: the limits that a job has, the clock, and pods that end before they ran. */
#include "tests/operator/reconcile/simulation.h"

#include "base/mem.h"

#include <inttypes.h>

#define below  simulation_below
#define chance simulation_chance

/* Most are over before a history is. */
static struct optional draw_limit(struct simulation *s, int max_s)
{
    bool set = chance(s, 60);
    return (struct optional){.set = set, .value = set ? below(s, max_s) : 0};
}

void simulation_draw_limits(struct simulation *s)
{
    struct run_policy *policy = &s->truth->job->run_policy;
    if (!s->is_limited)
        return;
    policy->active_deadline_seconds = draw_limit(s, 200);
    policy->ttl_seconds_after_finished = draw_limit(s, 100);
    str_printf(&s->history, "limits: deadline %d, %" PRId64 " s; TTL %d, %" PRId64 " s\n",
               policy->active_deadline_seconds.set, policy->active_deadline_seconds.value,
               policy->ttl_seconds_after_finished.set, policy->ttl_seconds_after_finished.value);
}

void simulation_draw_clocks(struct simulation *s)
{
    s->is_limited = chance(s, 40);
    s->is_unwelcome = chance(s, 10);
    simulation_draw_limits(s);
}

void simulation_move_clock(struct simulation *s)
{
    int64_t *now_ms = &s->truth->now_ms;
    *now_ms += s->pace_ms * below(s, 3);
    if (chance(s, 2))
        *now_ms += 1000 * 3600;
    if (chance(s, 2))
        *now_ms = *now_ms > 601000 ? *now_ms - 600000 : 1000;
}

bool simulation_reject_pod(struct simulation *s, struct pod *pod)
{
    /* the room that others make for worker 0 is often no good */
    bool is_unlucky = s->is_crowded && pod->type == REPLICA_WORKER && pod->index == 0;
    if (!(s->is_unwelcome && chance(s, 70)) && !(is_unlucky && chance(s, 50)))
        return false;
    pod->phase = POD_FAILED;
    pod->disrupted = true;
    return true;
}
