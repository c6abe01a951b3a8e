/* Where a process's time goes: each second from its start has one kind, so that the kinds add up to
 * the time that went by. Of the goodput of a job, what lies inside a process; the words are those
 * of Google's badput. Pure: time is an argument. */
#ifndef SHOAL_AGENT_TELEMETRY_TIME_ACCOUNT_H
#define SHOAL_AGENT_TELEMETRY_TIME_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

enum time_kind {
    TIME_INITIALIZATION, /* of the process: model, data, optimizer, device */
    TIME_PEER_WAIT,      /* until all ranks have met */
    TIME_RESTORE,        /* a checkpoint is loaded */
    TIME_DATA,           /* the step waited for its batch */
    TIME_STEP,           /* a step: the good */
    TIME_LOST_WORK,      /* a step that an earlier process had done, or that was not completed */
    TIME_EVALUATION,
    TIME_SAVE,  /* a checkpoint held up the steps */
    TIME_OTHER, /* after the last step: what the end takes */
    TIME_KINDS,
};
const char *time_kind_name(enum time_kind kind); /* "initialization", "peerWait", ... */

struct time_account {
    int64_t us[TIME_KINDS]; /* they add up to until_us - begin_us */
    int64_t begin_us, until_us;
    enum time_kind going_on; /* what a failure now ends */
    int64_t resumed_step;    /* that it goes on from */
};

struct time_account time_account_open(int64_t begin_us);

/* All since the last time was of this kind. Time that does not go on is none. */
void time_account_add(struct time_account *account, enum time_kind kind, int64_t now_us);
/* All since then was what is going on. */
void time_account_fail(struct time_account *account, int64_t now_us);
/* All since then was a step, of which data_s seconds (NaN: not known) went to its batch. */
void time_account_step(struct time_account *account, double data_s, bool done_before,
                       int64_t now_us);

double time_account_s(const struct time_account *account, enum time_kind kind);
#endif
