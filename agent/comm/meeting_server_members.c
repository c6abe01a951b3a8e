/* Who comes to node 0's meeting, and what they say. */
#include "agent/comm/meeting_server_internal.h"
#include "agent/comm/net.h"
#include "agent/comm/store.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NODE_MOST = 4095, PAUSE_MS = 100, REFUSALS_TOLD = 8 };

void meeting_server_set_slots(struct meeting_server *s, int slots)
{
    const struct meeting_options *o = &s->options;
    int most = slots > 0 ? slots / o->local_size : o->roster.max;
    s->slots = slots;
    s->nodes_max = most < o->roster.max ? most : o->roster.max;
    roster_limit(s->roster, s->nodes_max);
}

static struct member *member_of(struct meeting_server *s, int node)
{
    for (int i = 0; i < s->members_max; i++)
        if (meeting_server_has_joined(&s->members[i]) && s->members[i].node == node)
            return &s->members[i];
    return NULL;
}

static bool has_proof(const struct meeting_server *s, const struct member *m)
{
    char expected[RENDEZVOUS_PROOF_BYTES];
    const struct meeting_message *in = &m->link.in;
    rendezvous_prove(s->options.secret, m->nonce, in->number, in->size, in->text, expected);
    return !s->options.secret[0] || rendezvous_proof_equal(in->proof, expected);
}

/* Node 0's launcher is another than before: the others know the run's better than its default. */
static void adopt_slots(struct meeting_server *s, int slots)
{
    const struct meeting_options *o = &s->options;
    if (!o->slots_are_default || roster_nodes(s->roster) > 0 || slots <= 0 ||
        slots / o->local_size < o->roster.min)
        return;
    meeting_server_set_slots(s, slots);
}

static void join(struct meeting_server *s, struct member *m, int64_t now_ms)
{
    const struct meeting_message in = m->link.in;
    const struct meeting_options *o = &s->options;
    char text[200] = "";
    if (!has_proof(s, m) || in.number < 0 || in.number > NODE_MOST) {
        meeting_server_drop(s, m, ROSTER_LEFT);
        return;
    }
    if (strcmp(in.text, o->job_id) != 0) {
        snprintf(text, sizeof text, "this is the meeting of another job than \"%.60s\"", in.text);
        meeting_server_send_text(s, m, MEETING_AGAIN, 0, text);
    } else if (in.number == 0 || member_of(s, in.number)) {
        snprintf(text, sizeof text, "node %d is here already", in.number);
        meeting_server_send_text(s, m, MEETING_AGAIN, 0, text);
    } else if (in.size != o->local_size) {
        snprintf(text, sizeof text,
                 "node %d has %d ranks and node 0 has %d (PET_NPROC_PER_NODE): an elastic run "
                 "needs as many on each",
                 in.number, in.size, o->local_size);
        meeting_server_send_text(s, m, MEETING_REFUSED, 0, text);
    } else {
        m->node = in.number;
        adopt_slots(s, in.slots);
        roster_join(s->roster, m->node, in.other, in.name, now_ms);
    }
}

void meeting_server_node_ready(struct meeting_server *s, int node,
                               const struct meeting_report *last, const char *name, int64_t now_ms)
{
    char why[80];
    bool breaks = !last->have_met && !s->is_broken && roster_is_running(s->roster, node);
    roster_join(s->roster, node, 0, name, now_ms);
    roster_set_restarts(s->roster, node, last->restarts_left);
    if (!breaks)
        return;
    snprintf(why, sizeof why, "the ranks of node %d ended before all had met", node);
    meeting_server_end_round(s, ROSTER_WAIT, why);
}

static enum roster_loss loss_of(int32_t number)
{
    return number == ROSTER_LEFT || number == ROSTER_DONE ? (enum roster_loss)number : ROSTER_LOST;
}

static void handle(struct meeting_server *s, struct member *m, int64_t now_ms)
{
    const struct meeting_message *in = &m->link.in;
    if ((m->node == NO_NODE) != (in->type == MEETING_JOIN))
        meeting_server_drop(s, m, ROSTER_LOST);
    else if (in->type == MEETING_JOIN)
        join(s, m, now_ms);
    else if (in->type == MEETING_READY)
        meeting_server_node_ready(s, m->node, &(struct meeting_report){in->number, in->other != 0},
                                  in->name, now_ms);
    else if (in->type == MEETING_GOODBYE)
        meeting_server_drop(s, m, loss_of(in->other));
    else if (in->type != MEETING_BEAT)
        meeting_server_drop(s, m, ROSTER_LOST);
}

static struct member *make_room(struct meeting_server *s)
{
    struct member *oldest = NULL;
    for (int i = 0; i < s->members_max; i++) {
        struct member *m = &s->members[i];
        if (m->link.fd < 0)
            return m;
        if (m->node == NO_NODE && (!oldest || m->accepted_ms < oldest->accepted_ms))
            oldest = m;
    }
    if (oldest)
        meeting_server_drop(s, oldest, ROSTER_LEFT);
    return oldest;
}

void meeting_server_accept(struct meeting_server *s, int64_t now_ms)
{
    struct error ignored;
    for (;;) {
        int fd = net_accept(s->listener);
        if (fd < 0) { /* else poll() would return at once for what is in the backlog */
            if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                s->full_until_ms = now_ms + PAUSE_MS;
            return;
        }
        struct member *m = make_room(s);
        if (!m) {
            close(fd);
            return;
        }
        *m = (struct member){
            .link = {.fd = fd, .heard_ms = now_ms}, .node = NO_NODE, .accepted_ms = now_ms};
        if (rendezvous_nonce(m->nonce, &ignored) < 0)
            meeting_server_drop(s, m, ROSTER_LEFT);
        else
            meeting_server_send_text(s, m, MEETING_CHALLENGE, 0, m->nonce);
    }
}

/* It knows this version by the header of the challenge, and ends for it. */
static void tell_refusal(struct meeting_server *s, const struct member *m, const struct error *why)
{
    struct refusals *told = &s->refused;
    char host[STORE_HOST_MAX] = "";
    if (strcmp(told->last, why->msg) == 0 || told->count >= REFUSALS_TOLD)
        return;
    told->count++;
    snprintf(told->last, sizeof told->last, "%s", why->msg);
    net_peer_host(m->link.fd, host, sizeof host);
    log_warning("meeting of the launchers: one at %s is refused: %s", host, why->msg);
}

void meeting_server_receive(struct meeting_server *s, struct member *m, int64_t now_ms)
{
    struct error err;
    while (m->link.fd >= 0) {
        int got = meeting_receive(&m->link, now_ms, &err);
        if (got == 0)
            return;
        if (got < 0 && err.code == ERR_UNSUPPORTED)
            tell_refusal(s, m, &err);
        if (got < 0)
            meeting_server_drop(s, m, ROSTER_LOST);
        else
            handle(s, m, now_ms);
    }
}
