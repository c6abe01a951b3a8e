#include "agent/comm/net.h"
#include "agent/comm/rendezvous_server_internal.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEND_MS 1000 /* a rank that accepts no message for so long is lost */

/* ---- sending ---- */

/* A closed connection is not dropped here: a goodbye may still lie unread in it. Only a rank that
 * accepts no bytes for SEND_MS is. */
void rendezvous_server_send(struct rendezvous_server *s, struct member *m, enum wire_type type,
                            int32_t number, int32_t size, const char *text)
{
    struct wire_message message = {
        .magic = WIRE_MAGIC, .type = type, .number = number, .size = size};
    struct error err;
    snprintf(message.text, sizeof message.text, "%.*s", STORE_VALUE_MAX - 1, text);
    if (net_send(m->fd, &message, sizeof message, clock_monotonic_ms() + SEND_MS, &err) < 0 &&
        err.code == ERR_TIMEOUT)
        rendezvous_server_drop(s, m, err.msg);
}

void rendezvous_server_broadcast(struct rendezvous_server *s, enum wire_type type, const char *text)
{
    for (int i = 0; i < s->members_max; i++)
        if (s->members[i].fd >= 0 && s->members[i].rank >= 0)
            rendezvous_server_send(s, &s->members[i], type, 0, 0, text);
}

void rendezvous_server_lose(struct rendezvous_server *s, int rank, const char *how, const char *why)
{
    char reason[STORE_VALUE_MAX];
    if (!rendezvous_round_has_begun(s->round) || !rendezvous_round_end(s->round))
        return;
    s->has_lost = true;
    snprintf(reason, sizeof reason, "rank %d %s (%.100s)", rank, how, why);
    rendezvous_server_broadcast(s, WIRE_LOST, reason);
}

void rendezvous_server_drop(struct rendezvous_server *s, struct member *m, const char *how)
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
        rendezvous_server_lose(s, rank, "is lost", how);
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

void rendezvous_server_check_health(struct rendezvous_server *s)
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
        rendezvous_server_lose(s, inspection.rank, "hangs", inspection.why);
}

/* ---- joining ---- */

static void join(struct rendezvous_server *s, struct member *m, const struct wire_message *in)
{
    char text[STORE_VALUE_MAX];
    switch (rendezvous_round_join(s->round, in, m->nonce, m->host, text)) {
    case RENDEZVOUS_HANG_UP:
        rendezvous_server_drop(s, m, NULL);
        break;
    case RENDEZVOUS_AGAIN:
        rendezvous_server_send(s, m, WIRE_AGAIN, 0, 0, text);
        break;
    case RENDEZVOUS_REFUSED:
        rendezvous_server_broadcast(s, WIRE_REFUSED, text);
        rendezvous_server_send(s, m, WIRE_REFUSED, 0, 0, text);
        break;
    case RENDEZVOUS_JOINED:
        m->rank = in->number;
        s->has_joiners = true;
        rendezvous_round_describe(s->round, text);
        rendezvous_server_send(s, m, WIRE_BEAT, 0, 0, text);
        break;
    case RENDEZVOUS_COMPLETE:
        m->rank = in->number;
        s->has_joiners = false;
        rendezvous_server_broadcast(s, WIRE_WELCOME, "");
        break;
    }
}

/* ---- the store ---- */

struct member *rendezvous_server_member(struct rendezvous_server *s, int fd)
{
    for (int i = 0; i < s->members_max; i++)
        if (s->members[i].fd == fd)
            return &s->members[i];
    return NULL;
}

static void answer(struct rendezvous_server *s, const struct rendezvous_wait *wait,
                   enum error_code code, const char *text)
{
    rendezvous_server_send(s, rendezvous_server_member(s, wait->fd), WIRE_REPLY, wait->request,
                           code, text);
}

static void set(struct rendezvous_server *s, struct member *m, const struct wire_message *in)
{
    struct error err = {.code = ERR_NONE};
    store_table_set(s->table, in->key, in->text, &err);
    rendezvous_server_send(s, m, WIRE_REPLY, in->number, err.code, err.code ? err.msg : "");
    struct rendezvous_wait wait;
    while (!err.code && rendezvous_waits_take(s->waits, in->key, &wait))
        answer(s, &wait, ERR_NONE, in->text);
}

static void get(struct rendezvous_server *s, struct member *m, const struct wire_message *in)
{
    const char *value = store_table_get(s->table, in->key);
    if (value) {
        rendezvous_server_send(s, m, WIRE_REPLY, in->number, ERR_NONE, value);
        return;
    }
    struct rendezvous_wait wait = {
        .fd = m->fd, .request = in->number, .deadline_ms = clock_monotonic_ms() + in->size};
    memcpy(wait.key, in->key, sizeof wait.key);
    if (!rendezvous_waits_add(s->waits, &wait))
        rendezvous_server_send(s, m, WIRE_REPLY, in->number, ERR_INPUT, "too many requests wait");
}

int64_t rendezvous_server_expire_waits(struct rendezvous_server *s)
{
    struct rendezvous_wait wait;
    while (rendezvous_waits_take_due(s->waits, clock_monotonic_ms(), &wait))
        answer(s, &wait, ERR_TIMEOUT, "nobody has set it");
    return rendezvous_waits_next_ms(s->waits);
}

/* ---- any message ---- */

void rendezvous_server_handle(struct rendezvous_server *s, struct member *m)
{
    const struct wire_message in = m->in;
    struct error err;
    if (wire_check(&in, WIRE_FROM_RANK, &err) < 0 || (m->rank < 0) != (in.type == WIRE_JOIN))
        rendezvous_server_drop(s, m, "it sent nonsense");
    else if (in.type == WIRE_JOIN)
        join(s, m, &in);
    else if (in.type == WIRE_SET)
        set(s, m, &in);
    else if (in.type == WIRE_GET)
        get(s, m, &in);
    else if (in.type == WIRE_FAILED)
        rendezvous_server_lose(s, m->rank, "failed", in.text);
    else if (in.type == WIRE_GOODBYE)
        rendezvous_server_drop(s, m, NULL);
    else if (in.type == WIRE_BEAT && s->health.hear)
        s->health.hear(s->health.ctx, m->rank, in.key, in.text);
}
