#include "agent/comm/meeting_server.h"

#include "agent/comm/meeting_wire.h"
#include "agent/comm/net.h"
#include "base/clock.h"
#include "base/listen.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STRANGERS_MAX = 64, NO_NODE = -1, NODE_MOST = 4095, PAUSE_MS = 100 };

struct member {
    struct meeting_link link;
    int node;       /* NO_NODE: has not joined */
    bool is_failed; /* it takes no bytes: to be dropped */
    char nonce[RENDEZVOUS_NONCE_BYTES];
    int64_t accepted_ms;
};

struct meeting_server {
    struct meeting_options options;
    struct roster *roster;
    int listener;
    struct member *members;
    int members_max;
    int64_t beat_ms;          /* when heartbeats were sent last */
    int64_t decide_ms;        /* when the roster is to be asked again */
    int64_t full_until_ms;    /* accept() failed: it is tried again then */
    int64_t ready_ms;         /* since when node 0 waits; -1: it does not */
    struct meeting_event own; /* node 0's, to be taken */
};

/* ---- sending ---- */

/* Who fails is dropped by the next meeting_server_handle(): all others hear of a round that begins
 * before they hear that it is broken. */
static void send_to(struct meeting_server *s, struct member *m, struct meeting_message *message)
{
    struct error err;
    if (m->is_failed || !meeting_send(&m->link, message, &err) || err.code != ERR_TIMEOUT)
        return;
    m->is_failed = true;
    s->decide_ms = 0;
}

static void send_text(struct meeting_server *s, struct member *m, enum meeting_type type,
                      int32_t other, const char *text)
{
    struct meeting_message message = {.type = type, .other = other};
    snprintf(message.text, sizeof message.text, "%s", text);
    send_to(s, m, &message);
}

static bool has_joined(const struct member *m)
{
    return m->link.fd >= 0 && m->node != NO_NODE;
}

/* Tells all nodes of the round that runs to end their ranks. */
static void end_round(struct meeting_server *s, enum roster_verdict how, const char *why)
{
    for (int i = 0; i < s->members_max; i++)
        if (has_joined(&s->members[i]) && roster_is_running(s->roster, s->members[i].node))
            send_text(s, &s->members[i], MEETING_END, how, why);
    if (!roster_is_running(s->roster, 0))
        return;
    s->own.what = how == ROSTER_REGROUP ? MEETING_ROUND_ENDS : MEETING_ROUND_BROKEN;
    snprintf(s->own.news, sizeof s->own.news, "%s", why);
}

static void drop(struct meeting_server *s, struct member *m, enum roster_loss how)
{
    char why[64];
    int node = m->node;
    meeting_hang_up(&m->link);
    m->node = NO_NODE;
    m->is_failed = false;
    if (node == NO_NODE || !roster_leave(s->roster, node, how, clock_monotonic_ms()))
        return;
    snprintf(why, sizeof why, "node %d %s", node,
             how == ROSTER_LOST ? "is lost" : "was asked to end");
    end_round(s, how == ROSTER_LOST ? ROSTER_WAIT : ROSTER_REGROUP, why);
}

/* ---- decisions ---- */

static void begin_round(struct meeting_server *s)
{
    auto_str struct str news;
    str_init(&news, MEETING_NEWS_BYTES - 1);
    roster_describe(s->roster, &news);
    struct meeting_message message = {.type = MEETING_BEGIN, .size = roster_nodes(s->roster)};
    struct meeting_event *own = &s->own;
    s->ready_ms = -1;
    if (s->options.free_port(&message.other, &own->err)) {
        own->what = MEETING_FAILED;
        return;
    }
    snprintf(message.text, sizeof message.text, "%s", str_text(&news));
    snprintf(message.proof, sizeof message.proof, "%s",
             roster_has_changed(s->roster) ? "changed" : "");
    *own = (struct meeting_event){.what = MEETING_ROUND_BEGINS,
                                  .nodes = message.size,
                                  .port = message.other,
                                  .has_changed = roster_has_changed(s->roster)};
    snprintf(own->news, sizeof own->news, "%s", str_text(&news));
    for (int i = 0; i < s->members_max; i++) {
        struct member *m = &s->members[i];
        message.number = has_joined(m) ? roster_rank(s->roster, m->node) : -1;
        if (message.number >= 0)
            send_to(s, m, &message);
    }
}

static void decide(struct meeting_server *s, int64_t now_ms)
{
    const struct meeting_options *o = &s->options;
    switch (roster_decide(s->roster, now_ms, &s->decide_ms)) {
    case ROSTER_START:
        begin_round(s);
        break;
    case ROSTER_REGROUP:
        end_round(s, ROSTER_REGROUP, "more nodes are here");
        break;
    case ROSTER_WAIT:
        break;
    }
    if (s->ready_ms < 0 || now_ms < s->ready_ms + o->patience_ms ||
        s->own.what != MEETING_NOTHING || roster_nodes(s->roster) > 0)
        return; /* after the first round it waits on: snapshots in memory would go with it */
    auto_str struct str text;
    str_init(&text, MEETING_NEWS_BYTES - 1);
    roster_describe_wait(s->roster, &text);
    s->own.what = MEETING_FAILED;
    error_set(&s->own.err, ERR_TIMEOUT, "gave up after %lld ms: %s", (long long)o->patience_ms,
              str_text(&text));
}

/* ---- joining ---- */

static struct member *member_of(struct meeting_server *s, int node)
{
    for (int i = 0; i < s->members_max; i++)
        if (has_joined(&s->members[i]) && s->members[i].node == node)
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

static void join(struct meeting_server *s, struct member *m, int64_t now_ms)
{
    const struct meeting_message in = m->link.in;
    const struct meeting_options *o = &s->options;
    char text[200] = "";
    if (!has_proof(s, m) || in.number < 0 || in.number > NODE_MOST) {
        drop(s, m, ROSTER_LEFT);
        return;
    }
    if (strcmp(in.text, o->job_id) != 0) {
        snprintf(text, sizeof text, "this is the meeting of another job than \"%.60s\"", in.text);
        send_text(s, m, MEETING_AGAIN, 0, text);
    } else if (in.number == 0 || member_of(s, in.number)) {
        snprintf(text, sizeof text, "node %d is here already", in.number);
        send_text(s, m, MEETING_AGAIN, 0, text);
    } else if (in.size != o->local_size) {
        snprintf(text, sizeof text,
                 "node %d has %d ranks and node 0 has %d (PET_NPROC_PER_NODE): an elastic run "
                 "needs as many on each",
                 in.number, in.size, o->local_size);
        send_text(s, m, MEETING_REFUSED, 0, text);
    } else {
        m->node = in.number;
        roster_join(s->roster, m->node, in.other, in.name, now_ms);
    }
}

static enum roster_loss loss_of(int32_t number)
{
    return number == ROSTER_LEFT || number == ROSTER_DONE ? (enum roster_loss)number : ROSTER_LOST;
}

static void handle(struct meeting_server *s, struct member *m, int64_t now_ms)
{
    const struct meeting_message *in = &m->link.in;
    if ((m->node == NO_NODE) != (in->type == MEETING_JOIN))
        drop(s, m, ROSTER_LOST);
    else if (in->type == MEETING_JOIN)
        join(s, m, now_ms);
    else if (in->type == MEETING_READY)
        roster_join(s->roster, m->node, 0, in->name, now_ms);
    else if (in->type == MEETING_GOODBYE)
        drop(s, m, loss_of(in->other));
    else if (in->type != MEETING_BEAT)
        drop(s, m, ROSTER_LOST);
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
        drop(s, oldest, ROSTER_LEFT);
    return oldest;
}

static void accept_all(struct meeting_server *s, int64_t now_ms)
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
            drop(s, m, ROSTER_LEFT);
        else
            send_text(s, m, MEETING_CHALLENGE, 0, m->nonce);
    }
}

static void receive(struct meeting_server *s, struct member *m, int64_t now_ms)
{
    struct error err;
    while (m->link.fd >= 0) {
        int got = meeting_receive(&m->link, now_ms, &err);
        if (got == 0)
            return;
        if (got < 0)
            drop(s, m, ROSTER_LOST);
        else
            handle(s, m, now_ms);
    }
}

/* What the node waits for, if anything. */
static void describe_wait_of(const struct meeting_server *s, int node, struct str *out)
{
    int nodes = roster_nodes(s->roster);
    if (s->ready_ms >= 0)
        roster_describe_wait(s->roster, out);
    else if (nodes >= s->options.roster.max && !roster_is_running(s->roster, node))
        str_printf(out, "%d node%s, and no more may: this one is in reserve", nodes,
                   nodes == 1 ? " trains" : "s train");
}

static void send_beats(struct meeting_server *s, int64_t now_ms)
{
    auto_str struct str text;
    str_init(&text, MEETING_NEWS_BYTES - 1);
    s->beat_ms = now_ms;
    for (int i = 0; i < s->members_max; i++)
        if (has_joined(&s->members[i])) {
            str_clear(&text);
            describe_wait_of(s, s->members[i].node, &text);
            send_text(s, &s->members[i], MEETING_BEAT, 0, str_text(&text));
        }
}

void meeting_server_handle(struct meeting_server *s, int64_t now_ms,
                           struct meeting_event *ret_event)
{
    accept_all(s, now_ms);
    for (int i = 0; i < s->members_max; i++) {
        struct member *m = &s->members[i];
        receive(s, m, now_ms);
        int64_t since_ms = m->node == NO_NODE ? m->accepted_ms : m->link.heard_ms;
        if (m->link.fd >= 0 && (m->is_failed || now_ms - since_ms > MEETING_SILENCE_MS))
            drop(s, m, ROSTER_LOST);
    }
    decide(s, now_ms);
    if (now_ms >= s->beat_ms + MEETING_BEAT_MS)
        send_beats(s, now_ms);
    *ret_event = s->own;
    s->own = (struct meeting_event){.what = MEETING_NOTHING};
}

nfds_t meeting_server_polls(const struct meeting_server *s, struct pollfd *polls,
                            int64_t *ret_until_ms)
{
    nfds_t count = 0;
    int64_t until_ms = s->beat_ms + MEETING_BEAT_MS;
    *ret_until_ms = s->decide_ms < until_ms ? s->decide_ms : until_ms;
    if (clock_monotonic_ms() >= s->full_until_ms)
        polls[count++] = (struct pollfd){.fd = s->listener, .events = POLLIN};
    for (int i = 0; i < s->members_max; i++)
        if (s->members[i].link.fd >= 0)
            polls[count++] = (struct pollfd){.fd = s->members[i].link.fd, .events = POLLIN};
    return count;
}

int meeting_server_polls_most(const struct meeting_server *s)
{
    return 1 + s->members_max;
}

void meeting_server_ready(struct meeting_server *s, int64_t now_ms)
{
    s->ready_ms = now_ms;
    s->decide_ms = now_ms;
    roster_join(s->roster, 0, 0, s->options.name, now_ms);
}

void meeting_server_describe_wait(const struct meeting_server *s, struct str *out)
{
    roster_describe_wait(s->roster, out);
}

/* ---- opening ---- */

int meeting_server_open(const struct meeting_options *options, struct meeting_server **ret_server,
                        struct error *err)
{
    const char *loopback = net_loopback(options->host);
    int listener;
    if (listen_tcp(loopback ? loopback : "", options->port, &listener, err))
        return -1;
    struct meeting_server *s = xcalloc(1, sizeof *s);
    s->options = *options;
    s->listener = listener;
    s->roster = roster_open(&options->roster);
    s->ready_ms = -1;
    s->decide_ms = INT64_MAX;
    s->members_max = options->roster.max + STRANGERS_MAX;
    s->members = xcalloc((size_t)s->members_max, sizeof *s->members);
    for (int i = 0; i < s->members_max; i++)
        s->members[i] = (struct member){.link = {.fd = -1}, .node = NO_NODE};
    *ret_server = s;
    return 0;
}

void meeting_server_close(struct meeting_server *s, bool is_done)
{
    for (int i = 0; i < s->members_max; i++) {
        struct member *m = &s->members[i];
        struct meeting_message goodbye = {.type = MEETING_GOODBYE};
        struct error ignored;
        if (is_done && has_joined(m)) {
            meeting_send(&m->link, &goodbye, &ignored);
            /* Closing a socket with unread bytes resets it, and the goodbye is lost. */
            while (meeting_receive(&m->link, 0, &ignored) > 0)
                ;
        }
        meeting_hang_up(&m->link);
    }
    close(s->listener);
    roster_close(s->roster);
    free(s->members);
    free(s);
}
