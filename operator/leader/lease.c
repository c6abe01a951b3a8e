#include "operator/leader/lease.h"

#include "base/backoff.h"
#include "base/clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The duration that means nothing to others: for a lease given up, as client-go writes it. */
enum { RELEASED_DURATION_S = 1 };

void lease_init(struct lease *lease, const struct lease_options *options)
{
    assert(*options->identity && 0 < options->retry_ms &&
           options->retry_ms < options->renew_deadline_ms &&
           options->renew_deadline_ms < options->duration_ms && options->duration_ms % 1000 == 0);
    *lease = (struct lease){.options = *options, .held_until_ms = INT64_MIN, .due_ms = INT64_MIN};
}

static bool is_ours(const struct lease *lease)
{
    return strcmp(lease->record.holder, lease->options.identity) == 0;
}

/* Somebody else's lease is respected even if the object was deleted since: its holder
 * may not know. */
static bool may_take(const struct lease *lease, int64_t now_ms)
{
    const struct lease_record *record = &lease->record;
    int64_t duration_ms =
        record->duration_s > 0 ? record->duration_s * 1000 : lease->options.duration_ms;
    return !*record->holder || is_ours(lease) || now_ms - lease->observed_ms >= duration_ms;
}

/* Candidates that have waited for the same lease shall not come at the same time. */
static void schedule_retry(struct lease *lease, int64_t now_ms)
{
    int64_t retry_ms = lease->options.retry_ms;
    lease->is_fresh = false;
    lease->due_ms = now_ms + retry_ms +
                    (int64_t)(backoff_random(&lease->options.seed) % (uint64_t)(retry_ms / 5 + 1));
}

static struct lease_record next_record(const struct lease *lease, int64_t wall_ms)
{
    struct lease_record next = lease->record;
    clock_format_micro(wall_ms, next.renewed, sizeof next.renewed);
    if (lease->is_releasing) {
        next.holder[0] = '\0';
        next.duration_s = RELEASED_DURATION_S;
        memcpy(next.acquired, next.renewed, sizeof next.acquired);
        return next;
    }
    next.duration_s = lease->options.duration_ms / 1000;
    if (is_ours(lease))
        return next;
    if (lease->record.exists)
        next.transitions++;
    memcpy(next.holder, lease->options.identity, sizeof next.holder);
    memcpy(next.acquired, next.renewed, sizeof next.acquired);
    return next;
}

enum lease_action lease_next(struct lease *lease, int64_t now_ms, int64_t wall_ms,
                             struct lease_record *ret_record)
{
    if (lease->in_flight != LEASE_WAIT)
        return LEASE_WAIT;
    if (lease->is_releasing && !lease->may_be_ours)
        return LEASE_OVER;
    if (now_ms < lease->due_ms)
        return LEASE_WAIT;
    if (lease->is_fresh && !may_take(lease, now_ms)) {
        schedule_retry(lease, now_ms);
        return LEASE_WAIT;
    }
    lease->sent_ms = now_ms;
    if (!lease->is_fresh)
        return lease->in_flight = LEASE_READ;
    *ret_record = next_record(lease, wall_ms);
    /* Set before the answer, which may be lost: from here on a release must clear the lease,
     * although we do not lead. */
    lease->may_be_ours = true;
    return lease->in_flight = lease->record.exists ? LEASE_UPDATE : LEASE_CREATE;
}

static void feed_stored(struct lease *lease, const struct lease_record *stored, int64_t now_ms)
{
    assert(stored->exists);
    /* Only our own clock counts, from the moment that we saw the record change (client-go's
     * observedTime). renewTime is the holder's clock, and two nodes' clocks may differ by more than
     * a lease lasts. */
    if (!lease->record.exists || strcmp(stored->version, lease->record.version) != 0)
        lease->observed_ms = now_ms;
    lease->record = *stored;
    lease->may_be_ours = is_ours(lease);
    lease->is_fresh = true;
    if (!is_ours(lease))
        lease->held_until_ms = INT64_MIN;
    lease->due_ms = now_ms;
    if (lease->in_flight == LEASE_READ)
        return;
    lease->due_ms = lease->sent_ms + lease->options.retry_ms;
    if (is_ours(lease))
        /* Counted from the sending: others see the new record later than that, and wait for the
         * longer lease duration. So we have stopped before anyone may take over, however slow the
         * answer was. */
        lease->held_until_ms = lease->sent_ms + lease->options.renew_deadline_ms;
}

static void feed_absent(struct lease *lease, int64_t now_ms)
{
    lease->record.exists = false;
    lease->may_be_ours = false;
    lease->is_fresh = true;
    lease->due_ms = now_ms;
}

void lease_feed(struct lease *lease, enum lease_outcome outcome, const struct lease_record *stored,
                int64_t now_ms)
{
    assert(lease->in_flight != LEASE_WAIT);
    if (outcome == LEASE_STORED)
        feed_stored(lease, stored, now_ms);
    else if (outcome == LEASE_ABSENT && lease->in_flight == LEASE_READ)
        feed_absent(lease, now_ms);
    else
        schedule_retry(lease, now_ms); /* and read what is there */
    lease->in_flight = LEASE_WAIT;
}

bool lease_is_held(const struct lease *lease, int64_t now_ms)
{
    return !lease->is_releasing && now_ms < lease->held_until_ms;
}

void lease_release(struct lease *lease, int64_t now_ms)
{
    lease->is_releasing = true;
    lease->due_ms = now_ms;
}

int64_t lease_due(const struct lease *lease, int64_t now_ms)
{
    /* The end of the lease wakes the operator even while a renewal is in flight: it must stop
     * writing at that moment. */
    int64_t due_ms = lease_is_held(lease, now_ms) ? lease->held_until_ms : INT64_MAX;
    if (lease->in_flight != LEASE_WAIT || (lease->is_releasing && !lease->may_be_ours))
        return due_ms;
    return lease->due_ms < due_ms ? lease->due_ms : due_ms;
}
