#include "agent/comm/net.h"
#include "agent/comm/rendezvous_internal.h"
#include "agent/comm/rendezvous_proof.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define SEND_MS 5000

int rendezvous_send(struct rendezvous *r, struct wire_message *message, struct error *err)
{
    message->magic = WIRE_MAGIC;
    pthread_mutex_lock(&r->send_mutex);
    int result = net_send(r->fd, message, sizeof *message, clock_monotonic_ms() + SEND_MS, err);
    pthread_mutex_unlock(&r->send_mutex);
    return result;
}

void rendezvous_set_state(struct rendezvous *r, enum rendezvous_state state, const char *reason)
{
    pthread_mutex_lock(&r->mutex);
    r->state = state;
    r->is_welcomed |= state == RUNNING;
    if (reason)
        snprintf(r->reason, sizeof r->reason, "%s", reason);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

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
    rendezvous_send(r, &join, &ignored);
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
    rendezvous_send(r, &beat, &ignored);
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
            rendezvous_set_state(r, JOINING, in->text);
        return true;
    case WIRE_WELCOME:
        rendezvous_set_state(r, RUNNING, "");
        send_beat(r); /* one that stands still before its first beat is known, too */
        return true;
    case WIRE_REPLY:
        deliver_reply(r, in);
        return true;
    case WIRE_INSPECT:
        inspect(r, in);
        return true;
    case WIRE_LOST:
        store_mark_lost(&r->head, in->text);
        rendezvous_set_state(r, BROKEN, in->text);
        return true;
    case WIRE_AGAIN:
        rendezvous_set_state(r, SENT_AWAY, in->text);
        return false;
    case WIRE_REFUSED:
        rendezvous_set_state(r, REFUSED, in->text);
        return false;
    default:
        rendezvous_set_state(r, GONE, "rank 0 has left");
        return false;
    }
}

const char rendezvous_hung_up[] = "rank 0 hung up without a word: SHOAL_RUN_SECRET, or else "
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
        snprintf(reason, sizeof reason, "%s", rendezvous_hung_up);
    else
        snprintf(reason, sizeof reason, "rank 0 is lost (%.100s)", how);
    if (was_running)
        store_mark_lost(&r->head, reason);
    rendezvous_set_state(r, GONE, reason);
}

void *rendezvous_watch(void *arg)
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
