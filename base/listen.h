/* A listening TCP socket. */
#ifndef SHOAL_BASE_LISTEN_H
#define SHOAL_BASE_LISTEN_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* host: an IPv4 or IPv6 address in numbers; "": all of this machine, IPv6 where there is any, and
 * IPv4. port 0: any free one. The socket does not block. *ret_port (may be NULL) is the port in
 * fact. Errors: ERR_CONFIG for what is no address, not ours or in use; ERR_IO. */
int listen_tcp(const char *host, int port, int *ret_fd, int *ret_port, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
