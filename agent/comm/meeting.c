#include "agent/comm/meeting.h"

#include "agent/comm/meeting_server.h"
#include "agent/comm/meeting_wire.h"
#include "agent/comm/net.h"
#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 200 };

struct meeting {
    struct meeting_options options;
    struct meeting_server *server; /* node 0's; else NULL, and what follows is used */
    struct meeting_link link;
    bool is_ready;      /* this node waits for a round */
    bool has_joined;    /* over this connection */
    bool is_admitted;   /* node 0 has answered that */
    bool is_running;    /* in a round that began over this connection */
    bool is_done;       /* the run is, as node 0 has said */
    int known, slots;   /* nodes and slots of the last round; 0: none */
    int64_t ready_ms;   /* since when it waits, or waits without node 0 */
    int64_t retry_ms;   /* when to connect again */
    int64_t beat_ms;    /* when a heartbeat was sent last */
    struct str waits;   /* meeting_waits_for() */
    struct error error; /* of the last attempt */
};

static void hang_up(struct meeting *m, int64_t now_ms)
{
    meeting_hang_up(&m->link);
    if (m->is_admitted)
        m->ready_ms = now_ms;
    m->has_joined = m->is_admitted = m->is_running = false;
    m->retry_ms = now_ms + RETRY_MS;
}

static void set_waits(struct meeting *m, const char *text)
{
    str_clear(&m->waits);
    str_add(&m->waits, text);
}

/* ---- what node 0 says ---- */

static void introduce(struct meeting *m, const char *nonce)
{
    const struct meeting_options *o = &m->options;
    struct meeting_message join = {.type = MEETING_JOIN,
                                   .number = o->node,
                                   .size = o->local_size,
                                   .other = m->known,
                                   .slots = m->slots};
    struct error ignored; /* if sending fails, reading fails, too */
    snprintf(join.name, sizeof join.name, "%s", o->name);
    snprintf(join.text, sizeof join.text, "%s", o->job_id);
    rendezvous_prove(o->secret, nonce, o->node, o->local_size, join.text, join.proof);
    meeting_send(&m->link, &join, &ignored);
    m->has_joined = true;
}

static void begin(struct meeting *m, const struct meeting_message *in, struct meeting_event *event)
{
    m->is_ready = false;
    m->is_running = m->is_admitted = true;
    m->known = in->size;
    m->slots = event->slots = in->slots;
    event->what = MEETING_ROUND_BEGINS;
    event->rank = in->number;
    event->nodes = in->size;
    event->port = in->other;
    event->has_changed = in->proof[0] != '\0';
}

static void handle(struct meeting *m, int64_t now_ms, struct meeting_event *event)
{
    const struct meeting_message *in = &m->link.in;
    snprintf(event->news, sizeof event->news, "%s", in->text);
    switch (in->type) {
    case MEETING_CHALLENGE:
        introduce(m, in->text);
        break;
    case MEETING_BEAT:
        set_waits(m, in->text);
        m->is_admitted = true;
        break;
    case MEETING_BEGIN:
        begin(m, in, event);
        break;
    case MEETING_END: /* else this node has said that its ranks have ended, while it was sent */
        if (m->is_running)
            event->what = in->other == ROSTER_REGROUP ? MEETING_ROUND_ENDS : MEETING_ROUND_BROKEN;
        break;
    case MEETING_LEAVE:
        event->what = MEETING_DISMISSED;
        break;
    case MEETING_GOODBYE:
        event->what = MEETING_RUN_DONE;
        m->is_done = true;
        hang_up(m, now_ms);
        break;
    case MEETING_REFUSED:
        event->what = MEETING_FAILED;
        error_set(&event->err, ERR_CONFIG, "%s", in->text);
        break;
    default: /* MEETING_AGAIN, or nonsense */
        error_set(&m->error, ERR_PEER, "%s", in->text);
        set_waits(m, in->text);
        hang_up(m, now_ms);
        break;
    }
}

/* ---- the connection ---- */

static void connect_again(struct meeting *m, struct meeting_event *event)
{
    const struct meeting_options *o = &m->options;
    int64_t now_ms = clock_monotonic_ms();
    if (!m->is_ready || now_ms < m->retry_ms)
        return;
    if (m->known == 0 && now_ms >= m->ready_ms + o->patience_ms) {
        event->what = MEETING_FAILED;
        event->err = m->error;
        event->err.code = ERR_TIMEOUT;
        error_wrap(&event->err, "meeting at %s:%d: gave up after %lld ms", o->host, o->port,
                   (long long)o->patience_ms);
        return;
    }
    const char *loopback = net_loopback(o->host);
    if (net_connect(loopback ? loopback : o->host, o->port, now_ms + NET_ATTEMPT_MS, &m->link.fd,
                    &m->error)) {
        set_waits(m, m->error.msg);
        m->link.fd = -1;
    }
    now_ms = clock_monotonic_ms();
    m->retry_ms = now_ms + RETRY_MS;
    m->link.heard_ms = m->beat_ms = now_ms;
}

/* Node 0's launcher is of another version, and learns of this one by the header of the answer. */
static void refuse_version(struct meeting *m, struct meeting_event *event)
{
    struct meeting_message answer = {.type = MEETING_REFUSED};
    struct error ignored;
    meeting_send(&m->link, &answer, &ignored);
    event->what = MEETING_FAILED;
    event->err = m->error;
    event->err.code = ERR_CONFIG;
    error_wrap(&event->err, "meeting at %s:%d", m->options.host, m->options.port);
}

static void beat(struct meeting *m, int64_t now_ms)
{
    struct meeting_message message = {.type = MEETING_BEAT};
    struct error ignored; /* if sending fails, reading fails, too */
    if (now_ms < m->beat_ms + MEETING_BEAT_MS)
        return;
    m->beat_ms = now_ms;
    if (m->has_joined)
        meeting_send(&m->link, &message, &ignored);
}

void meeting_handle(struct meeting *m, struct meeting_event *event)
{
    int64_t now_ms = clock_monotonic_ms();
    *event = (struct meeting_event){.what = MEETING_NOTHING};
    if (m->server) {
        meeting_server_handle(m->server, now_ms, event);
        str_clear(&m->waits);
        meeting_server_describe_wait(m->server, &m->waits);
        return;
    }
    if (m->is_done) {
        event->what = m->is_ready ? MEETING_RUN_DONE : MEETING_NOTHING;
        return;
    }
    if (m->link.fd < 0) {
        connect_again(m, event);
        return;
    }
    int got = meeting_receive(&m->link, now_ms, &m->error);
    if (got == 0 && now_ms - m->link.heard_ms > MEETING_SILENCE_MS)
        got = error_set(&m->error, ERR_PEER, "no sign of life for %d ms", MEETING_SILENCE_MS);
    if (got > 0)
        handle(m, now_ms, event);
    if (got < 0 && m->error.code == ERR_UNSUPPORTED) {
        refuse_version(m, event);
        hang_up(m, now_ms);
    } else if (got < 0) {
        event->what = m->is_running ? MEETING_ROUND_BROKEN : MEETING_NOTHING;
        snprintf(event->news, sizeof event->news, "node 0 is lost (%.200s)", m->error.msg);
        set_waits(m, event->news);
        hang_up(m, now_ms);
    }
    if (m->link.fd >= 0)
        beat(m, now_ms);
}

void meeting_ready(struct meeting *m, const struct meeting_report *last)
{
    struct meeting_message message = {.type = MEETING_READY,
                                      .number = last ? last->restarts_left : INT32_MAX,
                                      .other = !last || last->have_met};
    struct error ignored;
    int64_t now_ms = clock_monotonic_ms();
    if (m->server) {
        meeting_server_ready(m->server, last, now_ms);
        return;
    }
    m->is_ready = true;
    m->is_running = false;
    m->ready_ms = m->retry_ms = now_ms;
    snprintf(message.name, sizeof message.name, "%s", m->options.name);
    if (m->link.fd >= 0 && m->has_joined)
        meeting_send(&m->link, &message, &ignored);
}

int meeting_polls_most(const struct meeting *m)
{
    return m->server ? meeting_server_polls_most(m->server) : 1;
}

nfds_t meeting_polls(const struct meeting *m, struct pollfd *polls, int64_t *ret_until_ms)
{
    if (m->server)
        return meeting_server_polls(m->server, polls, ret_until_ms);
    *ret_until_ms = m->link.fd >= 0 ? m->beat_ms + MEETING_BEAT_MS
                    : m->is_ready   ? m->retry_ms
                                    : INT64_MAX;
    if (m->link.fd < 0)
        return 0;
    polls[0] = (struct pollfd){.fd = m->link.fd, .events = POLLIN};
    return 1;
}

const char *meeting_waits_for(const struct meeting *m)
{
    return str_text(&m->waits);
}

int meeting_open(const struct meeting_options *options, struct meeting **ret_meeting,
                 struct error *err)
{
    struct meeting_server *server = NULL;
    if (options->node == 0 && meeting_server_open(options, &server, err))
        return error_wrap(err, "meeting of the launchers");
    struct meeting *m = xcalloc(1, sizeof *m);
    m->options = *options;
    m->server = server;
    m->link.fd = -1;
    str_init(&m->waits, MEETING_NEWS_BYTES - 1);
    *ret_meeting = m;
    return 0;
}

void meeting_close(struct meeting *m, enum meeting_end why)
{
    static const enum roster_loss losses[] = {[MEETING_ASKED_TO_END] = ROSTER_LEFT,
                                              [MEETING_MAY_RETURN] = ROSTER_LOST,
                                              [MEETING_ALL_DONE] = ROSTER_DONE};
    struct meeting_message goodbye = {.type = MEETING_GOODBYE, .other = losses[why]};
    struct error ignored;
    if (!m)
        return;
    if (m->server)
        meeting_server_close(m->server, why == MEETING_ALL_DONE);
    else if (m->link.fd >= 0 && m->has_joined)
        meeting_send(&m->link, &goodbye, &ignored);
    meeting_hang_up(&m->link);
    str_free(&m->waits);
    free(m);
}
