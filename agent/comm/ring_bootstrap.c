#include "agent/comm/ring_bootstrap.h"

#include "agent/comm/net.h"
#include "agent/comm/ring_wire.h"
#include "base/clock.h"
#include "base/listen.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* How often the wait for the previous rank checks the store for a lost rank. */
#define ACCEPT_SLICE_MS 200

struct bootstrap {
    const struct ring_options *options;
    int64_t deadline_ms;
    struct ring_address self;
    char interface_host[STORE_HOST_MAX]; /* the address of options.interface; "": none is set */
    int tcp, unix_socket;                /* listeners */
};

static int world_rank(const struct bootstrap *m, int offset)
{
    const struct ring_options *o = m->options;
    return o->world_ranks[(o->rank + o->size + offset) % o->size];
}

static void unix_name(const char *name, char out[32])
{
    snprintf(out, 32, "shoal-%s", name);
}

/* Listens on the address that is published, if it is known, and not wider. An address with an IPv6
 * zone ("fe80::1%eth0") is no numeric address for listen_tcp(): then on all addresses. */
static int start_listening(struct bootstrap *m, struct error *err)
{
    const struct ring_options *o = m->options;
    uint64_t numbers[2];
    if (getrandom(numbers, sizeof numbers, 0) != sizeof numbers)
        return error_errno(err, errno, "getrandom");
    snprintf(m->self.token, sizeof m->self.token, "%016" PRIx64, numbers[0]);
    snprintf(m->self.socket_name, sizeof m->self.socket_name, "%016" PRIx64, numbers[1]);
    char name[32];
    unix_name(m->self.socket_name, name);
    if (net_listen_unix(name, &m->unix_socket, err) < 0)
        return -1;
    if (o->interface[0] &&
        net_interface_host(o->interface, m->interface_host, sizeof m->interface_host, err) < 0)
        return -1;
    const char *host = m->interface_host[0] ? m->interface_host : o->store->listen_host;
    if (listen_tcp(strchr(host, '%') ? "" : host, 0, &m->tcp, err) < 0)
        return -1;
    m->self.port = listen_port(m->tcp);
    snprintf(m->self.host, sizeof m->self.host, "%s",
             m->interface_host[0]     ? m->interface_host
             : o->store->self_host[0] ? o->store->self_host
                                      : "-");
    return 0;
}

static int publish(const struct bootstrap *m, struct error *err)
{
    const struct ring_options *o = m->options;
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
    snprintf(key, sizeof key, "%s/at/%d", o->id, o->rank);
    ring_address_encode(&m->self, value);
    return o->store->fn->set(o->store, key, value, err);
}

static int connect_next(const struct bootstrap *m, int *ret_fd, struct error *err)
{
    const struct ring_options *o = m->options;
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX], name[32];
    struct ring_address next;
    snprintf(key, sizeof key, "%s/at/%d", o->id, (o->rank + 1) % o->size);
    if (o->store->fn->get(o->store, key, o->join_timeout_ms, value, err) < 0)
        return -1;
    if (ring_address_decode(value, &next, err) < 0)
        return -1;
    if (strcmp(next.host, "-") == 0)
        snprintf(next.host, sizeof next.host, "%s", o->store->master_host);
    unix_name(next.socket_name, name);
    auto_close int fd = -1;
    int attempt = 0;
    /* The neighbour's abstract socket (unix(7)) answers only within one network namespace, and
     * spares TCP there. Between two attempts the store may tell that a rank is lost. */
    while (net_connect_unix(name, &fd, err) < 0 &&
           net_connect(next.host, next.port, net_attempt_deadline_ms(m->deadline_ms), &fd, err) <
               0) {
        if (clock_monotonic_ms() >= m->deadline_ms || store_check(o->store, err) < 0)
            return -1;
        attempt = net_back_off(attempt, m->deadline_ms);
    }
    struct ring_hello hello = {.rank = o->rank};
    memcpy(hello.token, next.token, sizeof hello.token);
    if (net_send(fd, &hello, sizeof hello, m->deadline_ms, err) < 0)
        return -1;
    *ret_fd = take_fd(fd);
    return 0;
}

/* Accepted connections whose hello has not arrived completely. */
enum { PENDING_MAX = 16 };

struct pending {
    int fd; /* -1: free */
    struct ring_hello hello;
    size_t bytes; /* of the hello, so far */
};

struct pending_list {
    struct pending all[PENDING_MAX];
    int next; /* the next connection takes this place: the oldest's */
};

static void close_pending(struct pending *p)
{
    if (p->fd >= 0)
        close(p->fd);
    *p = (struct pending){.fd = -1};
}

static void accept_pending(struct pending_list *list, int listener)
{
    int fd = net_accept(listener);
    if (fd < 0)
        return;
    struct pending *p = &list->all[list->next];
    list->next = (list->next + 1) % PENDING_MAX;
    close_pending(p);
    p->fd = fd;
}

/* Whether the connection is the previous rank's. One with another hello is closed. */
static bool receive_hello(const struct bootstrap *m, struct pending *p)
{
    const struct ring_options *o = m->options;
    struct error ignored;
    ssize_t n = recv(p->fd, (char *)&p->hello + p->bytes, sizeof p->hello - p->bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n > 0)
        p->bytes += (size_t)n;
    if (n > 0 && p->bytes < sizeof p->hello)
        return false;
    if (n > 0 && ring_hello_check(&p->hello, m->self.token, (o->rank + o->size - 1) % o->size,
                                  &ignored) == 0)
        return true;
    close_pending(p);
    return false;
}

/* Waits up to ACCEPT_SLICE_MS for connections and hellos. Returns the previous rank's socket, or
 * -1. */
static int poll_once(const struct bootstrap *m, struct pending_list *list)
{
    struct pollfd fds[2 + PENDING_MAX] = {{.fd = m->tcp, .events = POLLIN},
                                          {.fd = m->unix_socket, .events = POLLIN}};
    nfds_t count = 2;
    struct pending *whose[2 + PENDING_MAX];
    for (int i = 0; i < PENDING_MAX; i++) {
        if (list->all[i].fd < 0)
            continue;
        whose[count] = &list->all[i];
        fds[count++] = (struct pollfd){.fd = list->all[i].fd, .events = POLLIN};
    }
    if (poll(fds, count, ACCEPT_SLICE_MS) <= 0)
        return -1;
    for (nfds_t i = 2; i < count; i++)
        if (fds[i].revents && receive_hello(m, whose[i]))
            return take_fd(whose[i]->fd);
    for (int i = 0; i < 2; i++)
        if (fds[i].revents)
            accept_pending(list, fds[i].fd);
    return -1;
}

/* All pending connections are polled at once, so a silent stranger does not delay the previous
 * rank. */
static int accept_previous(const struct bootstrap *m, int *ret_fd, struct error *err)
{
    struct pending_list list = {.next = 0};
    int fd = -1, result = 0;
    for (int i = 0; i < PENDING_MAX; i++)
        list.all[i].fd = -1;
    while (fd < 0 && result == 0 && clock_monotonic_ms() < m->deadline_ms) {
        result = store_check(m->options->store, err);
        if (result == 0)
            fd = poll_once(m, &list);
    }
    for (int i = 0; i < PENDING_MAX; i++)
        close_pending(&list.all[i]);
    if (result < 0)
        return -1;
    *ret_fd = fd;
    return fd >= 0 ? 0
                   : error_set(err, ERR_TIMEOUT, "rank %d did not connect within %d ms",
                               world_rank(m, -1), m->options->join_timeout_ms);
}

int ring_bootstrap(const struct ring_options *options, int *ret_out, int *ret_in, struct error *err)
{
    auto_close int tcp = -1, unix_socket = -1, out = -1, in = -1;
    struct bootstrap m = {.options = options,
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
