/* For tests of launchers that meet over real sockets, all in this process. */
#ifndef SHOAL_TESTS_AGENT_MEETINGS_H
#define SHOAL_TESTS_AGENT_MEETINGS_H

#include "agent/comm/meeting.h"

enum { MEETINGS = 3 };

/* Of two to three nodes with two ranks each, and no patience. */
extern const struct meeting_options meetings_plain;

int meetings_free_port(void);
/* Of this machine; texts and patience that are not set are filled in. */
struct meeting *meetings_open(int port, int node, const struct meeting_options *other);
/* All of them wait for their first round; NULL in nodes: it is not there. */
void meetings_ready(struct meeting *const nodes[MEETINGS]);
/* Lets all of them work until this one has something to say. */
struct meeting_event meetings_pump(struct meeting *const nodes[MEETINGS], int node);
/* All hear of the same round. */
void meetings_begin(struct meeting *const nodes[MEETINGS], int count, bool has_changed);
/* Lets it work, for so long, with nothing to say. */
void meetings_rest(struct meeting *node, int64_t ms);
#endif
