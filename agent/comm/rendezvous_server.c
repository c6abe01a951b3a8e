#include "agent/comm/net.h"
#include "agent/comm/rendezvous_server_internal.h"
#include "base/clock.h"
#include "base/listen.h"
#include "base/mem.h"
#include "base/open_files.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define STRANGERS_MAX 64  /* connections beyond one per rank */
#define OWN_FILES     32  /* open files that rank 0 needs besides: rings, data, checkpoints */
#define NEWS_MS       100 /* between two messages about who is missing */
#define PAUSE_MS      100 /* before the next accept(), when no file is left for a connection */

static void receive(struct rendezvous_server *s, struct member *m)
{
    ssize_t n = recv(m->fd, (char *)&m->in + m->in_bytes, sizeof m->in - m->in_bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        rendezvous_server_drop(s, m, n < 0 ? strerror(errno) : "connection closed");
        return;
    }
    m->heard_ms = clock_monotonic_ms();
    m->in_bytes += (size_t)n;
    if (m->in_bytes == sizeof m->in) {
        m->in_bytes = 0;
        if (m->rank >= 0)
            rendezvous_round_hear(s->round, m->rank);
        rendezvous_server_handle(s, m);
    }
}

/* If all places are taken, drops the oldest connection that has not joined. A rank joins as soon as
 * it is challenged, so strangers that hold connections open do not keep it out. */
static struct member *make_room(struct rendezvous_server *s)
{
    struct member *oldest = rendezvous_server_member(s, -1);
    for (int i = 0; i < s->members_max && (!oldest || oldest->fd >= 0); i++)
        if (s->members[i].rank < 0 && (!oldest || s->members[i].accepted_ms < oldest->accepted_ms))
            oldest = &s->members[i];
    if (oldest && oldest->fd >= 0)
        rendezvous_server_drop(s, oldest, NULL);
    return oldest;
}

static void accept_member(struct rendezvous_server *s)
{
    struct error ignored;
    int fd = net_accept(s->listener);
    if (fd < 0) {
        /* The connection stays in the backlog, and poll() would return at once: do not poll the
         * listener for a while. */
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            s->full_until_ms = clock_monotonic_ms() + PAUSE_MS;
        return;
    }
    struct member *m = make_room(s);
    if (!m) {
        close(fd);
        return;
    }
    int64_t now_ms = clock_monotonic_ms();
    *m = (struct member){.fd = fd, .rank = -1, .accepted_ms = now_ms, .heard_ms = now_ms};
    net_peer_host(fd, m->host, sizeof m->host);
    if (rendezvous_nonce(m->nonce, &ignored) < 0)
        rendezvous_server_drop(s, m, NULL); /* the process tries again */
    else
        rendezvous_server_send(s, m, WIRE_CHALLENGE, 0, 0, m->nonce);
}

static void drop_silent(struct rendezvous_server *s)
{
    char how[64];
    int64_t now_ms = clock_monotonic_ms();
    snprintf(how, sizeof how, "no sign of life for %d ms", s->silence_ms);
    for (int i = 0; i < s->members_max; i++) {
        struct member *m = &s->members[i];
        /* a stranger that sends a byte now and then does not count as heard */
        int64_t since_ms = m->rank < 0 ? m->accepted_ms : m->heard_ms;
        if (m->fd >= 0 && now_ms - since_ms > s->silence_ms)
            rendezvous_server_drop(s, m, how);
    }
}

/* poll() has failed, so the server reads no message any more: it notifies all ranks, as of a loss.
 * It reads the request to close here, because poll() cannot report that either. */
static void fail(struct rendezvous_server *s, int errno_value)
{
    struct error err;
    eventfd_t asked;
    s->leaving |= eventfd_read(s->stop, &asked) == 0;
    error_errno(&err, errno_value, "rank 0 cannot hear the others: poll");
    if (!rendezvous_round_has_begun(s->round)) {
        rendezvous_round_refuse(s->round, err.msg);
        rendezvous_server_broadcast(s, WIRE_REFUSED, err.msg);
    }
    rendezvous_server_lose(s, 0, "failed", err.msg);
    poll(NULL, 0, PAUSE_MS); /* then try again: the kernel may only be short of memory */
}

/* Fills s->polls with open connections only: poll() fails with EINVAL on more entries than
 * RLIMIT_NOFILE, also if their fd is -1. */
static nfds_t list_polls(struct rendezvous_server *s)
{
    bool takes = !s->leaving && clock_monotonic_ms() >= s->full_until_ms;
    nfds_t count = 2;
    s->polls[0] = (struct pollfd){.fd = takes ? s->listener : -1, .events = POLLIN};
    s->polls[1] = (struct pollfd){.fd = s->leaving ? -1 : s->stop, .events = POLLIN};
    for (int i = 0; i < s->members_max; i++) {
        if (s->members[i].fd < 0)
            continue;
        s->polls[count] = (struct pollfd){.fd = s->members[i].fd, .events = POLLIN};
        s->polled[count++] = &s->members[i];
    }
    return count;
}

/* Waits for events until `until_ms`, and handles them. */
static void serve(struct rendezvous_server *s, int64_t until_ms)
{
    if (s->full_until_ms > clock_monotonic_ms() && s->full_until_ms < until_ms)
        until_ms = s->full_until_ms;
    int64_t wait_ms = until_ms - clock_monotonic_ms();
    nfds_t count = list_polls(s);
    int ready = poll(s->polls, count, wait_ms > 0 ? (int)wait_ms : 0);
    if (ready < 0 && errno != EINTR)
        fail(s, errno);
    if (ready <= 0)
        return;
    for (nfds_t i = 2; i < count; i++)
        if (s->polls[i].revents && s->polled[i]->fd == s->polls[i].fd)
            receive(s, s->polled[i]);
    if (s->polls[0].revents)
        accept_member(s);
    if (s->polls[1].revents)
        s->leaving = true;
}

static void send_beats(struct rendezvous_server *s)
{
    char text[STORE_VALUE_MAX] = "";
    if (!rendezvous_round_has_begun(s->round))
        rendezvous_round_describe(s->round, text);
    s->beat_ms = clock_monotonic_ms();
    s->has_joiners = false;
    rendezvous_server_broadcast(s, WIRE_BEAT, text);
}

/* To all, as each of a thousand ranks joins, would be half a million messages. */
static int64_t next_beats_ms(const struct rendezvous_server *s)
{
    bool is_soon = s->has_joiners && NEWS_MS < s->beat_every_ms;
    return s->beat_ms + (is_soon ? NEWS_MS : s->beat_every_ms);
}

static void beat(struct rendezvous_server *s)
{
    int64_t now_ms = clock_monotonic_ms();
    bool is_due = now_ms >= s->beat_ms + s->beat_every_ms;
    if (now_ms >= next_beats_ms(s))
        send_beats(s);
    if (is_due)
        rendezvous_server_check_health(s);
}

static void *server_main(void *arg)
{
    struct rendezvous_server *s = arg;
    while (!s->leaving) {
        int64_t wait_ms = rendezvous_server_expire_waits(s), beat_ms = next_beats_ms(s);
        serve(s, wait_ms < beat_ms ? wait_ms : beat_ms);
        drop_silent(s);
        beat(s);
    }
    /* Wait for the ranks to hang up first: see rendezvous_close(). */
    int64_t until_ms = clock_monotonic_ms() + FAREWELL_MS;
    rendezvous_round_end(s->round);
    rendezvous_server_broadcast(s, WIRE_GOODBYE, "");
    while (rendezvous_round_joined(s->round) > 0 && clock_monotonic_ms() < until_ms)
        serve(s, until_ms);
    return NULL;
}

static void destroy(struct rendezvous_server *s)
{
    for (int i = 0; i < s->members_max; i++)
        if (s->members[i].fd >= 0)
            close(s->members[i].fd);
    close(s->listener);
    close(s->stop);
    store_table_close(s->table);
    free(s->members);
    free(s->polls);
    free(s->polled);
    rendezvous_waits_close(s->waits);
    rendezvous_round_close(s->round);
    free(s);
}

int rendezvous_server_open(const struct rendezvous_server_options *options,
                           struct rendezvous_server **ret_server, struct error *err)
{
    int listener;
    int64_t files = (int64_t)options->size + OWN_FILES, limit = open_files_limit();
    if (files > limit)
        return error_set(err, ERR_CONFIG,
                         "%d ranks need %" PRId64 " open files in rank 0, which may have %" PRId64
                         ": raise the limit (ulimit -n)",
                         options->size, files, limit);
    int64_t strangers = limit - files;
    if (listen_tcp(options->host, options->port, &listener, err) < 0)
        return error_wrap(err, "where the ranks meet (--master_addr, --master_port; torchrun: "
                               "--rdzv_endpoint, or --standalone for a free port; accelerate: "
                               "--main_process_port, 0 for a free port)");
    struct rendezvous_server *s = xcalloc(1, sizeof *s);
    s->beat_every_ms = options->beat_ms;
    s->silence_ms = options->silence_ms;
    s->size = options->size;
    s->health = options->health;
    s->round = rendezvous_round_open(&(struct rendezvous_round_options){
        .size = options->size, .job_id = options->job_id, .secret = options->secret});
    s->listener = listener;
    s->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->table = store_table_open();
    s->members_max = options->size + (int)(strangers < STRANGERS_MAX ? strangers : STRANGERS_MAX);
    s->waits = rendezvous_waits_open(4 * options->size);
    s->members = xcalloc((size_t)s->members_max, sizeof *s->members);
    s->polls = xcalloc((size_t)s->members_max + 2, sizeof *s->polls);
    s->polled = xcalloc((size_t)s->members_max + 2, sizeof *s->polled);
    for (int i = 0; i < s->members_max; i++)
        s->members[i].fd = s->members[i].rank = -1;
    s->beat_ms = clock_monotonic_ms();
    int failure = pthread_create(&s->thread, NULL, server_main, s);
    if (failure) {
        destroy(s);
        return error_errno(err, failure, "start a thread");
    }
    *ret_server = s;
    return 0;
}

void rendezvous_server_close(struct rendezvous_server *s)
{
    if (!s)
        return;
    eventfd_write(s->stop, 1);
    pthread_join(s->thread, NULL);
    destroy(s);
}
