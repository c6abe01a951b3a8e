/* Private to rendezvous.c (joining, the store, leaving) and rendezvous_watch.c (the thread that
 * reads what rank 0 sends). */
#ifndef SHOAL_AGENT_COMM_RENDEZVOUS_INTERNAL_H
#define SHOAL_AGENT_COMM_RENDEZVOUS_INTERNAL_H

#include "agent/comm/rendezvous.h"
#include "agent/comm/rendezvous_server.h"
#include "agent/comm/rendezvous_wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum rendezvous_state { JOINING, RUNNING, BROKEN, SENT_AWAY, REFUSED, GONE };

/* A set or get whose reply has not come. */
struct request {
    int32_t number;
    bool replied;
    struct wire_message reply;
    struct request *next;
};

struct rendezvous {
    struct store head;
    struct rendezvous_options options;
    struct rendezvous_server *server; /* rank 0's; else NULL */
    int fd;
    pthread_t watcher;
    bool introduced, is_known; /* the watcher thread's: WIRE_JOIN is sent; rank 0 has answered it */
    bool is_stranger;          /* likewise: rank 0 hung up on the last WIRE_JOIN */
    atomic_bool closing;       /* WIRE_GOODBYE is sent */
    pthread_mutex_t send_mutex; /* held while a message is sent: messages must not mix */
    pthread_mutex_t mutex;      /* guards the fields below */
    pthread_cond_t changed;
    enum rendezvous_state state;
    bool is_welcomed;             /* this attempt to join has reached RUNNING */
    char reason[STORE_VALUE_MAX]; /* of the state, as the server has sent it last */
    int32_t requests_made;
    struct request *requests;
};

/* What is told of a rank 0 that does not know this process. */
extern const char rendezvous_hung_up[];

/* From any thread. */
int rendezvous_send(struct rendezvous *r, struct wire_message *message, struct error *err);
/* reason NULL: the old one stays. */
void rendezvous_set_state(struct rendezvous *r, enum rendezvous_state state, const char *reason);

/* The watcher thread, of a struct rendezvous: the only one that reads from the connection. */
void *rendezvous_watch(void *arg);
#endif
