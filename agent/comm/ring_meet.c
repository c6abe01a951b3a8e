#include "agent/comm/ring_meet.h"

#include "agent/comm/net.h"
#include "base/clock.h"
#include "base/listen.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define TOKEN_BYTES 17 /* 16 hex digits */
#define HELLO_MS    5000
/* How often the wait for the previous rank looks for news of a loss. */
#define ACCEPT_SLICE_MS 200

/* What a connecting rank says first. The token is random and known from the store only, so that
 * neither a stranger nor a straggler of an earlier attempt is taken for the neighbour. */
struct hello {
    char token[TOKEN_BYTES];
    int32_t rank;
};

struct meeting {
    const struct ring_options *options;
    int64_t deadline_ms;
    char token[TOKEN_BYTES];
    char interface_host[STORE_HOST_MAX]; /* the address of the interface asked for; "": none is */
    int tcp, unix_socket;                /* listeners */
};

static int world_rank(const struct meeting *m, int offset)
{
    const struct ring_options *o = m->options;
    return o->world_ranks[(o->rank + o->size + offset) % o->size];
}

static void unix_name(const char *token, char out[32])
{
    snprintf(out, 32, "shoal-%s", token);
}

/* At the one address that others are told, if it is known. Not at one with an IPv6 zone, which is
 * no address in numbers. */
static int start_listening(struct meeting *m, struct error *err)
{
    const struct ring_options *o = m->options;
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return error_errno(err, errno, "getrandom");
    snprintf(m->token, sizeof m->token, "%016" PRIx64, number);
    char name[32];
    unix_name(m->token, name);
    if (net_listen_unix(name, &m->unix_socket, err) < 0)
        return -1;
    if (o->interface[0] &&
        net_interface_host(o->interface, m->interface_host, sizeof m->interface_host, err) < 0)
        return -1;
    const char *host = m->interface_host[0] ? m->interface_host : o->store->listen_host;
    return listen_tcp(strchr(host, '%') ? "" : host, 0, &m->tcp, err);
}

/* Tells the store: "token port host", host "-" for "where the store is". */
static int publish(const struct meeting *m, struct error *err)
{
    const struct ring_options *o = m->options;
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
    const char *host = m->interface_host[0]     ? m->interface_host
                       : o->store->self_host[0] ? o->store->self_host
                                                : "-";
    snprintf(key, sizeof key, "%s/at/%d", o->id, o->rank);
    snprintf(value, sizeof value, "%s %d %s", m->token, listen_port(m->tcp), host);
    return o->store->fn->set(o->store, key, value, err);
}

static int connect_next(const struct meeting *m, int *ret_fd, struct error *err)
{
    const struct ring_options *o = m->options;
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX], name[32];
    char token[TOKEN_BYTES], host[STORE_HOST_MAX];
    int port;
    snprintf(key, sizeof key, "%s/at/%d", o->id, (o->rank + 1) % o->size);
    if (o->store->fn->get(o->store, key, o->join_timeout_ms, value, err) < 0)
        return -1;
    if (sscanf(value, "%16s %d %63s", token, &port, host) != 3)
        return error_set(err, ERR_INPUT, "the store holds \"%s\" instead of an address", value);
    if (strcmp(host, "-") == 0)
        snprintf(host, sizeof host, "%s", o->store->meet_host);
    unix_name(token, name);
    auto_close int fd = -1;
    int attempt = 0;
    while (net_connect_unix(name, &fd, err) < 0 &&
           net_connect(host, port, m->deadline_ms, &fd, err) < 0) {
        if (clock_monotonic_ms() >= m->deadline_ms || store_check(o->store, err) < 0)
            return -1;
        attempt = net_back_off(attempt, m->deadline_ms);
    }
    struct hello hello = {.rank = o->rank};
    memcpy(hello.token, token, sizeof token);
    if (net_send(fd, &hello, sizeof hello, m->deadline_ms, err) < 0)
        return -1;
    *ret_fd = take_fd(fd);
    return 0;
}

/* Whether the new connection is the previous rank's. */
static bool is_previous(const struct meeting *m, int fd)
{
    const struct ring_options *o = m->options;
    struct hello hello;
    struct error ignored;
    return net_receive(fd, &hello, sizeof hello, clock_monotonic_ms() + HELLO_MS, &ignored) == 0 &&
           memcmp(hello.token, m->token, TOKEN_BYTES) == 0 &&
           hello.rank == (o->rank + o->size - 1) % o->size;
}

static int accept_previous(const struct meeting *m, int *ret_fd, struct error *err)
{
    while (clock_monotonic_ms() < m->deadline_ms) {
        if (store_check(m->options->store, err) < 0)
            return -1;
        struct pollfd fds[2] = {{.fd = m->tcp, .events = POLLIN},
                                {.fd = m->unix_socket, .events = POLLIN}};
        if (poll(fds, 2, ACCEPT_SLICE_MS) <= 0)
            continue;
        auto_close int fd = net_accept(fds[0].revents ? m->tcp : m->unix_socket);
        if (fd >= 0 && is_previous(m, fd)) {
            *ret_fd = take_fd(fd);
            return 0;
        }
    }
    return error_set(err, ERR_TIMEOUT, "rank %d did not connect within %d ms", world_rank(m, -1),
                     m->options->join_timeout_ms);
}

int ring_meet(const struct ring_options *options, int *ret_out, int *ret_in, struct error *err)
{
    auto_close int tcp = -1, unix_socket = -1, out = -1, in = -1;
    struct meeting m = {.options = options,
                        .deadline_ms = clock_monotonic_ms() + options->join_timeout_ms,
                        .tcp = -1,
                        .unix_socket = -1};
    int result = start_listening(&m, err);
    tcp = m.tcp;
    unix_socket = m.unix_socket;
    if (result < 0 || publish(&m, err) < 0)
        return -1;
    if (connect_next(&m, &out, err) < 0)
        return error_wrap(err, "meet rank %d", world_rank(&m, 1));
    if (accept_previous(&m, &in, err) < 0)
        return -1;
    *ret_out = take_fd(out);
    *ret_in = take_fd(in);
    return 0;
}
