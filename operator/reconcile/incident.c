#include "operator/reconcile/incident.h"

#include "base/contract.h"

#include <string.h>

#define INCIDENT_MS (10 * 60 * 1000)

bool incident_lost_peer(const struct pod *pod)
{
    return pod->end.container && strcmp(pod->end.container, API_CONTAINER_NAME) == 0 &&
           (pod->end.code == EXIT_RETRYABLE || pod->end.code == EXIT_TERMINATED);
}

/* How many incidents there are that the replica may still have a part in. */
static int32_t open_to(const struct history *history, const struct replica_history *replica,
                       int64_t now_ms)
{
    bool recent = history->incident_ms && now_ms - history->incident_ms < INCIDENT_MS;
    return recent ? history->incidents - replica->incidents : 0;
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static void open_incidents(struct history *history, int32_t count, int64_t now_ms)
{
    history->incidents += count;
    history->incident_ms = now_ms;
}

int32_t incident_count(struct history *history, struct replica_history *replica, int32_t ends,
                       bool lost_peer, int64_t now_ms)
{
    int32_t open = open_to(history, replica, now_ms);
    /* A lost peer belongs to any incident that its replica had no part in yet. Another exit
     * explains only incidents that lost peers opened: their cause was missing. */
    int32_t known = least(ends, lost_peer ? open : least(open, history->incidents_without_cause));
    int32_t counted = ends - known;
    if (counted > 0) {
        open_incidents(history, counted, now_ms);
        history->failures += counted;
        history->incidents_without_cause = lost_peer ? counted : 0;
    } else if (!lost_peer) {
        history->incidents_without_cause -= known;
    }
    replica->incidents = history->incidents;
    return counted;
}

void incident_leave(struct history *history, struct replica_history *replica, int64_t now_ms)
{
    if (!history->incidents_without_cause || open_to(history, replica, now_ms) == 0)
        open_incidents(history, 1, now_ms);
    history->incidents_without_cause = 0;
    replica->incidents = history->incidents;
    replica->left = true;
}
