/* TCP and Unix sockets with deadlines, as the ring and the rendezvous use them. Knows no protocol.
 * All sockets are close-on-exec and non-blocking; TCP ones have no delay. Deadlines are in
 * clock_monotonic_ms() time. */
#ifndef SHOAL_AGENT_NET_H
#define SHOAL_AGENT_NET_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { NET_INTERFACE_BYTES = 64 }; /* of a network interface's name, with the terminator */

/* Listens under a name in the abstract namespace of Unix sockets. */
int net_listen_unix(const char *name, int *ret_fd, struct error *err);

/* One attempt at every address of the host. Errors: ERR_TIMEOUT; ERR_NOT_FOUND if the name does not
 * resolve; ERR_IO. */
int net_connect(const char *host, int port, int64_t deadline_ms, int *ret_fd, struct error *err);
int net_connect_unix(const char *name, int *ret_fd, struct error *err);

/* Takes a connection that waits, or returns -1. Not an error: it may have gone. */
int net_accept(int listener);

/* Sends all bytes. Errors: ERR_TIMEOUT; ERR_PEER if the connection ended. */
int net_send(int fd, const void *data, size_t bytes, int64_t deadline_ms, struct error *err);

/* The address in numbers of a host that is the loopback by its name or address, so that nobody
 * reaches it from elsewhere; NULL if it is none, or a name that only resolves to it here. */
const char *net_loopback(const char *host);
/* Numeric addresses of a connection's ends; "" for a Unix socket. */
void net_local_host(int fd, char *out, size_t out_bytes);
void net_peer_host(int fd, char *out, size_t out_bytes);
/* The first address of a network interface. Errors: ERR_CONFIG names it. */
int net_interface_host(const char *interface, char *out, size_t out_bytes, struct error *err);
/* Whether NCCL_SOCKET_IFNAME's `pattern` means an interface: names or, without "=" before them,
 * beginnings of names, separated by commas; after "^" those that it does not mean. */
bool net_interface_is_meant(const char *pattern, const char *interface);
/* The interface that others are to reach this process at, by the environment's GLOO_SOCKET_IFNAME
 * and NCCL_SOCKET_IFNAME (NULL: not set): of Gloo's list it is the first. NCCL's is a pattern, and
 * for its own sockets first: it is the first meant that is up and has an address, the loopback only
 * if the pattern names it; one that means none here is passed over, and so it is where ranks meet
 * on the loopback (master: rank 0's host). "": the one that leads to rank 0. */
void net_interface_asked(const char *master, const char *gloo, const char *nccl,
                         char out[NET_INTERFACE_BYTES]);

/* How long to wait before the next of a series of attempts: doubles from 20 ms to 1 s, and never
 * beyond the deadline. Waits, and returns the number to give next time. */
int net_back_off(int attempt, int64_t deadline_ms);

#ifdef __cplusplus
}
#endif
#endif
