#include "agent/comm/net.h"
#include "agent/comm/rendezvous_internal.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY_MS 10000 /* beyond the timeout of a get; without a reply by then rank 0 is lost */

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
    rendezvous_send(r, message, &ignored);
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
static enum rendezvous_state wait_for_welcome(struct rendezvous *r, int64_t deadline_ms,
                                              struct error *err)
{
    pthread_mutex_lock(&r->mutex);
    while (r->state == JOINING && cond_wait_until(&r->changed, &r->mutex, deadline_ms))
        ;
    /* A loss may come right behind the welcome, before this thread awakes. The rank has joined all
     * the same: the store reports the loss. To join again would wait for nobody. */
    enum rendezvous_state state = r->is_welcomed ? RUNNING : r->state;
    if (state != RUNNING)
        error_set(err, state == REFUSED ? ERR_CONFIG : ERR_TIMEOUT, "%s", r->reason);
    pthread_mutex_unlock(&r->mutex);
    return state;
}

/* One attempt: connects, joins, waits. Returns the state reached, and *err unless it is RUNNING. */
static enum rendezvous_state attempt_join(struct rendezvous *r, int64_t deadline_ms,
                                          struct error *err)
{
    const struct rendezvous_options *o = &r->options;
    if (net_connect(server_host(o), o->port, net_attempt_deadline_ms(deadline_ms), &r->fd, err) < 0)
        return GONE;
    learn_addresses(r);
    rendezvous_set_state(r, JOINING, NULL);
    r->introduced = r->is_known = r->is_welcomed = false;
    bool was_stranger = r->is_stranger;
    int failure = pthread_create(&r->watcher, NULL, rendezvous_watch, r);
    if (failure) {
        close(r->fd);
        error_errno(err, failure, "start a thread");
        return GONE;
    }
    enum rendezvous_state state = wait_for_welcome(r, deadline_ms, err);
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
        enum rendezvous_state state = attempt_join(r, deadline_ms, err);
        if (state == RUNNING)
            return 0;
        if (state == REFUSED)
            return -1;
        if (clock_monotonic_ms() >= deadline_ms) {
            if (r->is_stranger) /* the cause; that rank 0 gave up later is not */
                error_set(err, ERR_TIMEOUT, "%s", rendezvous_hung_up);
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
    rendezvous_send(r, &message, &ignored);
}

void rendezvous_close(struct rendezvous *r)
{
    if (!r)
        return;
    struct wire_message goodbye = {.type = WIRE_GOODBYE};
    struct error ignored;
    int64_t deadline_ms = clock_monotonic_ms() + FAREWELL_MS;
    atomic_store(&r->closing, true);
    rendezvous_send(r, &goodbye, &ignored);
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
