#include "agent/comm/net.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096 /* the kernel cuts it to net.core.somaxconn */
/* What the sender may be ahead of the receiver: more means fewer switches between them. The kernel
 * cuts it to net.core.wmem_max, and grows TCP's by itself. */
#define UNIX_BUFFER_BYTES (512 * 1024)

enum { INTERFACES_NAMED = 8 }; /* of a host with hundreds of veths an error names the first */

static int left_ms(int64_t deadline_ms)
{
    int64_t left = deadline_ms - clock_monotonic_ms();
    return left <= 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

/* ---- listening ---- */

static socklen_t unix_address(const char *name, struct sockaddr_un *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->sun_family = AF_UNIX;
    snprintf(ret->sun_path + 1, sizeof ret->sun_path - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(ret->sun_path + 1));
}

int net_listen_unix(const char *name, int *ret_fd, struct error *err)
{
    struct sockaddr_un address;
    socklen_t bytes = unix_address(name, &address);
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, bytes) < 0 || listen(fd, BACKLOG) < 0)
        return error_errno(err, errno, "listen on the Unix socket @%s", name);
    *ret_fd = take_fd(fd);
    return 0;
}

int net_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), on = 1;
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* a Unix socket refuses: fine */
    return fd;
}

/* ---- connecting ---- */

static int wait_for(int fd, short events, int64_t deadline_ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    int n;
    do
        n = poll(&p, 1, left_ms(deadline_ms));
    while (n < 0 && errno == EINTR);
    if (n == 0)
        errno = ETIMEDOUT;
    return n > 0 ? 0 : -1;
}

static int connect_to(const struct sockaddr *address, socklen_t bytes, int64_t deadline_ms)
{
    auto_close int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, result = 0;
    socklen_t result_bytes = sizeof result;
    if (fd < 0)
        return -1;
    if (address->sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, address, bytes) < 0) {
        /* connect(2): a socket that does not block becomes writable when it is connected or has
         * failed; SO_ERROR says which. */
        if (errno != EINPROGRESS || wait_for(fd, POLLOUT, deadline_ms) < 0)
            return -1;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &result_bytes);
        if (result) {
            errno = result;
            return -1;
        }
    }
    return take_fd(fd);
}

int64_t net_share_ms(int64_t now_ms, int64_t deadline_ms, int count)
{
    return now_ms >= deadline_ms ? deadline_ms : now_ms + (deadline_ms - now_ms) / count;
}

int64_t net_attempt_deadline_ms(int64_t deadline_ms)
{
    int64_t one = clock_monotonic_ms() + NET_ATTEMPT_MS;
    return one < deadline_ms ? one : deadline_ms;
}

int net_connect(const char *host, int port, int64_t deadline_ms, int *ret_fd, struct error *err)
{
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    /* All addresses in their order (RFC 6724), until one answers: a name may have an IPv6 address
     * that leads nowhere. */
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list;
    int gai = getaddrinfo(host, service, &hints, &list);
    if (gai)
        return error_set(err, ERR_NOT_FOUND, "resolve %s: %s", host, gai_strerror(gai));
    int fd = -1, count = 0;
    for (struct addrinfo *a = list; a; a = a->ai_next)
        count++;
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next, count--)
        fd = connect_to(a->ai_addr, a->ai_addrlen,
                        net_share_ms(clock_monotonic_ms(), deadline_ms, count));
    freeaddrinfo(list);
    if (fd < 0 && errno == ETIMEDOUT)
        return error_set(err, ERR_TIMEOUT, "connect to %s:%d: no answer", host, port);
    if (fd < 0)
        return error_errno(err, errno, "connect to %s:%d", host, port);
    *ret_fd = fd;
    return 0;
}

int net_connect_unix(const char *name, int *ret_fd, struct error *err)
{
    struct sockaddr_un address;
    socklen_t bytes = unix_address(name, &address);
    *ret_fd = connect_to((const struct sockaddr *)&address, bytes, 0);
    if (*ret_fd < 0)
        return error_errno(err, errno, "connect to the Unix socket @%s", name);
    int buffer = UNIX_BUFFER_BYTES;
    setsockopt(*ret_fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    return 0;
}

int net_back_off(int attempt, int64_t deadline_ms)
{
    int wait_ms = attempt < 3 ? 20 << attempt : attempt < 28 ? 160 : 1000;
    int left = left_ms(deadline_ms);
    poll(NULL, 0, wait_ms < left ? wait_ms : left);
    return attempt + 1;
}

/* ---- moving bytes ---- */

int net_send(int fd, const void *data, size_t bytes, int64_t deadline_ms, struct error *err)
{
    const char *at = data;
    while (bytes > 0) {
        /* Without the flag a peer that is gone would end this process by SIGPIPE. */
        ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (wait_for(fd, POLLOUT, deadline_ms) < 0)
                return error_set(err, ERR_TIMEOUT, "the other side takes nothing");
        } else if (errno != EINTR) {
            return error_set(err, ERR_PEER, "connection lost: %s", strerror(errno));
        }
    }
    return 0;
}

/* ---- addresses ---- */

const char *net_loopback(const char *host)
{
    struct in_addr four;
    if (strcmp(host, "localhost") == 0)
        return "127.0.0.1";
    bool is_four = inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
    return is_four || strcmp(host, "::1") == 0 ? host : NULL;
}

/* An IPv4 address that came through an IPv6 socket is written as IPv4. */
static void format_host(const struct sockaddr *address, char *out, size_t out_bytes)
{
    const char *mapped = "::ffff:";
    char text[NI_MAXHOST] = "";
    socklen_t bytes =
        address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (address->sa_family == AF_INET || address->sa_family == AF_INET6)
        getnameinfo(address, bytes, text, sizeof text, NULL, 0, NI_NUMERICHOST);
    bool is_mapped = strncmp(text, mapped, strlen(mapped)) == 0;
    snprintf(out, out_bytes, "%s", is_mapped ? text + strlen(mapped) : text);
}

void net_local_host(int fd, char *out, size_t out_bytes)
{
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof address;
    getsockname(fd, (struct sockaddr *)&address, &bytes);
    format_host((const struct sockaddr *)&address, out, out_bytes);
}

void net_peer_host(int fd, char *out, size_t out_bytes)
{
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof address;
    getpeername(fd, (struct sockaddr *)&address, &bytes);
    format_host((const struct sockaddr *)&address, out, out_bytes);
}

/* The first address of the interface of that name; "" if it has none. */
static void find_host(const struct ifaddrs *list, const char *interface, char *out,
                      size_t out_bytes)
{
    out[0] = '\0';
    for (const struct ifaddrs *i = list; i && !out[0]; i = i->ifa_next)
        if (i->ifa_addr && strcmp(i->ifa_name, interface) == 0)
            format_host(i->ifa_addr, out, out_bytes);
}

static bool is_named_before(const struct ifaddrs *list, const struct ifaddrs *interface)
{
    while (list != interface && strcmp(list->ifa_name, interface->ifa_name) != 0)
        list = list->ifa_next;
    return list != interface;
}

/* Adds " lo eth0": those that have an address, in the system's order. */
static void add_interfaces(const struct ifaddrs *list, struct str *out)
{
    int count = 0;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        char host[NI_MAXHOST];
        find_host(list, i->ifa_name, host, sizeof host);
        if (!host[0] || is_named_before(list, i))
            continue;
        if (count++ == INTERFACES_NAMED) {
            str_add(out, " ...");
            return;
        }
        str_printf(out, " %s", i->ifa_name);
    }
}

int net_interface_host(const char *interface, char *out, size_t out_bytes, struct error *err)
{
    struct ifaddrs *list;
    if (getifaddrs(&list) < 0)
        return error_errno(err, errno, "list the network interfaces");
    find_host(list, interface, out, out_bytes);
    if (!out[0]) {
        auto_str struct str others;
        str_init(&others, 1024);
        add_interfaces(list, &others);
        error_set(
            err, ERR_CONFIG,
            "GLOO_SOCKET_IFNAME: no network interface \"%s\" with an address here; there are%s",
            interface, others.length ? str_text(&others) : " none");
    }
    freeifaddrs(list);
    return out[0] ? 0 : -1;
}

/* NCCL_SOCKET_IFNAME's rules: prefixes with commas between them, "=" for whole names, "^" for all
 * but these. */
bool net_interface_matches(const char *pattern, const char *interface)
{
    bool is_excluded = pattern[0] == '^';
    pattern += is_excluded;
    bool is_exact = pattern[0] == '=', is_found = false;
    pattern += is_exact;
    for (size_t length; *pattern && !is_found; pattern += length + (pattern[length] == ',')) {
        length = strcspn(pattern, ",");
        is_found = length > 0 && strncmp(pattern, interface, length) == 0 &&
                   (!is_exact || interface[length] == '\0');
    }
    return is_found != is_excluded;
}

/* The first interface that is up, has an address and is meant; "" if there is none. */
static void choose_interface(const char *pattern, char out[NET_INTERFACE_BYTES])
{
    struct ifaddrs *list;
    out[0] = '\0';
    if (getifaddrs(&list) < 0)
        return;
    for (struct ifaddrs *i = list; i && !out[0]; i = i->ifa_next) {
        char host[64] = "";
        bool may = (i->ifa_flags & IFF_UP) && (!(i->ifa_flags & IFF_LOOPBACK) || *pattern != '^');
        if (i->ifa_addr && may && net_interface_matches(pattern, i->ifa_name))
            format_host(i->ifa_addr, host, sizeof host);
        if (host[0])
            snprintf(out, NET_INTERFACE_BYTES, "%s", i->ifa_name);
    }
    freeifaddrs(list);
}

void net_interface_choose(const char *master, const char *gloo, const char *nccl,
                          char out[NET_INTERFACE_BYTES])
{
    out[0] = '\0';
    if (gloo && gloo[0])
        snprintf(out, NET_INTERFACE_BYTES, "%.*s", (int)strcspn(gloo, ","), gloo);
    else if (nccl && nccl[0] && !net_loopback(master))
        choose_interface(nccl, out);
}
