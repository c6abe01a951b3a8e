#include "operator/progress/ask_times.h"

enum { GONE_ASKS = 2 }; /* one is a rank that starts again, or a busy node */

int64_t ask_times_first(int64_t now_ms, int64_t interval_ms, uint64_t of_job)
{
    return now_ms + (int64_t)(of_job % (uint64_t)interval_ms);
}

bool ask_times_quiet(const struct ask_times *times)
{
    if (times->answered)
        return times->unanswered >= GONE_ASKS;
    return times->stranger || times->wait_ms >= ASK_WAIT_MAX_MS;
}

int64_t ask_times_next(struct ask_times *times, enum ask_outcome outcome, int64_t now_ms,
                       int64_t interval_ms)
{
    if (outcome == ASK_HEARD) {
        *times = (struct ask_times){.answered = true};
        return now_ms + interval_ms;
    }
    times->unanswered++;
    /* What was an agent is one again soon: its ranks start again, or a proxy answers for it. How
     * long it was none is told of no earlier than it is asked. */
    if (times->answered)
        return now_ms + interval_ms;
    times->stranger = outcome == ASK_STRANGER;
    if (times->stranger)
        return ASK_NEVER;
    int64_t most_ms = interval_ms > ASK_WAIT_MAX_MS ? interval_ms : ASK_WAIT_MAX_MS;
    int64_t wait_ms = times->wait_ms ? times->wait_ms : interval_ms;
    times->wait_ms = 2 * wait_ms < most_ms ? 2 * wait_ms : most_ms;
    return now_ms + wait_ms;
}
