/* Launchers of an elastic run that meet, over real sockets, all in this process. */
#include "agent/comm/meeting_wire.h"
#include "agent/comm/net.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/mem.h"
#include "tests/agent/meetings.h"
#include "tests/support.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void launchers_come_and_go(void **state)
{
    (void)state;
    int port = meetings_free_port();
    struct meeting *nodes[MEETINGS];
    for (int i = 0; i < MEETINGS; i++)
        nodes[i] = meetings_open(port, i, &meetings_plain);
    meetings_ready(nodes);
    meetings_begin(nodes, 3, true);
    meetings_ready(nodes); /* a rank has failed */
    meetings_begin(nodes, 3, false);

    meeting_close(take(nodes[1]), MEETING_MAY_RETURN);
    for (int i = 0; i < MEETINGS; i += 2) {
        struct meeting_event event = meetings_pump(nodes, i);
        assert_int_equal(event.what, MEETING_ROUND_BROKEN);
        assert_string_equal(event.news, "node 1 is lost");
    }
    meetings_ready(nodes);
    meetings_begin(nodes, 2, true); /* patience is 0 s */

    nodes[1] = meetings_open(port, 1, &meetings_plain);
    meeting_ready(nodes[1], NULL);
    for (int i = 0; i < MEETINGS; i += 2) {
        assert_int_equal(meetings_pump(nodes, i).what, MEETING_ROUND_ENDS);
        meeting_ready(nodes[i], NULL);
    }
    meetings_begin(nodes, 3, true);

    meeting_close(take(nodes[2]), MEETING_ASKED_TO_END);
    assert_int_equal(meetings_pump(nodes, 0).what, MEETING_ROUND_ENDS);
    assert_int_equal(meetings_pump(nodes, 1).what, MEETING_ROUND_ENDS);
    meetings_ready(nodes);
    meetings_begin(nodes, 2, true);

    meeting_close(take(nodes[0]), MEETING_MAY_RETURN);
    struct meeting_event event = meetings_pump(nodes, 1);
    assert_int_equal(event.what, MEETING_ROUND_BROKEN);
    assert_non_null(strstr(event.news, "node 0 is lost"));
    nodes[0] = meetings_open(port, 0, &meetings_plain);
    meetings_ready(nodes);
    meetings_begin(nodes, 2, true);

    nodes[2] = meetings_open(port, 2, &meetings_plain); /* it comes as the others end */
    meeting_ready(nodes[2], NULL);
    assert_int_equal(meetings_pump(nodes, 0).what, MEETING_ROUND_ENDS);
    meeting_close(take(nodes[1]), MEETING_ALL_DONE);
    meeting_close(take(nodes[0]), MEETING_ALL_DONE);
    assert_int_equal(meetings_pump(nodes, 2).what, MEETING_RUN_DONE);
    meeting_close(nodes[2], MEETING_ALL_DONE);
}

/* Node 2 is another's in some way; the others begin without it. */
static void strangers_take_no_part(void **state)
{
    (void)state;
    static const struct {
        struct meeting_options options;
        enum error_code code;
        const char *why;
    } rows[] = {
        {{.local_size = 2, .job_id = "j", .secret = "t", .patience_ms = 300}, ERR_TIMEOUT, ""},
        {{.local_size = 2, .job_id = "k", .secret = "s", .patience_ms = 300},
         ERR_TIMEOUT,
         "this is the meeting of another job than \"k\""},
        {{.local_size = 3, .job_id = "j", .secret = "s"},
         ERR_CONFIG,
         "node 2 has 3 ranks and node 0 has 2"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int port = meetings_free_port();
        struct meeting *nodes[MEETINGS] = {meetings_open(port, 0, &meetings_plain), NULL,
                                           meetings_open(port, 2, &rows[i].options)};
        meetings_ready(nodes);
        struct meeting_event event = meetings_pump(nodes, 2);
        assert_int_equal(event.what, MEETING_FAILED);
        assert_fails(-1, &event.err, rows[i].code, rows[i].why);
        meeting_close(take(nodes[2]), MEETING_MAY_RETURN);
        nodes[1] = meetings_open(port, 1, &meetings_plain);
        meeting_ready(nodes[1], NULL);
        meetings_begin(nodes, 2, true);
        meeting_close(nodes[1], MEETING_ALL_DONE);
        meeting_close(nodes[0], MEETING_ALL_DONE);
    }
}

static void too_few_give_up(void **state)
{
    (void)state;
    struct meeting_options hasty = meetings_plain;
    hasty.patience_ms = 100;
    struct meeting *nodes[MEETINGS] = {meetings_open(meetings_free_port(), 0, &hasty)};
    meetings_ready(nodes);
    struct meeting_event event = meetings_pump(nodes, 0);
    assert_int_equal(event.what, MEETING_FAILED);
    assert_fails(-1, &event.err, ERR_TIMEOUT, "at least 2 are needed; missing: node 1 2");
    meeting_close(nodes[0], MEETING_MAY_RETURN);
}

static void who_is_one_too_many_is_told(void **state)
{
    (void)state;
    int port = meetings_free_port();
    struct meeting_options one = meetings_plain;
    one.roster = (struct roster_options){1, 1, 1, 0};
    struct meeting *nodes[MEETINGS] = {meetings_open(port, 0, &one), meetings_open(port, 1, &one)};
    meetings_ready(nodes);
    assert_int_equal(meetings_pump(nodes, 0).what, MEETING_ROUND_BEGINS);
    while (!meeting_waits_for(nodes[1])[0]) {
        meetings_rest(nodes[0], 5);
        meetings_rest(nodes[1], 5);
    }
    assert_string_equal(meeting_waits_for(nodes[1]),
                        "1 node trains, and no more may: this one is in reserve");
    meeting_close(take(nodes[0]), MEETING_ALL_DONE);
    assert_int_equal(meetings_pump(nodes, 1).what, MEETING_RUN_DONE);
    meeting_close(nodes[1], MEETING_ALL_DONE);
}

/* After the first round: what the others have in memory would go with node 0. */
static void too_few_of_a_run_wait_on(void **state)
{
    (void)state;
    int port = meetings_free_port();
    struct meeting_options hasty = meetings_plain;
    hasty.patience_ms = 100;
    hasty.roster.expected = 2;
    struct meeting *nodes[MEETINGS] = {meetings_open(port, 0, &hasty),
                                       meetings_open(port, 1, &meetings_plain)};
    meetings_ready(nodes);
    meetings_begin(nodes, 2, true);
    meeting_close(take(nodes[1]), MEETING_MAY_RETURN);
    assert_int_equal(meetings_pump(nodes, 0).what, MEETING_ROUND_BROKEN);
    meeting_ready(nodes[0], NULL);
    meetings_rest(nodes[0], 2 * hasty.patience_ms);
    nodes[1] = meetings_open(port, 1, &meetings_plain);
    meeting_ready(nodes[1], NULL);
    meetings_begin(nodes, 2, true);
    meeting_close(nodes[1], MEETING_ALL_DONE);
    meeting_close(nodes[0], MEETING_ALL_DONE);
}

/* However long it had waited with the node 0 before. */
static void who_waits_has_patience_with_a_new_node_0(void **state)
{
    (void)state;
    enum { PATIENCE_MS = 2000 };
    int port = meetings_free_port();
    struct meeting_options patient = meetings_plain;
    patient.patience_ms = PATIENCE_MS;
    struct meeting *nodes[MEETINGS] = {meetings_open(port, 0, &meetings_plain),
                                       meetings_open(port, 1, &patient)};
    struct meeting_event event;
    meeting_ready(nodes[1], NULL);
    for (int64_t until_ms = clock_monotonic_ms() + PATIENCE_MS; clock_monotonic_ms() < until_ms;)
        for (int i = 0; i < 2; i++) {
            poll(NULL, 0, 5);
            meeting_handle(nodes[i], &event);
            assert_int_equal(event.what, MEETING_NOTHING);
        }
    meeting_close(nodes[0], MEETING_MAY_RETURN);
    struct meeting_options few = meetings_plain;
    few.roster.expected = 2;
    nodes[0] = meetings_open(port, 0, &few);
    meeting_ready(nodes[0], NULL);
    assert_int_equal(meetings_pump(nodes, 1).what, MEETING_ROUND_BEGINS);
    meeting_close(nodes[1], MEETING_ALL_DONE);
    meeting_close(nodes[0], MEETING_ALL_DONE);
}

/* Node 2's ranks have ended, while node 0 tells it that they are to end, as node 1 is lost. */
static void an_end_that_is_late_is_none(void **state)
{
    (void)state;
    int port = meetings_free_port();
    struct meeting *nodes[MEETINGS];
    for (int i = 0; i < MEETINGS; i++)
        nodes[i] = meetings_open(port, i, &meetings_plain);
    meetings_ready(nodes);
    meetings_begin(nodes, 3, true);
    meeting_close(take(nodes[1]), MEETING_MAY_RETURN);
    struct meeting_event event = meetings_pump((struct meeting *[MEETINGS]){nodes[0]}, 0);
    assert_int_equal(event.what, MEETING_ROUND_BROKEN);
    meetings_ready(nodes);
    meetings_begin(nodes, 2, true);
    nodes[1] = meetings_open(port, 1, &meetings_plain); /* for which the round ends, once */
    meeting_ready(nodes[1], NULL);
    for (int i = 0; i < MEETINGS; i += 2) {
        assert_int_equal(meetings_pump(nodes, i).what, MEETING_ROUND_ENDS);
        meeting_ready(nodes[i], NULL);
    }
    meetings_begin(nodes, 3, true);
    for (int i = MEETINGS - 1; i >= 0; i--)
        meeting_close(nodes[i], MEETING_ALL_DONE);
}

/* Node 1's ranks are a little later than node 0's, which hangs up. */
static void the_end_of_the_run_breaks_no_round(void **state)
{
    (void)state;
    int port = meetings_free_port();
    struct meeting_options few = meetings_plain;
    few.roster.expected = 2;
    struct meeting *nodes[MEETINGS] = {meetings_open(port, 0, &few), meetings_open(port, 1, &few)};
    meetings_ready(nodes);
    meetings_begin(nodes, 2, true);
    meeting_close(take(nodes[0]), MEETING_ALL_DONE);
    assert_int_equal(meetings_pump(nodes, 1).what, MEETING_RUN_DONE);
    meetings_rest(nodes[1], 20);
    meetings_ready(nodes); /* a rank has failed, behind the end */
    assert_int_equal(meetings_pump(nodes, 1).what, MEETING_RUN_DONE);
    meeting_close(nodes[1], MEETING_ALL_DONE);
}

/* Node 1, which takes part in rounds and reads nothing. */
static int join_deaf(int port)
{
    struct meeting_link link = {.fd = -1};
    struct meeting_message join = {.type = MEETING_JOIN, .number = 1, .size = 2, .text = "j"};
    struct error err;
    assert_ok(
        net_connect("127.0.0.1", port, clock_monotonic_ms() + SUPPORT_PATIENCE_MS, &link.fd, &err),
        &err);
    assert_ok(meeting_send(&link, &join, &err), &err);
    return link.fd;
}

/* Fills node 0's end of the connection, which is in this process: it takes no more. */
static void fill(int fd)
{
    static const char bytes[4096];
    struct sockaddr_in own, peer;
    socklen_t length = sizeof own;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &length), 0);
    for (int other = 0; other < 256; other++) {
        length = sizeof peer;
        if (getpeername(other, (struct sockaddr *)&peer, &length) == 0 &&
            peer.sin_family == AF_INET && peer.sin_port == own.sin_port)
            while (send(other, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
                ;
    }
}

/* All others hear of a round that begins before they hear that it is broken. */
static void who_reads_nothing_is_dropped_behind_the_start(void **state)
{
    (void)state;
    int port = meetings_free_port();
    struct meeting_options open = meetings_plain;
    open.secret = "";
    open.roster.patience_ms = SUPPORT_PATIENCE_MS;
    struct meeting *nodes[MEETINGS] = {meetings_open(port, 0, &open)};
    struct meeting_link deaf = {.fd = join_deaf(port)};
    struct meeting_message again = {.type = MEETING_READY, .number = 1, .other = 1};
    struct meeting_event event;
    struct error err;
    meetings_rest(nodes[0], 20); /* it is told before node 2 */
    nodes[2] = meetings_open(port, 2, &open);
    meetings_ready(nodes);
    for (int i = 0; i < MEETINGS; i += 2)
        assert_int_equal(meetings_pump(nodes, i).what, MEETING_ROUND_BEGINS);
    assert_ok(meeting_send(&deaf, &again, &err), &err);
    fill(deaf.fd);
    meeting_ready(nodes[2], NULL);
    meeting_ready(nodes[0], NULL);
    assert_int_equal(meetings_pump((struct meeting *[MEETINGS]){nodes[0]}, 0).what,
                     MEETING_ROUND_BEGINS);
    meeting_handle(nodes[0], &event);
    assert_int_equal(event.what, MEETING_ROUND_BROKEN);
    assert_string_equal(event.news, "node 1 is lost");
    assert_int_equal(meetings_pump(nodes, 2).what, MEETING_ROUND_BEGINS);
    assert_int_equal(meetings_pump(nodes, 2).what, MEETING_ROUND_BROKEN);
    meeting_hang_up(&deaf);
    meeting_close(nodes[2], MEETING_ALL_DONE);
    meeting_close(nodes[0], MEETING_ALL_DONE);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    struct meeting_message whole = {0}, wrong;
    struct error err;
    int sockets[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets), 0);
    struct meeting_link from = {.fd = sockets[0]}, to = {.fd = sockets[1]};
    assert_ok(meeting_send(&from, &whole, &err), &err);
    assert_int_equal(meeting_receive(&to, 7, &err), 1);
    assert_int_equal(to.heard_ms, 7);
    assert_int_equal(meeting_receive(&to, 8, &err), 0);
    assert_ok(meeting_check(&whole, &err), &err);
    wrong = whole, wrong.header.magic++;
    assert_fails(meeting_check(&wrong, &err), &err, ERR_INPUT, "no launcher");
    wrong = whole, wrong.header.version[0] = '\n';
    assert_fails(meeting_check(&wrong, &err), &err, ERR_INPUT, "no launcher");
    wrong = whole, memset(wrong.header.version, 'x', sizeof wrong.header.version);
    assert_fails(meeting_check(&wrong, &err), &err, ERR_INPUT, "no launcher");
    wrong = whole, wrong.header.protocol++;
    assert_fails(meeting_check(&wrong, &err), &err, ERR_UNSUPPORTED,
                 "the other launcher is shoal-agent " SHOAL_VERSION " (protocol ");
    wrong = whole, wrong.type = MEETING_TYPES;
    assert_fails(meeting_check(&wrong, &err), &err, ERR_INPUT, "unknown message of type");
    wrong = whole, memset(wrong.text, 'x', sizeof wrong.text);
    assert_fails(meeting_check(&wrong, &err), &err, ERR_INPUT, "text does not end");
    wrong = whole, memset(wrong.name, 'x', sizeof wrong.name);
    assert_fails(meeting_check(&wrong, &err), &err, ERR_INPUT, "text does not end");
    wrong = whole, memset(wrong.proof, 'x', sizeof wrong.proof);
    assert_fails(meeting_check(&wrong, &err), &err, ERR_INPUT, "text does not end");
    meeting_hang_up(&from);
    assert_fails(meeting_receive(&to, 9, &err), &err, ERR_PEER, "connection closed");
    meeting_hang_up(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_come_and_go),
        cmocka_unit_test(strangers_take_no_part),
        cmocka_unit_test(too_few_give_up),
        cmocka_unit_test(who_is_one_too_many_is_told),
        cmocka_unit_test(too_few_of_a_run_wait_on),
        cmocka_unit_test(who_waits_has_patience_with_a_new_node_0),
        cmocka_unit_test(an_end_that_is_late_is_none),
        cmocka_unit_test(the_end_of_the_run_breaks_no_round),
        cmocka_unit_test(who_reads_nothing_is_dropped_behind_the_start),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
