/* A listening TCP socket. */
#ifndef SHOAL_BASE_LISTEN_H
#define SHOAL_BASE_LISTEN_H

#include "base/error.h"

/* host: an IPv4 or IPv6 address in numbers, or "localhost", which is 127.0.0.1; "": all of this
 * machine, IPv6 where there is any, and IPv4. port 0: any free one, see listen_port. The socket
 * does not block. Errors: ERR_EXISTS if another program listens there, ERR_CONFIG for what is no
 * address or not ours; ERR_IO. */
int listen_tcp(const char *host, int port, int *ret_fd, struct error *err);

/* A port of this machine that is free now, below those that the kernel gives to connections and to
 * port 0 (net.ipv4.ip_local_port_range): nobody else is given it by accident before it is used. */
int listen_free_port(int *ret_port, struct error *err);

/* The port a socket is bound to. */
int listen_port(int fd);
#endif
