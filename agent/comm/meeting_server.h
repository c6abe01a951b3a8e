/* Node 0's side of the meeting: keeps the roster, tells the others. Private to meeting.c. */
#ifndef SHOAL_AGENT_COMM_MEETING_SERVER_H
#define SHOAL_AGENT_COMM_MEETING_SERVER_H

#include "agent/comm/meeting.h"

struct meeting_server;

int meeting_server_open(const struct meeting_options *options, struct meeting_server **ret_server,
                        struct error *err);
void meeting_server_close(struct meeting_server *server, bool is_done);

/* Node 0 itself. */
void meeting_server_ready(struct meeting_server *server, const struct meeting_report *last,
                          int64_t now_ms);
int meeting_server_polls_most(const struct meeting_server *server);
nfds_t meeting_server_polls(const struct meeting_server *server, struct pollfd *ret_polls,
                            int64_t *ret_until_ms);
/* *ret_event: what happens to node 0 itself. */
void meeting_server_handle(struct meeting_server *server, int64_t now_ms,
                           struct meeting_event *ret_event);
void meeting_server_describe_wait(const struct meeting_server *server, struct str *out);
#endif
