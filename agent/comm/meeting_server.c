#include "agent/comm/meeting_server.h"

#include "agent/comm/meeting_server_internal.h"
#include "agent/comm/net.h"
#include "base/clock.h"
#include "base/listen.h"
#include "base/mem.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STRANGERS_MAX = 64 };

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

void meeting_server_send_text(struct meeting_server *s, struct member *m, enum meeting_type type,
                              int32_t other, const char *text)
{
    struct meeting_message message = {.type = type, .other = other};
    snprintf(message.text, sizeof message.text, "%s", text);
    send_to(s, m, &message);
}

bool meeting_server_has_joined(const struct member *m)
{
    return m->link.fd >= 0 && m->node != NO_NODE;
}

void meeting_server_end_round(struct meeting_server *s, enum roster_verdict how, const char *why)
{
    for (int i = 0; i < s->members_max; i++)
        if (meeting_server_has_joined(&s->members[i]) &&
            roster_is_running(s->roster, s->members[i].node))
            meeting_server_send_text(s, &s->members[i], MEETING_END, how, why);
    s->is_broken |= how != ROSTER_REGROUP;
    if (!roster_is_running(s->roster, 0))
        return;
    s->own.what = how == ROSTER_REGROUP ? MEETING_ROUND_ENDS : MEETING_ROUND_BROKEN;
    snprintf(s->own.news, sizeof s->own.news, "%s", why);
}

void meeting_server_drop(struct meeting_server *s, struct member *m, enum roster_loss how)
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
    meeting_server_end_round(s, how == ROSTER_LOST ? ROSTER_WAIT : ROSTER_REGROUP, why);
}

/* ---- decisions ---- */

static void begin_round(struct meeting_server *s)
{
    auto_str struct str news;
    str_init(&news, MEETING_NEWS_BYTES - 1);
    roster_describe(s->roster, &news);
    struct meeting_message message = {
        .type = MEETING_BEGIN, .size = roster_nodes(s->roster), .slots = s->slots};
    struct meeting_event *own = &s->own;
    s->ready_ms = -1;
    s->is_broken = false;
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
                                  .slots = s->slots,
                                  .has_changed = roster_has_changed(s->roster)};
    snprintf(own->news, sizeof own->news, "%s", str_text(&news));
    for (int i = 0; i < s->members_max; i++) {
        struct member *m = &s->members[i];
        message.number = meeting_server_has_joined(m) ? roster_rank(s->roster, m->node) : -1;
        if (message.number >= 0)
            send_to(s, m, &message);
    }
}

/* Node 0's own launcher leaves, too, if it is one of them. */
static void dismiss(struct meeting_server *s)
{
    for (int i = 0; i < s->members_max; i++) {
        struct member *m = &s->members[i];
        const char *why =
            meeting_server_has_joined(m) ? roster_dismissal(s->roster, m->node) : NULL;
        if (why)
            meeting_server_send_text(s, m, MEETING_LEAVE, 0, why);
    }
    const char *why = roster_dismissal(s->roster, 0);
    if (!why)
        return;
    s->ready_ms = -1;
    s->own.what = MEETING_DISMISSED;
    snprintf(s->own.news, sizeof s->own.news, "%s", why);
}

static void decide(struct meeting_server *s, int64_t now_ms)
{
    const struct meeting_options *o = &s->options;
    switch (roster_decide(s->roster, now_ms, &s->decide_ms)) {
    case ROSTER_START:
        begin_round(s);
        break;
    case ROSTER_REGROUP:
        meeting_server_end_round(s, ROSTER_REGROUP, "more nodes are here");
        break;
    case ROSTER_DISMISS:
        dismiss(s);
        s->decide_ms = now_ms; /* of those that stay */
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

/* What the node waits for, if anything. */
static void describe_wait_of(const struct meeting_server *s, int node, int64_t now_ms,
                             struct str *out)
{
    int nodes = roster_nodes(s->roster);
    const char *train = nodes == 1 ? "node trains" : "nodes train";
    int64_t grows_ms = roster_grows_ms(s->roster);
    if (s->ready_ms >= 0) {
        roster_describe_wait(s->roster, out);
    } else if (nodes == 0 || roster_is_running(s->roster, node)) {
        return;
    } else if (nodes < s->nodes_max && grows_ms > now_ms) {
        str_printf(out, "%d %s, and the last came not long ago: more take part in %lld s", nodes,
                   train, (long long)(grows_ms - now_ms + 999) / 1000);
    } else if (nodes >= s->nodes_max) {
        str_printf(out, "%d %s, and no more may: this one is in reserve", nodes, train);
        if (s->nodes_max < s->options.roster.max)
            str_printf(out, " (parallel.reduction_slots=%d)", s->slots);
    }
}

static void send_beats(struct meeting_server *s, int64_t now_ms)
{
    auto_str struct str text;
    str_init(&text, MEETING_NEWS_BYTES - 1);
    s->beat_ms = now_ms;
    for (int i = 0; i < s->members_max; i++)
        if (meeting_server_has_joined(&s->members[i])) {
            str_clear(&text);
            describe_wait_of(s, s->members[i].node, now_ms, &text);
            meeting_server_send_text(s, &s->members[i], MEETING_BEAT, 0, str_text(&text));
        }
}

void meeting_server_handle(struct meeting_server *s, int64_t now_ms,
                           struct meeting_event *ret_event)
{
    meeting_server_accept(s, now_ms);
    for (int i = 0; i < s->members_max; i++) {
        struct member *m = &s->members[i];
        meeting_server_receive(s, m, now_ms);
        int64_t since_ms = m->node == NO_NODE ? m->accepted_ms : m->link.heard_ms;
        if (m->link.fd >= 0 && (m->is_failed || now_ms - since_ms > MEETING_SILENCE_MS))
            meeting_server_drop(s, m, ROSTER_LOST);
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

void meeting_server_ready(struct meeting_server *s, const struct meeting_report *last,
                          int64_t now_ms)
{
    const struct meeting_report none = {INT_MAX, true};
    s->ready_ms = now_ms;
    s->decide_ms = now_ms;
    meeting_server_node_ready(s, 0, last ? last : &none, s->options.name, now_ms);
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
    meeting_server_set_slots(s, options->slots);
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
        if (is_done && meeting_server_has_joined(m))
            meeting_send(&m->link, &goodbye, &ignored);
        /* Closing a socket with unread bytes resets it, and what was sent last is lost: the
         * goodbye, or why the other launcher is to leave, too. */
        while (m->link.fd >= 0 && meeting_receive(&m->link, 0, &ignored) > 0)
            ;
        meeting_hang_up(&m->link);
    }
    close(s->listener);
    roster_close(s->roster);
    free(s->members);
    free(s);
}
