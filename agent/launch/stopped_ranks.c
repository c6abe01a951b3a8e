#include "agent/launch/stopped_ranks.h"

bool stopped_ranks_may_end(const struct stopped_ranks_view *v)
{
    return v->running > 0 && v->stopped == v->running && v->elsewhere > 0 && v->restarts_left > 0 &&
           v->hang_is_restart && !v->is_ending;
}

bool stopped_ranks_look(struct stopped_ranks *s, bool are_stopped, int64_t now_ms, int64_t most_ms)
{
    int64_t passed_ms = now_ms - s->looked_ms;
    if (passed_ms > 2 * STOPPED_RANKS_LOOK_MS)
        passed_ms = 2 * STOPPED_RANKS_LOOK_MS;
    s->for_ms = are_stopped && s->were_stopped ? s->for_ms + passed_ms : 0;
    s->were_stopped = are_stopped;
    s->looked_ms = now_ms;
    return are_stopped && s->for_ms > most_ms;
}
