#include "operator/local/local_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"

/* Linux hands out 32768..60999 to outgoing connections. */
enum { FIRST_PORT = 20000, PORT_COUNT = 12000 };

static int in_use(int port, struct error *err)
{
    return error_set(err, ERR_EXISTS, "port %d is in use on this machine", port);
}

/* A name that only one process can have bound and that vanishes with it. ERR_EXISTS if another has
 * it. */
static int lock_port(int port, int *ret_fd, struct error *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "shoal-port-%d", port);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EMFILE)
        return error_set(err, ERR_LIMIT,
                         "a socket to keep port %d: too many open files; raise the limit (ulimit "
                         "-n) or run fewer replicas",
                         port);
    if (fd < 0)
        return error_errno(err, errno, "a socket to keep port %d", port);
    if (bind(fd, (struct sockaddr *)&name, size) < 0)
        return in_use(port, err);
    *ret_fd = take_fd(fd);
    return 0;
}

/* Whether a server could bind the port now. Without SO_REUSEADDR, so that old connections in
 * TIME_WAIT count as well: not every program sets that option. */
static bool port_is_free(int family, int port)
{
    auto_close int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return true; /* no such address family here: nothing can be bound in it */
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    any6.sin6_addr = in6addr_any;
    bool is4 = family == AF_INET;
    struct sockaddr *address = is4 ? (struct sockaddr *)&any4 : (struct sockaddr *)&any6;
    return bind(fd, address, is4 ? sizeof any4 : sizeof any6) == 0 || errno != EADDRINUSE;
}

int local_ports_take_fixed(struct local_ports *ports, int port, struct error *err)
{
    if (ports->count == LOCAL_PORTS_MAX)
        return error_set(err, ERR_UNSUPPORTED, "more than %d service ports", LOCAL_PORTS_MAX);
    auto_close int lock = -1;
    if (lock_port(port, &lock, err) < 0)
        return -1;
    /* The lock keeps other runs away; this finds programs that know nothing of locks. A port is not
     * bound for long: the replica must be able to bind it. */
    if (!port_is_free(AF_INET, port) || !port_is_free(AF_INET6, port))
        return in_use(port, err);
    ports->locks[ports->count++] = take_fd(lock);
    return 0;
}

int local_ports_take(struct local_ports *ports, int32_t *ret_port, struct error *err)
{
    /* different runs begin at different places, so they seldom meet */
    int start = (int)((long)getpid() * 37 % PORT_COUNT);
    for (int i = 0; i < PORT_COUNT; i++) {
        int port = FIRST_PORT + (start + i) % PORT_COUNT;
        if (local_ports_take_fixed(ports, port, err) == 0) {
            *ret_port = port;
            return 0;
        }
        if (err->code != ERR_EXISTS)
            return -1;
    }
    return error_set(err, ERR_EXISTS, "no free port between %d and %d", FIRST_PORT,
                     FIRST_PORT + PORT_COUNT - 1);
}

void local_ports_close(struct local_ports *ports)
{
    while (ports->count > 0)
        close(ports->locks[--ports->count]);
}
