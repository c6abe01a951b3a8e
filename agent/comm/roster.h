/* Who takes part in an elastic run: launchers of nodes come, leave and are lost, and from MIN to
 * MAX of them train together in rounds. Decides when a round begins and with whom, and when one
 * must end because its size changes; torchrun's rendezvous of --nnodes MIN:MAX does the same.
 * Node 0 is where they meet, and takes part in each round. Pure: time is an argument.
 *
 * A node that comes and goes must not keep the others from training. So between two regroups lies
 * at least the patience. That time doubles, up to ROSTER_REGROUP_MOST_MS, as often as the next one
 * follows within as long again. */
#ifndef SHOAL_AGENT_COMM_ROSTER_H
#define SHOAL_AGENT_COMM_ROSTER_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { ROSTER_NAME_BYTES = 128, ROSTER_REGROUP_MOST_MS = 10 * 60 * 1000 };

struct roster_options {
    int min, max;        /* nodes of a round */
    int expected;        /* nodes that the first round waits for */
    int64_t patience_ms; /* how long a round waits for more than min */
};

enum roster_loss {
    ROSTER_LEFT, /* it was asked to end: nobody waits for it */
    ROSTER_LOST, /* it may come back: the next round waits for it, with patience */
    ROSTER_DONE, /* its ranks came to the run's end, as the others' will: it is gone */
};

/* The reason of a dismissal after too many failures: the launcher has its own words for it. */
#define ROSTER_NO_RESTART "no restart is left"

enum roster_verdict {
    ROSTER_WAIT,
    ROSTER_START,   /* a round begins, with the nodes of roster_rank() >= 0 */
    ROSTER_REGROUP, /* the ranks of the round that runs are to end at a step's end: nodes join */
    ROSTER_DISMISS, /* no round follows for the nodes that roster_dismissal() names: they leave */
};

struct roster;

struct roster *roster_open(const struct roster_options *options);
void roster_close(struct roster *roster); /* NULL-safe */

/* The node waits for the next round: it is new, or its ranks have ended. known: nodes of the round
 * that it was in, 0 if in none, for a roster that has seen no round. name: of its pod, for
 * people. */
void roster_join(struct roster *roster, int node, int known, const char *name, int64_t now_ms);
/* How many restarts the node has left, whose ranks have failed: without one it takes no part in a
 * round that costs one, which is a round of the same nodes. A node of which nothing is said has
 * some. */
void roster_set_restarts(struct roster *roster, int node, int left);
/* At most so many nodes from now on, at least options.min. */
void roster_limit(struct roster *roster, int max);
/* The node's launcher is gone. Whether the ranks of a round that runs are to end because of it. */
bool roster_leave(struct roster *roster, int node, enum roster_loss how, int64_t now_ms);

/* What is to be done now. *ret_until_ms: when to ask again if nothing happens; INT64_MAX: never. */
enum roster_verdict roster_decide(struct roster *roster, int64_t now_ms, int64_t *ret_until_ms);

/* After ROSTER_DISMISS: why the node is to leave with what its ranks failed of; NULL: it is not.
 * Its launcher may return, and is waited for as one that was lost. */
const char *roster_dismissal(const struct roster *roster, int node);
/* When nodes that come may have the round that runs end, at the soonest; INT64_MIN: at once. */
int64_t roster_grows_ms(const struct roster *roster);

/* Of the last round: its nodes, and a node's number among them, in order; -1: it takes no part. */
int roster_nodes(const struct roster *roster);
int roster_rank(const struct roster *roster, int node);
/* Whether nodes were lost, left or joined between that round and the one before. */
bool roster_has_changed(const struct roster *roster);
/* Whether the node takes part in a round that runs. */
bool roster_is_running(const struct roster *roster, int node);
/* "2 nodes instead of 3: node 2 (mnist-worker-1) was lost"; "" if all is as it was. */
void roster_describe(const struct roster *roster, struct str *out);
/* "1 of 2 nodes are here; missing: node 1" */
void roster_describe_wait(const struct roster *roster, struct str *out);
#endif
