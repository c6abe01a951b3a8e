/* Why a round of local ranks ended: how close a rank's exit is to the cause, and the words for it.
 * Pure. */
#ifndef SHOAL_AGENT_LAUNCH_ROOT_CAUSE_H
#define SHOAL_AGENT_LAUNCH_ROOT_CAUSE_H

#include "agent/launch/heartbeat.h"
#include "agent/launch/last_words.h"
#include "base/str.h"

#include <sys/types.h>

/* How a local rank ended. */
struct rank_exit {
    int rank, local_rank;
    pid_t pid;
    int status;                        /* as waitpid() has it */
    bool is_stuck;                     /* its heartbeats stopped, so the launcher killed it */
    char doing[HEARTBEAT_DOING_BYTES]; /* then: what the last one said; "": nothing */
    bool is_too_slow; /* it did not end within LAUNCH_GRACE_S, so the launcher killed it */
    struct last_words words;
};

/* What an exit says about the cause of the round's end; more is closer to it. */
enum exit_severity {
    CONSEQUENCE,  /* it lost a peer or was asked to end: another rank failed first */
    REPORTED,     /* it failed, and has logged why */
    UNREPORTED,   /* a signal killed it before it could log anything */
    BAD_HARDWARE, /* its machine's hardware is bad, which explains whatever else ended */
};

/* 128 + n for signal n; EXIT_RETRYABLE for a rank that was stuck; EXIT_CONFIG for one that told of
 * what trying again cannot help, however it ended then. */
int rank_exit_code(const struct rank_exit *rank);
enum exit_severity rank_exit_severity(const struct rank_exit *rank);
/* Whether another round would end the same: EXIT_CONFIG, it waited in vain for the other ranks to
 * join, what it computes is no number any more, or its machine's hardware is bad.
 * meets_anew: the launchers meet before the round, which has another port and those that are there:
 * then a port that was taken, or a rank that did not come, is no reason to end. */
bool rank_exit_would_repeat(const struct rank_exit *rank, bool meets_anew);

/* What the exits of a round's local ranks say together of a stop, whatever their order. */
struct stop_signs {
    bool by_peer; /* a rank that no signal had asked stopped with the others */
    bool here;    /* a rank was asked to, and not by its launcher */
};
void stop_signs_add(struct stop_signs *signs, const struct rank_exit *rank);
/* Whether the round, whose root cause is `cause`, ended since a peer of another launcher was asked
 * to stop: its pod was deleted or evicted, or its hardware is bad. That is nobody's failure, and no
 * loop of failures. */
bool stop_signs_name_peer(const struct stop_signs *signs, const struct rank_exit *cause);

/* Adds "rank 2 (local rank 0, pid 7) on PLACE failed at WHEN: exit code 1: why". */
void rank_exit_describe(const struct rank_exit *rank, const char *place, const char *when,
                        struct str *out);
/* Of a consequence. Adds "a peer was lost (why)". */
void rank_exit_describe_loss(const struct rank_exit *rank, struct str *out);
#endif
