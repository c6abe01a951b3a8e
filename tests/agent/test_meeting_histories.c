/* Launchers that come, fail, are lost and go at random, while what they say to each other crosses:
 * whatever happened, those that are there at the end train together. */
#include "agent/comm/meeting.h"
#include "base/listen.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>

enum { NODES = 4, SEEDS = 25, STEPS = 400, FIRST_PORT = 10000, ROUNDS = 10000 };

enum state { GONE, WAITING, TRAINING, ENDING };

struct history {
    uint64_t random;
    int port;
    struct meeting *nodes[NODES];
    enum state states[NODES];
    int rounds[NODES]; /* in which it trains */
};

/* A port a round, which so has a number: what node 0 says, and how many have begun. */
static int begun;
static struct {
    int nodes, ranks; /* ranks: a bit each */
} rounds[ROUNDS];

static int count_round(int *ret_port, struct error *err)
{
    (void)err;
    assert_true(begun < ROUNDS);
    *ret_port = FIRST_PORT + begun++;
    return 0;
}

static int below(struct history *h, int count)
{
    h->random = h->random * 6364136223846793005u + 1442695040888963407u;
    return (int)((h->random >> 33) % (uint64_t)count);
}

static void come(struct history *h, int node)
{
    const struct meeting_options options = {.host = "127.0.0.1",
                                            .port = h->port,
                                            .node = node,
                                            .local_size = 1,
                                            .roster = {1, NODES, NODES, 0},
                                            .name = "",
                                            .job_id = "j",
                                            .secret = "s",
                                            .patience_ms = SUPPORT_PATIENCE_MS,
                                            .free_port = count_round};
    struct error err;
    assert_ok(meeting_open(&options, &h->nodes[node], &err), &err);
    meeting_ready(h->nodes[node], NULL);
    h->states[node] = WAITING;
}

static void begin(struct history *h, int node, const struct meeting_event *event)
{
    int number = event->port - FIRST_PORT;
    assert_int_equal(h->states[node], WAITING);
    assert_in_range(number, 0, begun - 1);
    assert_in_range(event->rank, 0, event->nodes - 1);
    assert_true(rounds[number].nodes == 0 || rounds[number].nodes == event->nodes);
    assert_int_equal(rounds[number].ranks & 1 << event->rank, 0);
    rounds[number].nodes = event->nodes;
    rounds[number].ranks |= 1 << event->rank;
    h->rounds[node] = number;
    h->states[node] = TRAINING;
}

static void hear(struct history *h, int node)
{
    struct meeting_event event;
    meeting_handle(h->nodes[node], &event);
    if (event.what == MEETING_ROUND_BEGINS) {
        begin(h, node, &event);
    } else if (event.what == MEETING_ROUND_ENDS || event.what == MEETING_ROUND_BROKEN) {
        assert_int_not_equal(h->states[node], WAITING); /* the end of another round */
        h->states[node] = ENDING;
    } else {
        assert_int_equal(event.what, MEETING_NOTHING);
    }
}

/* Ranks lose their peers of a round without a word from node 0. */
static bool has_lost_peers(const struct history *h, int node)
{
    int there = 0;
    for (int i = 0; i < NODES; i++)
        there += h->states[i] == TRAINING && h->rounds[i] == h->rounds[node];
    return h->states[node] == TRAINING && there < rounds[h->rounds[node]].nodes;
}

static void end_ranks(struct history *h, int node)
{
    h->states[node] = WAITING;
    meeting_ready(h->nodes[node], NULL);
}

static void go(struct history *h, int node)
{
    meeting_close(take(h->nodes[node]), below(h, 2) ? MEETING_MAY_RETURN : MEETING_ASKED_TO_END);
    h->states[node] = GONE;
}

static void happen(struct history *h)
{
    int node = below(h, NODES), what = below(h, 40);
    if (h->states[node] == GONE)
        what < 10 ? come(h, node) : (void)0;
    else if (what < (node == 0 ? 1 : 3))
        go(h, node);
    else if (h->states[node] == ENDING || has_lost_peers(h, node) ||
             (h->states[node] == TRAINING && what == 5))
        end_ranks(h, node);
    else
        hear(h, node);
}

/* Nothing goes wrong any more: whether all train in one round. */
static bool settle(struct history *h)
{
    int together = 0;
    for (int i = 0; i < NODES; i++) {
        if (h->states[i] == GONE)
            come(h, i);
        if (h->states[i] == ENDING || has_lost_peers(h, i))
            end_ranks(h, i);
        hear(h, i);
    }
    for (int i = 0; i < NODES; i++)
        together += h->states[i] == TRAINING && h->rounds[i] == h->rounds[0] &&
                    rounds[h->rounds[i]].nodes == NODES;
    return together == NODES;
}

static void all_come_together(void **state)
{
    (void)state;
    for (int seed = 1; seed <= SEEDS; seed++) {
        struct history h = {.random = (uint64_t)seed};
        struct error err;
        assert_ok(listen_free_port(&h.port, &err), &err);
        for (int step = 0; step < STEPS; step++)
            happen(&h);
        print_message("seed %d: %d rounds so far\n", seed, begun);
        support_wait_until(settle(&h));
        for (int i = NODES - 1; i >= 0; i--)
            meeting_close(h.nodes[i], MEETING_ALL_DONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_come_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
