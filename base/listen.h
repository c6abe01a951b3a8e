/* A listening TCP socket. */
#ifndef SHOAL_BASE_LISTEN_H
#define SHOAL_BASE_LISTEN_H

#include "base/error.h"

/* host: an IPv4 or IPv6 address in numbers, or "localhost", which is 127.0.0.1; "": all of this
 * machine, IPv6 where there is any, and IPv4. port 0: any free one, see listen_port. The socket
 * does not block. Errors: ERR_CONFIG for what is no address, not ours or in use; ERR_IO. */
int listen_tcp(const char *host, int port, int *ret_fd, struct error *err);

/* The port a socket is bound to. */
int listen_port(int fd);
#endif
