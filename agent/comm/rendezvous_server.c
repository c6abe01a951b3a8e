#include "agent/comm/rendezvous_server.h"

#include "agent/comm/net.h"
#include "agent/comm/rendezvous_proof.h"
#include "agent/comm/rendezvous_round.h"
#include "agent/comm/rendezvous_waits.h"
#include "agent/comm/rendezvous_wire.h"
#include "agent/comm/store_table.h"
#include "base/clock.h"
#include "base/listen.h"
#include "base/mem.h"
#include "base/open_files.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define STRANGERS_MAX 64   /* connections beyond one per rank */
#define OWN_FILES     32   /* open files that rank 0 needs besides: rings, data, checkpoints */
#define NEWS_MS       100  /* between two messages about who is missing */
#define PAUSE_MS      100  /* before the next accept(), when no file is left for a connection */
#define SEND_MS       1000 /* a rank that accepts no message for so long is lost */

struct member {
    int fd;   /* -1: free */
    int rank; /* -1: has not joined */
    char host[STORE_HOST_MAX];
    char nonce[RENDEZVOUS_NONCE_BYTES];
    int64_t accepted_ms, heard_ms;
    struct wire_message in; /* the first in_bytes of it have arrived */
    size_t in_bytes;
};

struct rendezvous_server {
    int beat_every_ms, silence_ms; /* as in the options */
    struct rendezvous_health health;
    pthread_t thread;
    int listener, stop; /* stop: an eventfd that rendezvous_server_close() writes */
    struct store_table *table;
    struct member *members;
    struct pollfd *polls;   /* [2 + members_max]: listener, stop, one per connection */
    struct member **polled; /* [2 + members_max]: whose connection */
    struct rendezvous_waits *waits;
    struct rendezvous_round *round;
    int members_max;
    int size; /* ranks */
    bool leaving, has_lost;
    bool has_joiners;      /* ranks have joined since heartbeats were sent last */
    int64_t beat_ms;       /* when heartbeats were sent last */
    int64_t full_until_ms; /* accept() failed: it is tried again then */
};

/* ---- sending ---- */

static void drop(struct rendezvous_server *s, struct member *m, const char *how);

/* A closed connection is not dropped here: a goodbye may still lie unread in it. Only a rank that
 * accepts no bytes for SEND_MS is. */
static void send_message(struct rendezvous_server *s, struct member *m, enum wire_type type,
                         int32_t number, int32_t size, const char *text)
{
    struct wire_message message = {
        .magic = WIRE_MAGIC, .type = type, .number = number, .size = size};
    struct error err;
    snprintf(message.text, sizeof message.text, "%.*s", STORE_VALUE_MAX - 1, text);
    if (net_send(m->fd, &message, sizeof message, clock_monotonic_ms() + SEND_MS, &err) < 0 &&
        err.code == ERR_TIMEOUT)
        drop(s, m, err.msg);
}

/* Sends to all that have joined. */
static void broadcast(struct rendezvous_server *s, enum wire_type type, const char *text)
{
    for (int i = 0; i < s->members_max; i++)
        if (s->members[i].fd >= 0 && s->members[i].rank >= 0)
            send_message(s, &s->members[i], type, 0, 0, text);
}

/* Reports the first loss of a round that has begun, and ends the round. */
static void lose(struct rendezvous_server *s, int rank, const char *how, const char *why)
{
    char reason[STORE_VALUE_MAX];
    if (!rendezvous_round_has_begun(s->round) || !rendezvous_round_end(s->round))
        return;
    s->has_lost = true;
    snprintf(reason, sizeof reason, "rank %d %s (%.100s)", rank, how, why);
    broadcast(s, WIRE_LOST, reason);
}

/* Closes the connection. how: why the rank is lost; NULL: it left in order, or had not joined. */
static void drop(struct rendezvous_server *s, struct member *m, const char *how)
{
    int rank = m->rank;
    rendezvous_waits_drop(s->waits, m->fd);
    close(m->fd);
    m->fd = m->rank = -1;
    if (rank < 0)
        return;
    rendezvous_round_leave(s->round, rank);
    if (s->health.leave)
        s->health.leave(s->health.ctx, rank);
    if (how)
        lose(s, rank, "is lost", how);
}

static void send_beats(struct rendezvous_server *s)
{
    char text[STORE_VALUE_MAX] = "";
    if (!rendezvous_round_has_begun(s->round))
        rendezvous_round_describe(s->round, text);
    s->beat_ms = clock_monotonic_ms();
    s->has_joiners = false;
    broadcast(s, WIRE_BEAT, text);
}

/* To all, as each of a thousand ranks joins, would be half a million messages. */
static int64_t next_beats_ms(const struct rendezvous_server *s)
{
    bool is_soon = s->has_joiners && NEWS_MS < s->beat_every_ms;
    return s->beat_ms + (is_soon ? NEWS_MS : s->beat_every_ms);
}

/* ---- health ---- */

static void send_inspection(struct rendezvous_server *s, int rank,
                            const struct rendezvous_inspection *i)
{
    struct wire_message message = {
        .magic = WIRE_MAGIC, .type = WIRE_INSPECT, .number = i->rank, .size = i->pid};
    struct error ignored; /* a rank that hangs may not read */
    snprintf(message.key, sizeof message.key, "%s", i->ends ? "ends" : "");
    snprintf(message.text, sizeof message.text, "%s", i->why);
    for (int m = 0; m < s->members_max; m++)
        if (s->members[m].fd >= 0 && s->members[m].rank == rank)
            net_send(s->members[m].fd, &message, sizeof message, clock_monotonic_ms(), &ignored);
}

static void check_health(struct rendezvous_server *s)
{
    struct rendezvous_inspection inspection;
    bool are_all_here = rendezvous_round_has_begun(s->round) &&
                        rendezvous_round_joined(s->round) == s->size && !s->has_lost;
    if (!are_all_here || !s->health.tick || !s->health.tick(s->health.ctx, &inspection))
        return;
    if (inspection.witness >= 0)
        send_inspection(s, inspection.witness, &inspection);
    else
        send_inspection(s, inspection.rank, &inspection);
    if (inspection.ends)
        lose(s, inspection.rank, "hangs", inspection.why);
}

/* ---- joining ---- */

static void join(struct rendezvous_server *s, struct member *m, const struct wire_message *in)
{
    char text[STORE_VALUE_MAX];
    switch (rendezvous_round_join(s->round, in, m->nonce, m->host, text)) {
    case RENDEZVOUS_HANG_UP:
        drop(s, m, NULL);
        break;
    case RENDEZVOUS_AGAIN:
        send_message(s, m, WIRE_AGAIN, 0, 0, text);
        break;
    case RENDEZVOUS_REFUSED:
        broadcast(s, WIRE_REFUSED, text);
        send_message(s, m, WIRE_REFUSED, 0, 0, text);
        break;
    case RENDEZVOUS_JOINED:
        m->rank = in->number;
        s->has_joiners = true;
        rendezvous_round_describe(s->round, text);
        send_message(s, m, WIRE_BEAT, 0, 0, text);
        break;
    case RENDEZVOUS_COMPLETE:
        m->rank = in->number;
        s->has_joiners = false;
        broadcast(s, WIRE_WELCOME, "");
        break;
    }
}

/* ---- the store ---- */

static struct member *member_of_fd(struct rendezvous_server *s, int fd)
{
    for (int i = 0; i < s->members_max; i++)
        if (s->members[i].fd == fd)
            return &s->members[i];
    return NULL;
}

static void answer(struct rendezvous_server *s, const struct rendezvous_wait *wait,
                   enum error_code code, const char *text)
{
    send_message(s, member_of_fd(s, wait->fd), WIRE_REPLY, wait->request, code, text);
}

static void set(struct rendezvous_server *s, struct member *m, const struct wire_message *in)
{
    struct error err = {.code = ERR_NONE};
    store_table_set(s->table, in->key, in->text, &err);
    send_message(s, m, WIRE_REPLY, in->number, err.code, err.code ? err.msg : "");
    struct rendezvous_wait wait;
    while (!err.code && rendezvous_waits_take(s->waits, in->key, &wait))
        answer(s, &wait, ERR_NONE, in->text);
}

static void get(struct rendezvous_server *s, struct member *m, const struct wire_message *in)
{
    const char *value = store_table_get(s->table, in->key);
    if (value) {
        send_message(s, m, WIRE_REPLY, in->number, ERR_NONE, value);
        return;
    }
    struct rendezvous_wait wait = {
        .fd = m->fd, .request = in->number, .deadline_ms = clock_monotonic_ms() + in->size};
    memcpy(wait.key, in->key, sizeof wait.key);
    if (!rendezvous_waits_add(s->waits, &wait))
        send_message(s, m, WIRE_REPLY, in->number, ERR_INPUT, "too many requests wait");
}

/* Answers requests whose deadline has passed. Returns the next deadline. */
static int64_t expire_waits(struct rendezvous_server *s)
{
    struct rendezvous_wait wait;
    while (rendezvous_waits_take_due(s->waits, clock_monotonic_ms(), &wait))
        answer(s, &wait, ERR_TIMEOUT, "nobody has set it");
    return rendezvous_waits_next_ms(s->waits);
}

/* ---- the loop ---- */

static void handle(struct rendezvous_server *s, struct member *m)
{
    const struct wire_message in = m->in;
    struct error err;
    if (wire_check(&in, WIRE_FROM_RANK, &err) < 0 || (m->rank < 0) != (in.type == WIRE_JOIN))
        drop(s, m, "it sent nonsense");
    else if (in.type == WIRE_JOIN)
        join(s, m, &in);
    else if (in.type == WIRE_SET)
        set(s, m, &in);
    else if (in.type == WIRE_GET)
        get(s, m, &in);
    else if (in.type == WIRE_FAILED)
        lose(s, m->rank, "failed", in.text);
    else if (in.type == WIRE_GOODBYE)
        drop(s, m, NULL);
    else if (in.type == WIRE_BEAT && s->health.hear)
        s->health.hear(s->health.ctx, m->rank, in.key, in.text);
}

static void receive(struct rendezvous_server *s, struct member *m)
{
    ssize_t n = recv(m->fd, (char *)&m->in + m->in_bytes, sizeof m->in - m->in_bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(s, m, n < 0 ? strerror(errno) : "connection closed");
        return;
    }
    m->heard_ms = clock_monotonic_ms();
    m->in_bytes += (size_t)n;
    if (m->in_bytes == sizeof m->in) {
        m->in_bytes = 0;
        if (m->rank >= 0)
            rendezvous_round_hear(s->round, m->rank);
        handle(s, m);
    }
}

/* If all places are taken, drops the oldest connection that has not joined. A rank joins as soon as
 * it is challenged, so strangers that hold connections open do not keep it out. */
static struct member *make_room(struct rendezvous_server *s)
{
    struct member *oldest = member_of_fd(s, -1);
    for (int i = 0; i < s->members_max && (!oldest || oldest->fd >= 0); i++)
        if (s->members[i].rank < 0 && (!oldest || s->members[i].accepted_ms < oldest->accepted_ms))
            oldest = &s->members[i];
    if (oldest && oldest->fd >= 0)
        drop(s, oldest, NULL);
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
        drop(s, m, NULL); /* the process tries again */
    else
        send_message(s, m, WIRE_CHALLENGE, 0, 0, m->nonce);
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
            drop(s, m, how);
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
        broadcast(s, WIRE_REFUSED, err.msg);
    }
    lose(s, 0, "failed", err.msg);
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

static void beat(struct rendezvous_server *s)
{
    int64_t now_ms = clock_monotonic_ms();
    bool is_due = now_ms >= s->beat_ms + s->beat_every_ms;
    if (now_ms >= next_beats_ms(s))
        send_beats(s);
    if (is_due)
        check_health(s);
}

static void *server_main(void *arg)
{
    struct rendezvous_server *s = arg;
    while (!s->leaving) {
        int64_t wait_ms = expire_waits(s), beat_ms = next_beats_ms(s);
        serve(s, wait_ms < beat_ms ? wait_ms : beat_ms);
        drop_silent(s);
        beat(s);
    }
    /* Wait for the ranks to hang up first: see rendezvous_close(). */
    int64_t until_ms = clock_monotonic_ms() + FAREWELL_MS;
    rendezvous_round_end(s->round);
    broadcast(s, WIRE_GOODBYE, "");
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
