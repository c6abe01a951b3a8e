/* Private to rendezvous_server.c (sockets, heartbeats, the thread) and rendezvous_server_members.c
 * (what members ask and are told). All but opening and closing is the server thread's. */
#ifndef SHOAL_AGENT_COMM_RENDEZVOUS_SERVER_INTERNAL_H
#define SHOAL_AGENT_COMM_RENDEZVOUS_SERVER_INTERNAL_H

#include "agent/comm/rendezvous_proof.h"
#include "agent/comm/rendezvous_round.h"
#include "agent/comm/rendezvous_server.h"
#include "agent/comm/rendezvous_waits.h"
#include "agent/comm/rendezvous_wire.h"
#include "agent/comm/store_table.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

struct member {
    int fd;   /* -1: free */
    int rank; /* -1: has not joined */
    char host[STORE_HOST_MAX];
    char nonce[RENDEZVOUS_NONCE_BYTES];
    int64_t accepted_ms, heard_ms;
    struct wire_message in; /* the first in_bytes of it have arrived */
    size_t in_bytes;
};

struct rendezvous_server {
    int beat_every_ms, silence_ms; /* as in the options */
    struct rendezvous_health health;
    pthread_t thread;
    int listener, stop; /* stop: an eventfd that rendezvous_server_close() writes */
    struct store_table *table;
    struct member *members;
    struct pollfd *polls;   /* [2 + members_max]: listener, stop, one per connection */
    struct member **polled; /* [2 + members_max]: whose connection */
    struct rendezvous_waits *waits;
    struct rendezvous_round *round;
    int members_max;
    int size; /* ranks */
    bool leaving, has_lost;
    bool has_joiners;      /* ranks have joined since heartbeats were sent last */
    int64_t beat_ms;       /* when heartbeats were sent last */
    int64_t full_until_ms; /* accept() failed: it is tried again then */
};

/* A closed connection is not dropped here; a rank that accepts no bytes for long is. */
void rendezvous_server_send(struct rendezvous_server *s, struct member *m, enum wire_type type,
                            int32_t number, int32_t size, const char *text);
/* Sends to all that have joined. */
void rendezvous_server_broadcast(struct rendezvous_server *s, enum wire_type type,
                                 const char *text);
/* Reports the first loss of a round that has begun, and ends the round. */
void rendezvous_server_lose(struct rendezvous_server *s, int rank, const char *how,
                            const char *why);
/* Closes the connection. how: why the rank is lost; NULL: it left in order, or had not joined. */
void rendezvous_server_drop(struct rendezvous_server *s, struct member *m, const char *how);
/* Whose connection it is; of -1: a member that is free. NULL: nobody's. */
struct member *rendezvous_server_member(struct rendezvous_server *s, int fd);

/* Does what the message in m->in asks. */
void rendezvous_server_handle(struct rendezvous_server *s, struct member *m);
/* Asks after a rank that hangs. */
void rendezvous_server_check_health(struct rendezvous_server *s);
/* Answers requests whose deadline has passed. Returns the next deadline. */
int64_t rendezvous_server_expire_waits(struct rendezvous_server *s);
#endif
