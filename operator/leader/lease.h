/* Leader election as a pure state machine, after client-go's leaderelection. The holder renews one
 * Lease (coordination.k8s.io/v1). Others may take it once they have seen it unchanged for its whole
 * duration *by their own clock*: nobody compares clocks. A write carries the resourceVersion that
 * was read, so the API server refuses one of two writers. The holder stops leading renew_deadline
 * after it sent its last successful renewal, well before anyone else may take the lease. The caller
 * feeds outcomes and gets the next request to send. No I/O, no clock.
 *
 * read -> held by another: wait, read again ... -> free, ours or expired: write -> held: write
 * again every retry_ms ...
 *
 * Times are of the monotonic clock; wall clock times are written for people only. */
#ifndef SHOAL_OPERATOR_LEADER_LEASE_H
#define SHOAL_OPERATOR_LEADER_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEASE_MAX_HOLDER  320 /* bytes, with its end: a pod's name and a unique part */
#define LEASE_MAX_VERSION 64
#define LEASE_MAX_TIME    40

/* The fields of the Lease object. */
struct lease_record {
    bool exists;
    char holder[LEASE_MAX_HOLDER];   /* holderIdentity; "": none, the lease was released */
    int64_t duration_s;              /* leaseDurationSeconds */
    int64_t transitions;             /* leaseTransitions */
    char acquired[LEASE_MAX_TIME];   /* acquireTime, MicroTime as text */
    char renewed[LEASE_MAX_TIME];    /* renewTime */
    char version[LEASE_MAX_VERSION]; /* metadata.resourceVersion */
};

struct lease_options {
    char identity[LEASE_MAX_HOLDER]; /* unique to this process, for ever */
    int64_t duration_ms;             /* 15000 by default; whole seconds */
    int64_t renew_deadline_ms;       /* 10000 by default; less than the duration */
    int64_t retry_ms;                /* 2000 by default; less than the deadline */
    uint64_t seed;                   /* of the jitter between candidates */
};

enum lease_action {
    LEASE_WAIT,   /* an answer is pending, or nothing is due until lease_due */
    LEASE_READ,   /* GET the lease */
    LEASE_CREATE, /* POST the record */
    LEASE_UPDATE, /* PUT the record with the resourceVersion of the stored one */
    LEASE_OVER,   /* it is released, or was not held */
};

enum lease_outcome {
    LEASE_STORED,  /* read or written: the record is the stored one */
    LEASE_ABSENT,  /* 404: there is no such lease */
    LEASE_REFUSED, /* 409: another version, or it exists already; nothing was written */
    LEASE_UNKNOWN, /* no answer, or an error: the write may have been done */
};

/* Private to lease.c. */
struct lease {
    struct lease_options options;
    struct lease_record record; /* as last seen */
    bool is_fresh;              /* the record was read, and no outcome contradicts it */
    bool may_be_ours;           /* a write of ours without an answer may be the stored one */
    bool is_releasing;
    int64_t observed_ms; /* when this version of the record was first seen */
    int64_t held_until_ms;
    enum lease_action in_flight; /* LEASE_WAIT: none */
    int64_t sent_ms, due_ms;
};

void lease_init(struct lease *lease, const struct lease_options *options);

/* The next request to send. A read or write is in flight until lease_feed; *ret_record is what to
 * write. */
enum lease_action lease_next(struct lease *lease, int64_t now_ms, int64_t wall_ms,
                             struct lease_record *ret_record);

/* Its outcome; stored: for LEASE_STORED. */
void lease_feed(struct lease *lease, enum lease_outcome outcome, const struct lease_record *stored,
                int64_t now_ms);

/* Whether we are the leader at now_ms. Ask with a fresh time before each write. */
bool lease_is_held(const struct lease *lease, int64_t now_ms);

/* Releases the lease: lease_is_held is false from now on, and lease_next writes it without a
 * holder. Everything that the holder started must have ended before. */
void lease_release(struct lease *lease, int64_t now_ms);

/* When lease_next or lease_is_held changes by time alone; INT64_MAX: never. */
int64_t lease_due(const struct lease *lease, int64_t now_ms);
#endif
