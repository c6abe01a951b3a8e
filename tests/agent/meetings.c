#include "tests/agent/meetings.h"

#include "base/clock.h"
#include "base/listen.h"
#include "base/mem.h"
#include "tests/support.h"

struct meeting *meetings_open(int port, int node, const struct meeting_options *other)
{
    struct meeting_options options = *other;
    struct meeting *meeting;
    struct error err;
    options.host = "127.0.0.1";
    options.port = port;
    options.node = node;
    options.name = "";
    options.free_port = listen_free_port;
    if (options.patience_ms == 0)
        options.patience_ms = SUPPORT_PATIENCE_MS;
    assert_ok(meeting_open(&options, &meeting, &err), &err);
    return meeting;
}

const struct meeting_options meetings_plain = {
    .local_size = 2, .roster = {2, MEETINGS, MEETINGS, 0}, .job_id = "j", .secret = "s"};

struct meeting_event meetings_pump(struct meeting *const nodes[MEETINGS], int node)
{
    struct meeting_event event, other;
    do {
        struct pollfd polls[100];
        int64_t until_ms;
        for (int i = 0; i < MEETINGS; i++) {
            if (!nodes[i])
                continue;
            assert_in_range(meeting_polls_most(nodes[i]), 1, array_length(polls));
            nfds_t count = meeting_polls(nodes[i], polls, &until_ms);
            poll(polls, count, 1);
            meeting_handle(nodes[i], i == node ? &event : &other);
            if (i == node && event.what != MEETING_NOTHING)
                break;
        }
    } while (event.what == MEETING_NOTHING);
    return event;
}

void meetings_begin(struct meeting *const nodes[MEETINGS], int count, bool has_changed)
{
    int port = 0;
    for (int i = 0, rank = 0; i < MEETINGS; i++) {
        if (!nodes[i])
            continue;
        struct meeting_event event = meetings_pump(nodes, i);
        assert_int_equal(event.what, MEETING_ROUND_BEGINS);
        assert_int_equal(event.rank, rank++);
        assert_int_equal(event.nodes, count);
        assert_int_equal(event.has_changed, has_changed);
        assert_true(event.port > 0 && (port == 0 || event.port == port));
        port = event.port;
    }
}

void meetings_ready(struct meeting *const nodes[MEETINGS])
{
    for (int i = 0; i < MEETINGS; i++)
        if (nodes[i])
            meeting_ready(nodes[i], NULL);
}

int meetings_free_port(void)
{
    int port;
    struct error err;
    assert_ok(listen_free_port(&port, &err), &err);
    return port;
}

void meetings_rest(struct meeting *node, int64_t ms)
{
    struct meeting_event event;
    for (int64_t until_ms = clock_monotonic_ms() + ms; clock_monotonic_ms() < until_ms;) {
        poll(NULL, 0, 5);
        meeting_handle(node, &event);
        assert_int_equal(event.what, MEETING_NOTHING);
    }
}
