/* Leader election as a pure step machine, after client-go's leaderelection: one Lease
 * (coordination.k8s.io/v1) that its holder renews, and that others may take once they have seen it
 * unchanged for its whole duration *by their own clock*; nobody looks at another's clock. A write
 * carries the version that was read, so of two writers one is refused. The holder stops believing
 * in itself renew_deadline after the last renewal that it knows of, counted from when that was
 * sent, which is well before anyone else may take the lease. It is told outcomes and says what to
 * request next; it does no I/O and reads no clock.
 *
 *   read -> somebody else's: wait, read again ...
 *        -> free, ours or expired: write -> held: write again every retry_ms ...
 *
 * Times are of the monotonic clock; wall clock times are written for people only. */
#ifndef SHOAL_OPERATOR_LEADER_LEASE_H
#define SHOAL_OPERATOR_LEADER_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LEASE_MAX_HOLDER  320 /* bytes, with its end: a pod's name and a unique part */
#define LEASE_MAX_VERSION 64
#define LEASE_MAX_TIME    40

/* What the Lease object says. */
struct lease_record {
    bool exists;
    char holder[LEASE_MAX_HOLDER];   /* holderIdentity; "": nobody, it was released */
    int64_t duration_s;              /* leaseDurationSeconds */
    int64_t transitions;             /* leaseTransitions */
    char acquired[LEASE_MAX_TIME];   /* acquireTime, MicroTime as text */
    char renewed[LEASE_MAX_TIME];    /* renewTime */
    char version[LEASE_MAX_VERSION]; /* metadata.resourceVersion */
};

struct lease_options {
    char identity[LEASE_MAX_HOLDER]; /* of this process and no other, ever */
    int64_t duration_ms;             /* 15000; whole seconds */
    int64_t renew_deadline_ms;       /* 10000: less than the duration */
    int64_t retry_ms;                /* 2000: less than the deadline */
    uint64_t seed;                   /* of the jitter between candidates */
};

enum lease_want {
    LEASE_WAIT,   /* for an answer, or until lease_due */
    LEASE_READ,   /* GET the lease */
    LEASE_CREATE, /* POST the record */
    LEASE_UPDATE, /* PUT the record; its version must be the stored one's */
    LEASE_OVER,   /* it was released, or there was nothing to release */
};

enum lease_outcome {
    LEASE_STORED,  /* read, or written: this is what is stored */
    LEASE_ABSENT,  /* there is no such lease */
    LEASE_REFUSED, /* another version, or it exists already: nothing was written */
    LEASE_UNKNOWN, /* no answer, or an error: it may have been written */
};

/* To be read by lease.c only. */
struct lease {
    struct lease_options options;
    struct lease_record record; /* as last seen */
    bool is_fresh;              /* nothing says that the record has changed since */
    bool may_be_ours;           /* a write of ours may be what is stored */
    bool is_releasing;
    int64_t observed_ms; /* when the record was first seen as it is */
    int64_t held_until_ms;
    enum lease_want in_flight; /* LEASE_WAIT: nothing */
    int64_t sent_ms, due_ms;
};

void lease_init(struct lease *lease, const struct lease_options *options);

/* What to do now. A want to read or write is in flight until lease_feed; *ret_record is then what
 * to write. */
enum lease_want lease_next(struct lease *lease, int64_t now_ms, int64_t wall_ms,
                           struct lease_record *ret_record);

/* How it ended; stored: for LEASE_STORED. */
void lease_feed(struct lease *lease, enum lease_outcome outcome, const struct lease_record *stored,
                int64_t now_ms);

/* Whether we are the leader at now_ms. Ask with a fresh time before acting on it. */
bool lease_is_held(const struct lease *lease, int64_t now_ms);

/* Gives it up: lease_is_held is false from now on, and lease_next frees it for others. All that its
 * holder started must have ended before. */
void lease_release(struct lease *lease, int64_t now_ms);

/* When lease_next, or the answer of lease_is_held, changes by time alone; INT64_MAX: never. */
int64_t lease_due(const struct lease *lease, int64_t now_ms);

#ifdef __cplusplus
}
#endif
#endif
