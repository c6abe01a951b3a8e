/* Ranks that have met, and are lost or leave: who is told what. */
#include "tests/agent/rendezvous_rank.h"
#include "tests/support.h"

#include "agent/comm/net.h"
#include "agent/comm/rendezvous_proof.h"
#include "agent/comm/rendezvous_server.h"
#include "agent/comm/rendezvous_wire.h"
#include "base/clock.h"
#include "base/listen.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>

#define RANKS 4

/* A watcher that can be waited for. */
struct news {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    char reason[128];
};

static void on_peer_lost(void *ctx, const char *reason)
{
    struct news *news = ctx;
    pthread_mutex_lock(&news->mutex);
    snprintf(news->reason, sizeof news->reason, "%s", reason);
    pthread_cond_signal(&news->cond);
    pthread_mutex_unlock(&news->mutex);
}

/* Waits for a loss (the process's alarm ends a wait in vain) and fails with its reason. */
static int wait_for_loss(struct rendezvous *r, struct error *err)
{
    struct news news = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    struct store_watcher watcher = {.on_peer_lost = on_peer_lost, .ctx = &news};
    store_watch(rendezvous_store(r), &watcher);
    pthread_mutex_lock(&news.mutex);
    while (!news.reason[0])
        pthread_cond_wait(&news.cond, &news.mutex);
    pthread_mutex_unlock(&news.mutex);
    store_unwatch(rendezvous_store(r), &watcher);
    return error_set(err, ERR_PEER, "%s", news.reason);
}

/* seed: the rank that dies, after the others have begun to wait. */
static int one_dies(struct process *p, struct error *err)
{
    struct rendezvous *r;
    char value[STORE_VALUE_MAX];
    if (rendezvous_rank_open(p, &r, err) < 0)
        return -1;
    struct store *s = rendezvous_store(r);
    /* Who is slow learns of the loss while it still reads. It leaves as all do: rank 0, gone
     * without a farewell, would take the news with it. */
    int result = rendezvous_rank_share(r, p, err);
    if (result == 0 && (int)p->seed == p->rank)
        raise(SIGKILL);
    if (result == 0)
        result = wait_for_loss(r, err);
    /* what waits for the store fails for the same reason, and not by its deadline */
    struct error second;
    if (s->fn->get(s, "never", 100000, value, &second) == 0 || second.code != ERR_PEER ||
        !strstr(second.msg, err->msg))
        result = error_set(err, ERR_INPUT, "get: %s", second.msg);
    rendezvous_close(r);
    return result;
}

static void test_everybody_learns_which_rank_died(void **state)
{
    (void)state;
    for (int dead = 0; dead < RANKS; dead++) {
        struct process all[RANKS] = {0};
        char expected[64];
        snprintf(expected, sizeof expected, "rank %d is lost", dead);
        processes_run(all, RANKS, one_dies, (uint64_t)dead);
        for (int i = 0; i < RANKS; i++)
            if (i != dead)
                assert_fails(all[i].result, &all[i].err, ERR_PEER, expected);
        assert_int_equal(WTERMSIG(all[dead].status), SIGKILL);
    }
}

/* seed: the rank that has a failure of its own. */
static int one_fails(struct process *p, struct error *err)
{
    struct rendezvous *r;
    if (rendezvous_rank_open(p, &r, err) < 0)
        return -1;
    int result = rendezvous_rank_share(r, p, err);
    if ((int)p->seed == p->rank)
        rendezvous_fail(r, "its GPU fell off the bus");
    if (result == 0)
        result = wait_for_loss(r, err);
    rendezvous_close(r);
    return result;
}

static void test_everybody_learns_of_a_failure_and_why(void **state)
{
    (void)state;
    for (int ill = 0; ill < RANKS; ill++) {
        struct process all[RANKS] = {0};
        char expected[64];
        snprintf(expected, sizeof expected, "rank %d failed (its GPU fell off the bus)", ill);
        processes_run(all, RANKS, one_fails, (uint64_t)ill);
        for (int i = 0; i < RANKS; i++)
            assert_fails(all[i].result, &all[i].err, ERR_PEER, expected);
    }
}

static int one_stops(struct process *p, struct error *err)
{
    struct rendezvous *r;
    struct rendezvous_options options = rendezvous_rank_options(p);
    options.silence_ms = *(const int *)p->arg;
    if (rendezvous_open(&options, &r, err) < 0)
        return -1;
    if (rendezvous_rank_share(r, p, err) < 0)
        return -1;
    if ((int)p->seed == p->rank)
        raise(SIGSTOP);
    int result = wait_for_loss(r, err);
    rendezvous_close(r);
    return result;
}

/* Whether each that stops is the one whose silence the others told of. */
static bool are_lost_by_silence(int silence_ms)
{
    bool are = true;
    struct process all[3][3]; /* of each that stops, at once */
    for (int stopped = 0; stopped < 3; stopped++) {
        int port = free_port();
        for (int i = 0; i < 3; i++) {
            all[stopped][i] = (struct process){.rank = i,
                                               .size = 3,
                                               .port = port,
                                               .seed = (uint64_t)stopped,
                                               .body = one_stops,
                                               .arg = &silence_ms};
            process_start(&all[stopped][i]);
        }
    }
    for (int stopped = 0; stopped < 3; stopped++) {
        char expected[64];
        snprintf(expected, sizeof expected, "rank %d is lost (no sign of life", stopped);
        for (int i = 0; i < 3; i++) {
            struct process *p = &all[stopped][i];
            if (i == stopped)
                continue;
            process_wait(p);
            are = support_is_error(p->result, &p->err, ERR_PEER, expected) && are;
        }
        kill(all[stopped][stopped].pid, SIGKILL);
        process_wait(&all[stopped][stopped]);
    }
    return are;
}

static void test_a_stopped_rank_is_lost_by_its_silence(void **state)
{
    (void)state;
    int silence_ms = 1000;
    while (!are_lost_by_silence(silence_ms))
        silence_ms = (int)support_longer_ms(silence_ms);
}

/* Leaving in order is no loss: rank 1 goes, the others go on. */
static int one_leaves(struct process *p, struct error *err)
{
    struct rendezvous *r;
    char value[STORE_VALUE_MAX];
    if (rendezvous_rank_open(p, &r, err) < 0)
        return -1;
    struct store *s = rendezvous_store(r);
    int result = 0;
    if (p->rank != 1) {
        result = s->fn->get(s, "nobody sets this", 500, value, err);
        result = result < 0 && err->code == ERR_TIMEOUT ? store_check(s, err) : -1;
    }
    rendezvous_close(r);
    return result;
}

static void test_a_goodbye_is_no_loss(void **state)
{
    (void)state;
    struct process all[3] = {0};
    processes_run(all, 3, one_leaves, 0);
    /* rank 0 may leave before rank 2 has asked: what matters is that nothing is called lost */
    for (int i = 0; i < 3; i++)
        if (all[i].result < 0)
            assert_non_null(strstr(all[i].err.msg, "rank 0 has left"));
}

enum { HASTY_KEYS = 40 };

/* Rank 1 says all it has to say, its goodbye last, and hangs up without a look at the answers. In
 * one piece: what its kernel has not yet sent then would be lost. */
static int leave_hastily(struct process *p, struct error *err)
{
    auto_close int fd = -1;
    int64_t deadline_ms = clock_monotonic_ms() + SUPPORT_PATIENCE_MS;
    struct wire_message in = {0}, last[HASTY_KEYS + 1] = {0};
    struct wire_message join = {.magic = WIRE_MAGIC, .type = WIRE_JOIN, .number = 1, .size = 2};
    int attempt = 0;
    while (net_connect("127.0.0.1", p->port, deadline_ms, &fd, err) < 0)
        attempt = net_back_off(attempt, deadline_ms);
    if (rendezvous_rank_receive(fd, &in, sizeof in, err) < 0)
        return -1;
    rendezvous_prove(rendezvous_rank_options(p).secret, in.text, 1, 2, "", join.key);
    if (net_send(fd, &join, sizeof join, deadline_ms, err) < 0)
        return -1;
    while (in.type != WIRE_WELCOME)
        if (rendezvous_rank_receive(fd, &in, sizeof in, err) < 0)
            return -1;
    for (int i = 0; i <= HASTY_KEYS; i++) {
        last[i].magic = WIRE_MAGIC;
        last[i].type = i < HASTY_KEYS ? WIRE_SET : WIRE_GOODBYE;
        snprintf(last[i].key, sizeof last[i].key, "hasty/%d", i);
    }
    return net_send(fd, last, sizeof last, deadline_ms, err);
}

static int one_is_hasty(struct process *p, struct error *err)
{
    struct rendezvous *r;
    char key[32], value[STORE_VALUE_MAX];
    if (p->rank == 1)
        return leave_hastily(p, err);
    if (rendezvous_rank_open(p, &r, err) < 0)
        return -1;
    struct store *s = rendezvous_store(r);
    snprintf(key, sizeof key, "hasty/%d", HASTY_KEYS - 1);
    int result = s->fn->get(s, key, SUPPORT_PATIENCE_MS, value, err);
    if (result == 0)
        result = store_check(s, err);
    rendezvous_close(r);
    return result;
}

/* Answers that do not reach it any more are no loss: what it said before counts. */
static void test_a_goodbye_counts_though_its_sender_is_gone(void **state)
{
    (void)state;
    struct process all[2] = {0};
    processes_run(all, 2, one_is_hasty, 0);
    for (int i = 0; i < 2; i++)
        assert_ok(all[i].result, &all[i].err);
}

/* ---- a loss right behind the welcome ---- */

enum { HASTY_ROUNDS = 20 };

/* A server for one rank at a time, which it welcomes and tells of a loss in one piece. */
static int welcome_and_lose(struct process *p, struct error *err)
{
    auto_close int listener = -1;
    const struct wire_message challenge = {.magic = WIRE_MAGIC, .type = WIRE_CHALLENGE};
    const struct wire_message news[] = {
        {.magic = WIRE_MAGIC, .type = WIRE_WELCOME},
        {.magic = WIRE_MAGIC, .type = WIRE_LOST, .text = "rank 2 is lost (test)"},
        {.magic = WIRE_MAGIC, .type = WIRE_GOODBYE}};
    if (listen_tcp("127.0.0.1", p->port, &listener, err) < 0)
        return -1;
    for (int i = 0; i < HASTY_ROUNDS; i++) {
        struct pollfd wait = {listener, POLLIN, 0};
        struct wire_message in;
        int64_t deadline_ms = clock_monotonic_ms() + SUPPORT_PATIENCE_MS;
        auto_close int fd = poll(&wait, 1, SUPPORT_PATIENCE_MS) == 1 ? net_accept(listener) : -1;
        if (fd < 0)
            return error_errno(err, errno, "accept");
        if (net_send(fd, &challenge, sizeof challenge, deadline_ms, err) < 0 ||
            rendezvous_rank_receive(fd, &in, sizeof in, err) < 0 ||
            net_send(fd, news, sizeof news, deadline_ms, err) < 0)
            return -1;
        while (rendezvous_rank_receive(fd, &in, sizeof in, err) == 0)
            ; /* until it hangs up */
    }
    return 0;
}

static int lose_behind_the_welcome(struct process *p, struct error *err)
{
    if (p->rank == 0)
        return welcome_and_lose(p, err);
    for (int i = 0; i < HASTY_ROUNDS; i++) {
        struct rendezvous *r;
        if (rendezvous_rank_open(p, &r, err) < 0)
            return -1;
        struct error loss;
        wait_for_loss(r, &loss);
        rendezvous_close(r);
        if (strcmp(loss.msg, "rank 2 is lost (test)") != 0)
            return error_set(err, ERR_PEER, "round %d: %s", i, loss.msg);
    }
    return 0;
}

/* A rank that is slow to see the welcome has joined nevertheless. */
static void test_a_loss_behind_the_welcome_is_no_reason_to_join_again(void **state)
{
    (void)state;
    struct process all[2] = {0};
    processes_run(all, 2, lose_behind_the_welcome, 0);
    for (int i = 0; i < 2; i++)
        assert_ok(all[i].result, &all[i].err);
}

/* ---- rank 0's poll fails: it takes no more entries than the process may have open files ---- */

static void make_poll_fail(void)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 2;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int rank_0_goes_deaf(struct process *p, struct error *err)
{
    struct rendezvous *r;
    if (rendezvous_rank_open(p, &r, err) < 0)
        return -1;
    if (p->rank == 0)
        make_poll_fail();
    int result = wait_for_loss(r, err);
    rendezvous_close(r); /* rank 0's poll fails still */
    return result;
}

static void test_a_poll_that_fails_is_a_loss_that_is_told_to_all(void **state)
{
    (void)state;
    struct process all[RANKS] = {0};
    processes_run(all, RANKS, rank_0_goes_deaf, 0);
    for (int i = 0; i < RANKS; i++)
        assert_fails(all[i].result, &all[i].err, ERR_PEER,
                     "rank 0 failed (rank 0 cannot hear the others: poll: Invalid argument)");
}

/* The server alone; the test is rank 1 of 3. */
static int deaf_before_all_are_here(struct process *p, struct error *err)
{
    auto_close int fd = -1;
    struct rendezvous_server *server;
    struct wire_message in = {0};
    struct wire_message join = {.magic = WIRE_MAGIC, .type = WIRE_JOIN, .number = 1, .size = 3};
    const struct rendezvous_server_options options = {.host = "127.0.0.1",
                                                      .port = p->port,
                                                      .size = 3,
                                                      .job_id = "",
                                                      .secret = "",
                                                      .beat_ms = 50,
                                                      .silence_ms = SUPPORT_PATIENCE_MS};
    if (rendezvous_server_open(&options, &server, err) < 0 ||
        net_connect("127.0.0.1", p->port, clock_monotonic_ms() + SUPPORT_PATIENCE_MS, &fd, err) <
            0 ||
        net_send(fd, &join, sizeof join, clock_monotonic_ms() + SUPPORT_PATIENCE_MS, err) < 0)
        return -1;
    while (in.type != WIRE_BEAT)
        if (rendezvous_rank_receive(fd, &in, sizeof in, err) < 0)
            return -1;
    make_poll_fail();
    while (in.type == WIRE_BEAT)
        if (rendezvous_rank_receive(fd, &in, sizeof in, err) < 0)
            return -1;
    rendezvous_server_close(server);
    return error_set(err, ERR_PEER, "%d: %s", in.type, in.text);
}

static void test_a_poll_that_fails_before_all_are_here_refuses_them(void **state)
{
    (void)state;
    struct process p = {.port = free_port(), .body = deaf_before_all_are_here};
    char expected[128];
    process_start(&p);
    process_wait(&p);
    snprintf(expected, sizeof expected, "%d: rank 0 cannot hear the others: poll: Invalid argument",
             WIRE_REFUSED);
    assert_fails(p.result, &p.err, ERR_PEER, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everybody_learns_which_rank_died),
        cmocka_unit_test(test_everybody_learns_of_a_failure_and_why),
        cmocka_unit_test(test_a_stopped_rank_is_lost_by_its_silence),
        cmocka_unit_test(test_a_goodbye_is_no_loss),
        cmocka_unit_test(test_a_goodbye_counts_though_its_sender_is_gone),
        cmocka_unit_test(test_a_loss_behind_the_welcome_is_no_reason_to_join_again),
        cmocka_unit_test(test_a_poll_that_fails_is_a_loss_that_is_told_to_all),
        cmocka_unit_test(test_a_poll_that_fails_before_all_are_here_refuses_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
