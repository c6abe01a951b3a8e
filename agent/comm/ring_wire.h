/* What the ranks of a ring send each other beside the data: the address in the store, the hello on
 * a new connection, the header of every pass. Pure: sockets are ring's and ring_bootstrap's. */
#ifndef SHOAL_AGENT_COMM_RING_WIRE_H
#define SHOAL_AGENT_COMM_RING_WIRE_H

#include "agent/comm/store.h"

#include <stddef.h>
#include <stdint.h>

enum { RING_TOKEN_BYTES = 17 }; /* 16 hex digits and the terminator */

/* Where a rank listens. The store's text is "token port host socket_name". */
struct ring_address {
    char token[RING_TOKEN_BYTES];       /* random: the hello must repeat it */
    char socket_name[RING_TOKEN_BYTES]; /* of the Unix socket, random as well */
    char host[STORE_HOST_MAX];          /* "-": the store's machine */
    int port;
};

void ring_address_encode(const struct ring_address *address, char ret_text[STORE_VALUE_MAX]);
/* ERR_INPUT if it is no such text. */
int ring_address_decode(const char *text, struct ring_address *ret_address, struct error *err);

/* A connecting rank sends this first. Only the store knows the token, so that neither a stranger
 * nor a rank of an earlier attempt passes for the neighbour. The token is not the Unix socket's
 * name, which every user of the machine can read. */
struct ring_hello {
    char token[RING_TOKEN_BYTES];
    int32_t rank; /* in the ring */
};

/* ERR_INPUT unless the hello has this token and rank. */
int ring_hello_check(const struct ring_hello *hello, const char token[RING_TOKEN_BYTES], int rank,
                     struct error *err);

/* Every pass begins with this, so that ranks that run different collectives find out. */
struct ring_header {
    uint32_t sequence; /* of the pass, from 0 */
    char name[20];     /* of the collective */
    int64_t total_bytes;
};

struct ring_header ring_header_of(uint32_t sequence, const char *name, int64_t total_bytes);
/* ERR_INPUT names both collectives unless `theirs`, which came from rank `from`, equals ours. */
int ring_header_check(const struct ring_header *theirs, const struct ring_header *ours, int from,
                      struct error *err);
#endif
