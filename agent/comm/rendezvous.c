#include "agent/comm/rendezvous.h"

#include "agent/comm/net.h"
#include "agent/comm/rendezvous_proof.h"
#include "agent/comm/rendezvous_server.h"
#include "agent/comm/rendezvous_wire.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEND_MS 5000
/* For one connect(): two SYNs. The pod at that address may be gone; its name has another address
 * when the next one is there. */
#define ATTEMPT_MS 3000
#define REPLY_MS   10000 /* beyond the timeout of a get; without a reply by then rank 0 is lost */

enum state { JOINING, RUNNING, BROKEN, SENT_AWAY, REFUSED, GONE };

/* A set or get whose reply has not come. */
struct request {
    int32_t number;
    bool replied;
    struct wire_message reply;
    struct request *next;
};

struct rendezvous {
    struct store head;
    struct rendezvous_options options;
    struct rendezvous_server *server; /* rank 0's; else NULL */
    int fd;
    pthread_t watcher;
    bool introduced, is_known; /* the watcher thread's: WIRE_JOIN is sent; rank 0 has answered it */
    bool is_stranger;          /* likewise: rank 0 hung up on the last WIRE_JOIN */
    atomic_bool closing;       /* WIRE_GOODBYE is sent */
    pthread_mutex_t send_mutex; /* held while a message is sent: messages must not mix */
    pthread_mutex_t mutex;      /* guards the fields below */
    pthread_cond_t changed;
    enum state state;
    bool is_welcomed;             /* this attempt to join has reached RUNNING */
    char reason[STORE_VALUE_MAX]; /* of the state, as the server has sent it last */
    int32_t requests_made;
    struct request *requests;
};

static int send_message(struct rendezvous *r, struct wire_message *message, struct error *err)
{
    message->magic = WIRE_MAGIC;
    pthread_mutex_lock(&r->send_mutex);
    int result = net_send(r->fd, message, sizeof *message, clock_monotonic_ms() + SEND_MS, err);
    pthread_mutex_unlock(&r->send_mutex);
    return result;
}

/* reason NULL: the old one stays. */
static void set_state(struct rendezvous *r, enum state state, const char *reason)
{
    pthread_mutex_lock(&r->mutex);
    r->state = state;
    r->is_welcomed |= state == RUNNING;
    if (reason)
        snprintf(r->reason, sizeof r->reason, "%s", reason);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

/* ---- the watcher thread: the only one that reads from the connection ---- */

static void deliver_reply(struct rendezvous *r, const struct wire_message *in)
{
    pthread_mutex_lock(&r->mutex);
    for (struct request *q = r->requests; q; q = q->next) {
        if (q->number != in->number)
            continue;
        q->reply = *in;
        q->replied = true;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->mutex);
}

/* Answers the challenge: who this process is, and the proof that it knows the run's secret. */
static void introduce(struct rendezvous *r, const char *nonce)
{
    const struct rendezvous_options *o = &r->options;
    struct wire_message join = {.type = WIRE_JOIN, .number = o->rank, .size = o->size};
    struct error ignored; /* if sending fails, reading fails, too */
    snprintf(join.text, sizeof join.text, "%s", o->job_id);
    rendezvous_prove(o->secret, nonce, o->rank, o->size, join.text, join.key);
    send_message(r, &join, &ignored);
    r->introduced = true;
}

/* Rank 0 asks about this rank, or about one of its pod. */
static void inspect(const struct rendezvous *r, const struct wire_message *in)
{
    const struct rendezvous_health *health = &r->options.health;
    struct rendezvous_inspection inspection = {
        .rank = in->number, .witness = -1, .pid = in->size, .ends = in->key[0] != '\0'};
    snprintf(inspection.why, sizeof inspection.why, "%s", in->text);
    if (health->inspect && inspection.pid > 0)
        health->inspect(health->ctx, &inspection);
}

static void send_beat(struct rendezvous *r)
{
    struct wire_message beat = {.type = WIRE_BEAT};
    struct error ignored; /* unread messages may name the rank that was lost */
    if (r->options.health.tell)
        r->options.health.tell(r->options.health.ctx, beat.key, beat.text);
    send_message(r, &beat, &ignored);
}

/* Returns whether to go on reading. */
static bool handle(struct rendezvous *r, const struct wire_message *in)
{
    r->is_known |= in->type != WIRE_CHALLENGE;
    r->is_stranger &= !r->is_known;
    switch (in->type) {
    case WIRE_CHALLENGE:
        introduce(r, in->text);
        return true;
    case WIRE_BEAT:
        if (in->text[0])
            set_state(r, JOINING, in->text);
        return true;
    case WIRE_WELCOME:
        set_state(r, RUNNING, "");
        return true;
    case WIRE_REPLY:
        deliver_reply(r, in);
        return true;
    case WIRE_INSPECT:
        inspect(r, in);
        return true;
    case WIRE_LOST:
        store_mark_lost(&r->head, in->text);
        set_state(r, BROKEN, in->text);
        return true;
    case WIRE_AGAIN:
        set_state(r, SENT_AWAY, in->text);
        return false;
    case WIRE_REFUSED:
        set_state(r, REFUSED, in->text);
        return false;
    default:
        set_state(r, GONE, "rank 0 has left");
        return false;
    }
}

static const char hung_up[] = "rank 0 hung up without a word: SHOAL_RUN_SECRET, or else "
                              "SHOAL_RUN_ID, must be the same on all ranks";

/* The connection ended without a goodbye. */
static void lose_server(struct rendezvous *r, const char *how)
{
    pthread_mutex_lock(&r->mutex);
    bool was_running = r->state == RUNNING && !atomic_load(&r->closing);
    bool is_unknown = r->state == JOINING && r->introduced && !r->is_known;
    pthread_mutex_unlock(&r->mutex);
    char reason[STORE_VALUE_MAX];
    r->is_stranger |= is_unknown;
    if (is_unknown)
        snprintf(reason, sizeof reason, "%s", hung_up);
    else
        snprintf(reason, sizeof reason, "rank 0 is lost (%.100s)", how);
    if (was_running)
        store_mark_lost(&r->head, reason);
    set_state(r, GONE, reason);
}

static void *watch(void *arg)
{
    struct rendezvous *r = arg;
    struct wire_message in;
    struct error err;
    size_t got = 0;
    int64_t heard_ms = clock_monotonic_ms(), beat_ms = heard_ms;
    for (;;) {
        int64_t now_ms = clock_monotonic_ms();
        if (now_ms - beat_ms >= r->options.beat_ms) {
            beat_ms = now_ms;
            if (r->introduced && !atomic_load(&r->closing))
                send_beat(r);
        }
        struct pollfd p = {.fd = r->fd, .events = POLLIN};
        poll(&p, 1, (int)(beat_ms + r->options.beat_ms - now_ms));
        ssize_t n = recv(r->fd, (char *)&in + got, sizeof in - got, 0);
        if (n > 0) {
            heard_ms = clock_monotonic_ms();
            got += (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            error_set(&err, ERR_PEER, "%s", n < 0 ? strerror(errno) : "connection closed");
            break;
        } else if (clock_monotonic_ms() - heard_ms > r->options.silence_ms) {
            error_set(&err, ERR_PEER, "no sign of life for %d ms", r->options.silence_ms);
            break;
        }
        if (got < sizeof in)
            continue;
        got = 0;
        if (wire_check(&in, WIRE_FROM_SERVER, &err) < 0)
            break;
        if (!handle(r, &in)) {
            shutdown(r->fd, SHUT_RDWR);
            return NULL;
        }
    }
    lose_server(r, err.msg);
    return NULL;
}

/* ---- the store ---- */

static void forget(struct rendezvous *r, const struct request *request)
{
    struct request **at = &r->requests;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
}

/* Sends the message as a request and waits for the reply's text. */
static int ask(struct rendezvous *r, struct wire_message *message, int timeout_ms,
               char ret_text[STORE_VALUE_MAX], struct error *err)
{
    struct request request = {0};
    int64_t deadline_ms = clock_monotonic_ms() + timeout_ms + REPLY_MS;
    pthread_mutex_lock(&r->mutex);
    message->number = request.number = ++r->requests_made;
    request.next = r->requests;
    r->requests = &request; /* cppcheck-suppress autoVariables; removed before this returns */
    pthread_mutex_unlock(&r->mutex);

    struct error ignored; /* if sending fails, the watcher thread finds out why */
    send_message(r, message, &ignored);
    pthread_mutex_lock(&r->mutex);
    while (!request.replied && r->state == RUNNING &&
           cond_wait_until(&r->changed, &r->mutex, deadline_ms))
        ;
    forget(r, &request);
    error_set(err, ERR_PEER, "%s",
              r->state == RUNNING ? "rank 0 is lost (it does not answer)" : r->reason);
    pthread_mutex_unlock(&r->mutex);
    if (!request.replied) {
        store_check(&r->head, err); /* a lost rank is the cause, if there is one */
        return -1;
    }
    if (request.reply.size != ERR_NONE)
        return error_set(err, (enum error_code)request.reply.size, "%s: %s", message->key,
                         request.reply.text);
    snprintf(ret_text, STORE_VALUE_MAX, "%s", request.reply.text);
    return 0;
}

static int rendezvous_set(struct store *s, const char *key, const char *value, struct error *err)
{
    struct wire_message message = {.type = WIRE_SET};
    char ignored[STORE_VALUE_MAX];
    snprintf(message.key, sizeof message.key, "%s", key);
    snprintf(message.text, sizeof message.text, "%s", value);
    return ask((struct rendezvous *)s, &message, 0, ignored, err);
}

static int rendezvous_get(struct store *s, const char *key, int timeout_ms, char *ret_value,
                          struct error *err)
{
    struct wire_message message = {.type = WIRE_GET, .size = timeout_ms};
    snprintf(message.key, sizeof message.key, "%s", key);
    return ask((struct rendezvous *)s, &message, timeout_ms, ret_value, err);
}

static const struct store_functions functions = {.set = rendezvous_set, .get = rendezvous_get};

struct store *rendezvous_store(struct rendezvous *r)
{
    return &r->head;
}

/* ---- joining ---- */

/* Rank 0 reaches its own server over the loopback: MASTER_ADDR may not resolve yet. */
static const char *server_host(const struct rendezvous_options *o)
{
    const char *loopback = net_loopback(o->host);
    return loopback ? loopback : o->rank == 0 ? "127.0.0.1" : o->host;
}

static void learn_addresses(struct rendezvous *r)
{
    struct store *s = &r->head;
    net_peer_host(r->fd, s->master_host, sizeof s->master_host);
    net_local_host(r->fd, s->self_host, sizeof s->self_host);
    if (net_loopback(s->self_host))
        s->self_host[0] = '\0'; /* others use the address at which they reach the store */
    const char *loopback = net_loopback(r->options.host);
    snprintf(s->listen_host, sizeof s->listen_host, "%s", loopback ? loopback : s->self_host);
}

static void disconnect(struct rendezvous *r)
{
    shutdown(r->fd, SHUT_RDWR);
    pthread_join(r->watcher, NULL);
    close(r->fd);
    r->fd = -1;
}

/* Waits until the state is no longer JOINING, or for the deadline. Fills *err unless
 * it is RUNNING. */
static enum state wait_for_welcome(struct rendezvous *r, int64_t deadline_ms, struct error *err)
{
    pthread_mutex_lock(&r->mutex);
    while (r->state == JOINING && cond_wait_until(&r->changed, &r->mutex, deadline_ms))
        ;
    /* A loss may come right behind the welcome, before this thread awakes. The rank has joined all
     * the same: the store reports the loss. To join again would wait for nobody. */
    enum state state = r->is_welcomed ? RUNNING : r->state;
    if (state != RUNNING)
        error_set(err, state == REFUSED ? ERR_CONFIG : ERR_TIMEOUT, "%s", r->reason);
    pthread_mutex_unlock(&r->mutex);
    return state;
}

/* One attempt: connects, joins, waits. Returns the state reached, and *err unless it is RUNNING. */
static enum state attempt_join(struct rendezvous *r, int64_t deadline_ms, struct error *err)
{
    const struct rendezvous_options *o = &r->options;
    int64_t connect_ms = clock_monotonic_ms() + ATTEMPT_MS;
    if (connect_ms > deadline_ms)
        connect_ms = deadline_ms;
    if (net_connect(server_host(o), o->port, connect_ms, &r->fd, err) < 0)
        return GONE;
    learn_addresses(r);
    set_state(r, JOINING, NULL);
    r->introduced = r->is_known = r->is_welcomed = false;
    bool was_stranger = r->is_stranger;
    int failure = pthread_create(&r->watcher, NULL, watch, r);
    if (failure) {
        close(r->fd);
        error_errno(err, failure, "start a thread");
        return GONE;
    }
    enum state state = wait_for_welcome(r, deadline_ms, err);
    if (state != RUNNING)
        disconnect(r);
    if (state == JOINING) /* this side hung up, after its deadline */
        r->is_stranger = was_stranger && !r->is_known;
    return state;
}

static int join_all(struct rendezvous *r, struct error *err)
{
    const struct rendezvous_options *o = &r->options;
    int64_t deadline_ms = clock_monotonic_ms() + o->join_timeout_ms;
    int attempt = 0;
    for (;;) {
        enum state state = attempt_join(r, deadline_ms, err);
        if (state == RUNNING)
            return 0;
        if (state == REFUSED)
            return -1;
        if (clock_monotonic_ms() >= deadline_ms) {
            if (r->is_stranger) /* the cause; that rank 0 gave up later is not */
                error_set(err, ERR_TIMEOUT, "%s", hung_up);
            err->code = ERR_TIMEOUT;
            return error_wrap(err, "gave up after %d ms", o->join_timeout_ms);
        }
        attempt = net_back_off(attempt, deadline_ms);
    }
}

static void destroy(struct rendezvous *r)
{
    rendezvous_server_close(r->server);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->mutex);
    pthread_mutex_destroy(&r->send_mutex);
    store_destroy(&r->head);
    free((char *)r->options.host);
    free((char *)r->options.job_id);
    free((char *)r->options.secret);
    free(r);
}

int rendezvous_open(const struct rendezvous_options *options, struct rendezvous **ret_rendezvous,
                    struct error *err)
{
    struct rendezvous_server *server = NULL;
    const char *loopback = net_loopback(options->host);
    struct rendezvous_server_options server_options = {.host = loopback ? loopback : "",
                                                       .port = options->port,
                                                       .size = options->size,
                                                       .job_id = options->job_id,
                                                       .secret = options->secret,
                                                       .beat_ms = options->beat_ms,
                                                       .silence_ms = options->silence_ms,
                                                       .health = options->health};
    /* Rank 0 serves first and then joins like all others, through the address that they use,
     * too. */
    if (options->rank == 0 && rendezvous_server_open(&server_options, &server, err) < 0)
        return error_wrap(err, "rendezvous");
    struct rendezvous *r = xcalloc(1, sizeof *r);
    store_init(&r->head, &functions);
    r->options = *options;
    r->options.host = xstrdup(options->host);
    r->options.job_id = xstrdup(options->job_id);
    r->options.secret = xstrdup(options->secret);
    r->server = server;
    pthread_mutex_init(&r->send_mutex, NULL);
    pthread_mutex_init(&r->mutex, NULL);
    cond_init(&r->changed);
    if (join_all(r, err) < 0) {
        error_wrap(err, "rendezvous at %s:%d", options->host, options->port);
        destroy(r);
        return -1;
    }
    *ret_rendezvous = r;
    return 0;
}

void rendezvous_fail(struct rendezvous *r, const char *why)
{
    struct wire_message message = {.type = WIRE_FAILED};
    struct error ignored;
    snprintf(message.text, sizeof message.text, "%.*s", STORE_VALUE_MAX - 1, why);
    send_message(r, &message, &ignored);
}

void rendezvous_close(struct rendezvous *r)
{
    if (!r)
        return;
    struct wire_message goodbye = {.type = WIRE_GOODBYE};
    struct error ignored;
    int64_t deadline_ms = clock_monotonic_ms() + FAREWELL_MS;
    atomic_store(&r->closing, true);
    send_message(r, &goodbye, &ignored);
    shutdown(r->fd, SHUT_WR);
    /* Wait for the server to hang up first. close() on a socket with unread bytes sends a reset,
     * and the peer's kernel then discards the goodbye. */
    pthread_mutex_lock(&r->mutex);
    while (r->state != GONE && cond_wait_until(&r->changed, &r->mutex, deadline_ms))
        ;
    pthread_mutex_unlock(&r->mutex);
    disconnect(r);
    destroy(r);
}
