#include "base/listen.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define BACKLOG 4096 /* the kernel cuts it to net.core.somaxconn */

union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static int open_socket(const union address *address)
{
    bool is_six = address->any.sa_family == AF_INET6;
    auto_close int fd =
        socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, off = 0;
    if (fd < 0)
        return -1;
    if (is_six) /* IPv4 comes to it as well */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    /* Connections of the process before may linger in TIME_WAIT for a minute: a restart must not
     * wait for them. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &address->any, is_six ? sizeof address->six : sizeof address->four) < 0 ||
        listen(fd, BACKLOG) < 0)
        return -1;
    return take_fd(fd);
}

int listen_tcp(const char *host, int port, int *ret_fd, struct error *err)
{
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    union address six = {.six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)}};
    union address four = {.four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)}};
    bool is_all = host[0] == '\0';
    bool is_four = inet_pton(AF_INET, host, &four.four.sin_addr) == 1;
    bool is_six = inet_pton(AF_INET6, host, &six.six.sin6_addr) == 1;
    if (!is_all && !is_four && !is_six)
        return error_set(err, ERR_CONFIG, "listen on %s: this is no IPv4 or IPv6 address", host);
    int fd = open_socket(is_four ? &four : &six);
    if (fd < 0 && is_all && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) /* no IPv6 here */
        fd = open_socket(&four);
    const char *shown = is_all ? "*" : host;
    if (fd < 0 && errno == EADDRINUSE)
        return error_set(
            err, ERR_EXISTS,
            "listen on %s: port %d is in use by another process: end it or choose another port",
            shown, port);
    if (fd < 0 && errno == EADDRNOTAVAIL)
        return error_set(err, ERR_CONFIG, "listen on %s: this machine has no such address", shown);
    if (fd < 0)
        return error_errno(err, errno, "listen on %s, port %d", shown, port);
    *ret_fd = fd;
    return 0;
}

int listen_port(int fd)
{
    union address address = {0};
    socklen_t bytes = sizeof address;
    getsockname(fd, &address.any, &bytes);
    return ntohs(address.six.sin6_port); /* lies at the same place in both families */
}

int listen_free_port(int *ret_port, struct error *err)
{
    enum { FIRST = 10000, COUNT = 10000 };
    uint16_t start = 0;
    int result = -1;
    if (getrandom(&start, sizeof start, 0) != sizeof start)
        return error_errno(err, errno, "getrandom");
    for (int i = 0; i < COUNT && result < 0; i++) {
        auto_close int fd = -1;
        *ret_port = FIRST + (start + i) % COUNT;
        result = listen_tcp("127.0.0.1", *ret_port, &fd, err);
    }
    return result;
}
