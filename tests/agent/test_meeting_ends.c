/* Launchers of an elastic run for which no round follows, or whose node 0 is lost. */
#include "agent/comm/meeting_wire.h"
#include "agent/comm/net.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/listen.h"
#include "base/mem.h"
#include "tests/agent/meetings.h"
#include "tests/support.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Its ranks have failed behind node 1's end, and alone it is not enough: nobody else comes. */
static void a_failure_behind_the_end_of_others_waits_for_nobody(void **state)
{
    (void)state;
    int port = meetings_free_port();
    struct meeting_options few = meetings_plain;
    few.roster.expected = 2;
    struct meeting *nodes[MEETINGS] = {meetings_open(port, 0, &few), meetings_open(port, 1, &few)};
    meetings_ready(nodes);
    meetings_begin(nodes, 2, true);
    meeting_close(take(nodes[1]), MEETING_ALL_DONE);
    meeting_ready(nodes[0], &(struct meeting_report){3, true});
    struct meeting_event event = meetings_pump(nodes, 0);
    assert_int_equal(event.what, MEETING_DISMISSED);
    assert_non_null(strstr(event.news, "too few are left"));
    meeting_close(nodes[0], MEETING_MAY_RETURN);
}

/* No round begins for them, and each learns so before node 0 is gone. */
static void who_has_no_restart_left_is_dismissed(void **state)
{
    (void)state;
    int port = meetings_free_port();
    const struct meeting_report spent = {0, true}, fresh = {1, true};
    struct meeting *nodes[MEETINGS];
    for (int i = 0; i < MEETINGS; i++)
        nodes[i] = meetings_open(port, i, &meetings_plain);
    meetings_ready(nodes);
    meetings_begin(nodes, 3, true);
    meeting_ready(nodes[0], &fresh);
    meeting_ready(nodes[1], &spent);
    meeting_ready(nodes[2], &fresh);
    struct meeting_event event = meetings_pump(nodes, 1);
    assert_int_equal(event.what, MEETING_DISMISSED);
    assert_string_equal(event.news, "no restart is left");
    meeting_close(take(nodes[1]), MEETING_MAY_RETURN);
    meetings_begin(nodes, 2, true); /* patience is 0 s */
    meeting_ready(nodes[0], &spent);
    meeting_ready(nodes[2], &spent);
    assert_int_equal(meetings_pump(nodes, 0).what, MEETING_DISMISSED);
    meeting_close(take(nodes[0]), MEETING_MAY_RETURN);
    assert_int_equal(meetings_pump(nodes, 2).what, MEETING_DISMISSED);
    meeting_close(nodes[2], MEETING_MAY_RETURN);
}

/* Else the others' ranks would wait for those that never came. */
static void a_round_whose_ranks_have_not_met_is_broken(void **state)
{
    (void)state;
    int port = meetings_free_port();
    struct meeting *nodes[MEETINGS];
    for (int i = 0; i < MEETINGS; i++)
        nodes[i] = meetings_open(port, i, &meetings_plain);
    meetings_ready(nodes);
    meetings_begin(nodes, 3, true);
    meeting_ready(nodes[1], &(struct meeting_report){3, false});
    for (int i = 0; i < MEETINGS; i += 2) {
        struct meeting_event event = meetings_pump(nodes, i);
        assert_int_equal(event.what, MEETING_ROUND_BROKEN);
        assert_string_equal(event.news, "the ranks of node 1 ended before all had met");
    }
    meeting_ready(nodes[2], &(struct meeting_report){3, false});
    meetings_rest(nodes[0], 50); /* they are told once */
    meeting_ready(nodes[0], &(struct meeting_report){3, false});
    meetings_begin(nodes, 3, false);
    meeting_ready(nodes[0], &(struct meeting_report){3, false}); /* its rank 0 had no port */
    for (int i = 1; i < MEETINGS; i++)
        assert_int_equal(meetings_pump(nodes, i).what, MEETING_ROUND_BROKEN);
    for (int i = MEETINGS - 1; i >= 0; i--)
        meeting_close(nodes[i], MEETING_ALL_DONE);
}

/* What a launcher has in memory would go with it: it waits for node 0, however long. */
static void who_was_in_a_round_waits_on_for_node_0(void **state)
{
    (void)state;
    int port = meetings_free_port();
    struct meeting_options hasty = meetings_plain;
    hasty.patience_ms = 100;
    hasty.roster.expected = 2;
    struct meeting *nodes[MEETINGS] = {meetings_open(port, 0, &hasty),
                                       meetings_open(port, 1, &hasty)};
    meetings_ready(nodes);
    meetings_begin(nodes, 2, true);
    meeting_close(take(nodes[0]), MEETING_MAY_RETURN);
    assert_int_equal(meetings_pump(nodes, 1).what, MEETING_ROUND_BROKEN);
    meeting_ready(nodes[1], NULL);
    meetings_rest(nodes[1], 3 * hasty.patience_ms);
    assert_true(meeting_waits_for(nodes[1])[0]);
    nodes[0] = meetings_open(port, 0, &meetings_plain);
    meeting_ready(nodes[0], NULL);
    meetings_begin(nodes, 2, true);
    meeting_close(nodes[1], MEETING_ALL_DONE);
    meeting_close(nodes[0], MEETING_ALL_DONE);
}

/* Node 0 leaves, and has not read all of this node's words: what it has sent last arrives. */
static void what_node_0_says_last_arrives(void **state)
{
    (void)state;
    static const enum meeting_end ends[] = {MEETING_MAY_RETURN, MEETING_ALL_DONE};
    for (size_t i = 0; i < array_length(ends); i++) {
        int port = meetings_free_port();
        struct meeting_options open = meetings_plain;
        open.secret = "";
        struct meeting *nodes[MEETINGS] = {meetings_open(port, 0, &open)};
        struct meeting_link link = {.fd = -1};
        struct meeting_message join = {.type = MEETING_JOIN, .number = 1, .size = 2, .text = "j"},
                               beat = {.type = MEETING_BEAT};
        struct error err;
        int64_t until_ms = clock_monotonic_ms() + SUPPORT_PATIENCE_MS;
        assert_ok(net_connect("127.0.0.1", port, until_ms, &link.fd, &err), &err);
        assert_ok(meeting_send(&link, &join, &err), &err);
        while (meeting_receive(&link, 0, &err) != 1 || link.in.type != MEETING_BEAT)
            meetings_rest(nodes[0], 5);
        for (int b = 0; b < 10; b++)
            assert_ok(meeting_send(&link, &beat, &err), &err);
        meeting_close(nodes[0], ends[i]);
        int last;
        while ((last = meeting_receive(&link, 0, &err)) >= 0)
            poll(NULL, 0, 1);
        assert_fails(last, &err, ERR_PEER, "connection closed"); /* and not reset */
        assert_int_equal(link.in.type == MEETING_GOODBYE, ends[i] == MEETING_ALL_DONE);
        meeting_hang_up(&link);
    }
}

/* Node 0 comes back as another one, which would have other slots: those of the run stay. */
static void slots_outlive_node_0(void **state)
{
    (void)state;
    int port = meetings_free_port();
    struct meeting_options first = meetings_plain, second = meetings_plain;
    first.roster = (struct roster_options){2, MEETINGS, 2, 0};
    first.slots = 4;
    second.roster = (struct roster_options){2, MEETINGS, MEETINGS, 0};
    second.slots = 6, second.slots_are_default = true;
    struct meeting *nodes[MEETINGS] = {meetings_open(port, 0, &first),
                                       meetings_open(port, 1, &meetings_plain)};
    meetings_ready(nodes);
    assert_int_equal(meetings_pump(nodes, 0).slots, 4);
    assert_int_equal(meetings_pump(nodes, 1).slots, 4);
    nodes[2] = meetings_open(port, 2, &meetings_plain); /* no slots are left to it */
    meeting_ready(nodes[2], NULL);
    while (!meeting_waits_for(nodes[2])[0]) {
        meetings_rest(nodes[0], 5);
        meetings_rest(nodes[2], 5);
    }
    assert_string_equal(meeting_waits_for(nodes[2]), "2 nodes train, and no more may: this one is "
                                                     "in reserve (parallel.reduction_slots=4)");
    meeting_close(take(nodes[2]), MEETING_ASKED_TO_END);
    meeting_close(take(nodes[0]), MEETING_MAY_RETURN);
    assert_int_equal(meetings_pump(nodes, 1).what, MEETING_ROUND_BROKEN);
    nodes[0] = meetings_open(port, 0, &second);
    meeting_ready(nodes[1], NULL);
    while (meeting_waits_for(nodes[1])[0]) /* until node 0 knows it */
        meetings_rest(nodes[0], 5), meetings_rest(nodes[1], 5);
    meeting_ready(nodes[0], NULL);
    struct meeting_event event = meetings_pump(nodes, 0);
    assert_int_equal(event.what, MEETING_ROUND_BEGINS);
    assert_int_equal(event.slots, 4);
    meeting_close(nodes[1], MEETING_ALL_DONE);
    meeting_close(nodes[0], MEETING_ALL_DONE);
}

/* A launcher of another version, whose messages have another size. */
static int open_other_version(int port)
{
    struct meeting_link link = {.fd = -1};
    struct meeting_message other = {.type = MEETING_CHALLENGE};
    struct error err;
    int sockets[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets), 0);
    struct meeting_link pipe = {.fd = sockets[0]};
    assert_ok(meeting_send(&pipe, &other, &err), &err);
    assert_int_equal(recv(sockets[1], &other, sizeof other, 0), sizeof other);
    close(sockets[0]), close(sockets[1]);
    snprintf(other.header.version, sizeof other.header.version, "9.9.9");
    if (port > 0)
        assert_ok(net_connect("127.0.0.1", port, clock_monotonic_ms() + SUPPORT_PATIENCE_MS,
                              &link.fd, &err),
                  &err);
    else
        link.fd = -port;
    assert_int_equal(send(link.fd, &other.header, sizeof other.header, 0), sizeof other.header);
    return link.fd;
}

static void two_versions_do_not_meet(void **state)
{
    (void)state;
    int listener, port;
    struct error err;
    assert_ok(listen_tcp("127.0.0.1", port = meetings_free_port(), &listener, &err), &err);
    struct meeting *nodes[MEETINGS] = {NULL, meetings_open(port, 1, &meetings_plain)};
    struct meeting_event event;
    meeting_ready(nodes[1], NULL);
    meeting_handle(nodes[1], &event);
    int server;
    while ((server = net_accept(listener)) < 0)
        poll(NULL, 0, 5);
    open_other_version(-server);
    event = meetings_pump(nodes, 1);
    assert_int_equal(event.what, MEETING_FAILED);
    assert_fails(
        -1, &event.err, ERR_CONFIG,
        "the other launcher is shoal-agent 9.9.9 (protocol 2), this one is " SHOAL_VERSION);
    struct meeting_header header; /* by which that one learns of this version */
    while (recv(server, &header, sizeof header, 0) != (ssize_t)sizeof header)
        poll(NULL, 0, 5);
    assert_string_equal(header.version, SHOAL_VERSION);
    close(server), close(listener);
    meeting_close(nodes[1], MEETING_MAY_RETURN);

    port = meetings_free_port();
    nodes[0] = meetings_open(port, 0, &meetings_plain);
    meeting_ready(nodes[0], NULL);
    int client = open_other_version(port);
    ssize_t n;
    while ((n = recv(client, &header, sizeof header, MSG_WAITALL)) < 0)
        meetings_rest(nodes[0], 5);
    assert_int_equal(n, sizeof header);
    assert_string_equal(header.version, SHOAL_VERSION);
    char rest_of_it[2 * sizeof(struct meeting_message)];
    while ((n = recv(client, rest_of_it, sizeof rest_of_it, 0)) != 0)
        meetings_rest(nodes[0], 5); /* until it is hung up on */
    close(client);
    meeting_close(nodes[0], MEETING_MAY_RETURN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_behind_the_end_of_others_waits_for_nobody),
        cmocka_unit_test(who_has_no_restart_left_is_dismissed),
        cmocka_unit_test(a_round_whose_ranks_have_not_met_is_broken),
        cmocka_unit_test(who_was_in_a_round_waits_on_for_node_0),
        cmocka_unit_test(what_node_0_says_last_arrives),
        cmocka_unit_test(slots_outlive_node_0),
        cmocka_unit_test(two_versions_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
