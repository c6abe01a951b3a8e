/* TCP and Unix sockets with deadlines, for the ring and the rendezvous. Knows no protocol. All
 * sockets are close-on-exec and non-blocking; TCP sockets have TCP_NODELAY. Deadlines are in
 * clock_monotonic_ms() time. */
#ifndef SHOAL_AGENT_COMM_NET_H
#define SHOAL_AGENT_COMM_NET_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NET_INTERFACE_BYTES = 64 }; /* of a network interface's name, with the terminator */

/* Listens on a name in the abstract namespace of Unix sockets. */
int net_listen_unix(const char *name, int *ret_fd, struct error *err);

/* For one net_connect() to a host that may be gone without a word: two SYNs to each of two
 * addresses. A caller that waits longer tries again: the name may have another address by then, and
 * between two attempts it hears whether the peer was lost. */
enum { NET_ATTEMPT_MS = 3000 };
int64_t net_attempt_deadline_ms(int64_t deadline_ms); /* from now on; never later than that one */

/* One attempt at every address of the host, each within its share of the time. Errors: ERR_TIMEOUT;
 * ERR_NOT_FOUND if the name does not resolve; ERR_IO. */
int net_connect(const char *host, int port, int64_t deadline_ms, int *ret_fd, struct error *err);
/* When the first of `count` addresses has had its share: one that is silent leaves the others
 * theirs. Pure. */
int64_t net_share_ms(int64_t now_ms, int64_t deadline_ms, int count);
int net_connect_unix(const char *name, int *ret_fd, struct error *err);

/* Accepts a connection, or returns -1 with errno: the peer may have gone again. */
int net_accept(int listener);

/* Sends all bytes. Errors: ERR_TIMEOUT; ERR_PEER if the connection ended. */
int net_send(int fd, const void *data, size_t bytes, int64_t deadline_ms, struct error *err);

/* The numeric address of "localhost" or of a loopback address; NULL for any other host, also for a
 * name that only resolves to the loopback on this machine. */
const char *net_loopback(const char *host);
/* The numeric addresses of a connection's two ends; "" for a Unix socket. */
void net_local_host(int fd, char *out, size_t out_bytes);
void net_peer_host(int fd, char *out, size_t out_bytes);
/* The first address of a network interface. Errors: ERR_CONFIG names it, and those that have an
 * address. */
int net_interface_host(const char *interface, char *out, size_t out_bytes, struct error *err);
/* Whether NCCL_SOCKET_IFNAME's `pattern` matches an interface. It lists prefixes, separated by
 * commas; after "=" whole names; after "^" those that do not match. */
bool net_interface_matches(const char *pattern, const char *interface);
/* Chooses the interface where others reach this process, from the environment's GLOO_SOCKET_IFNAME
 * and NCCL_SOCKET_IFNAME (NULL: not set). Gloo's wins: the first name of its list. NCCL's is a
 * pattern that is meant for NCCL's sockets first: the first match that is up and has an address is
 * taken, the loopback only if the pattern names it. It is ignored if nothing matches, or if rank 0
 * (master) is on the loopback. "": the interface with the route to rank 0. */
void net_interface_choose(const char *master, const char *gloo, const char *nccl,
                          char out[NET_INTERFACE_BYTES]);

/* Sleeps before the next attempt, but not beyond the deadline: 20, 40, 80 ms, then 160 ms for 4 s,
 * in which ranks meet again after a restart, then 1 s. Returns the number of the next attempt. */
int net_back_off(int attempt, int64_t deadline_ms);
#endif
