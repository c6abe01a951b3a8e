#include "tests/agent/processes.h"
#include "tests/support.h"

#include "agent/comm/net.h"
#include "agent/comm/rendezvous.h"
#include "agent/comm/rendezvous_wire.h"
#include "base/clock.h"
#include "base/listen.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>

#define RANKS 4

static struct rendezvous_options options_of(const struct process *p)
{
    return (struct rendezvous_options){.host = "127.0.0.1",
                                       .port = p->port,
                                       .rank = p->rank,
                                       .size = p->size,
                                       .job_id = "",
                                       .join_timeout_ms = 60000,
                                       .beat_ms = 50,
                                       .silence_ms = 30000};
}

static int open_default(struct process *p, struct rendezvous **ret, struct error *err)
{
    struct rendezvous_options options = options_of(p);
    return rendezvous_open(&options, ret, err);
}

/* A watcher that can be waited for. */
struct news {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    char reason[128];
};

static void on_lost(void *ctx, const char *reason)
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
    struct store_watcher watcher = {.on_lost = on_lost, .ctx = &news};
    store_watch(rendezvous_store(r), &watcher);
    pthread_mutex_lock(&news.mutex);
    while (!news.reason[0])
        pthread_cond_wait(&news.cond, &news.mutex);
    pthread_mutex_unlock(&news.mutex);
    store_unwatch(rendezvous_store(r), &watcher);
    return error_set(err, ERR_PEER, "%s", news.reason);
}

static int set_own(struct rendezvous *r, int rank, struct error *err)
{
    struct store *s = rendezvous_store(r);
    char key[32], value[32];
    snprintf(key, sizeof key, "key/%d", rank);
    snprintf(value, sizeof value, "value of %d", rank);
    return s->fn->set(s, key, value, err);
}

static int get_all(struct rendezvous *r, int size, struct error *err)
{
    struct store *s = rendezvous_store(r);
    for (int i = 0; i < size; i++) {
        char key[32], expected[32], value[STORE_VALUE_MAX];
        snprintf(key, sizeof key, "key/%d", i);
        snprintf(expected, sizeof expected, "value of %d", i);
        if (s->fn->get(s, key, 60000, value, err) < 0)
            return -1;
        if (strcmp(value, expected) != 0)
            return error_set(err, ERR_INPUT, "%s is %s", key, value);
    }
    return 0;
}

static int share_keys(struct process *p, struct error *err)
{
    struct rendezvous *r;
    if (open_default(p, &r, err) < 0)
        return -1;
    int result = set_own(r, p->rank, err);
    if (result == 0)
        result = get_all(r, p->size, err);
    /* the store leaves with rank 0: it goes when all have read */
    char key[32], value[STORE_VALUE_MAX];
    struct store *s = rendezvous_store(r);
    for (int i = 1; i < p->size && result == 0; i++) {
        snprintf(key, sizeof key, "done/%d", i);
        if (p->rank == i)
            result = s->fn->set(s, key, "", err);
        else if (p->rank == 0)
            result = s->fn->get(s, key, 60000, value, err);
    }
    if (result == 0)
        result = store_check(s, err);
    rendezvous_close(r);
    return result;
}

static void test_ranks_share_keys(void **state)
{
    (void)state;
    for (int size = 1; size <= 5; size++) {
        struct process all[5] = {0};
        processes_run(all, size, share_keys, 0);
        for (int i = 0; i < size; i++)
            assert_ok(all[i].result, &all[i].err);
    }
}

static void test_the_same_port_serves_round_after_round(void **state)
{
    (void)state;
    int port = free_port();
    for (int round = 0; round < 20; round++) {
        struct process all[3];
        for (int i = 0; i < 3; i++) {
            all[i] = (struct process){.rank = i, .size = 3, .port = port, .body = share_keys};
            process_start(&all[i]);
        }
        for (int i = 0; i < 3; i++) {
            process_wait(&all[i]);
            assert_ok(all[i].result, &all[i].err);
        }
    }
}

/* seed: the rank that dies, after the others have begun to wait. */
static int one_dies(struct process *p, struct error *err)
{
    struct rendezvous *r;
    char value[STORE_VALUE_MAX];
    if (open_default(p, &r, err) < 0)
        return -1;
    struct store *s = rendezvous_store(r);
    /* Who is slow learns of the loss while it still reads. It leaves as all do: rank 0, gone
     * without a farewell, would take the news with it. */
    int result = set_own(r, p->rank, err) < 0 || get_all(r, p->size, err) < 0 ? -1 : 0;
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
    if (open_default(p, &r, err) < 0)
        return -1;
    int result = set_own(r, p->rank, err) < 0 || get_all(r, p->size, err) < 0 ? -1 : 0;
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
    struct rendezvous_options options = options_of(p);
    options.silence_ms = 4000;
    if (rendezvous_open(&options, &r, err) < 0)
        return -1;
    if (set_own(r, p->rank, err) < 0 || get_all(r, p->size, err) < 0)
        return -1;
    if ((int)p->seed == p->rank)
        raise(SIGSTOP);
    int result = wait_for_loss(r, err);
    rendezvous_close(r);
    return result;
}

static void test_a_stopped_rank_is_lost_by_its_silence(void **state)
{
    (void)state;
    struct process all[3][3]; /* of each that stops, at once */
    for (int stopped = 0; stopped < 3; stopped++) {
        int port = free_port();
        for (int i = 0; i < 3; i++) {
            all[stopped][i] = (struct process){
                .rank = i, .size = 3, .port = port, .seed = (uint64_t)stopped, .body = one_stops};
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
            assert_fails(p->result, &p->err, ERR_PEER, expected);
        }
        kill(all[stopped][stopped].pid, SIGKILL);
        process_wait(&all[stopped][stopped]);
    }
}

/* Leaving in order is no loss: rank 1 goes, the others go on. */
static int one_leaves(struct process *p, struct error *err)
{
    struct rendezvous *r;
    char value[STORE_VALUE_MAX];
    if (open_default(p, &r, err) < 0)
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
    int64_t deadline_ms = clock_monotonic_ms() + 60000;
    struct wire_message in = {0}, last[HASTY_KEYS + 1] = {0};
    const struct wire_message join = {
        .magic = WIRE_MAGIC, .type = WIRE_JOIN, .number = 1, .size = 2};
    int attempt = 0;
    while (net_connect("127.0.0.1", p->port, deadline_ms, &fd, err) < 0)
        attempt = net_back_off(attempt, deadline_ms);
    if (net_send(fd, &join, sizeof join, deadline_ms, err) < 0)
        return -1;
    while (in.type != WIRE_WELCOME)
        if (net_receive(fd, &in, sizeof in, deadline_ms, err) < 0)
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
    if (open_default(p, &r, err) < 0)
        return -1;
    struct store *s = rendezvous_store(r);
    snprintf(key, sizeof key, "hasty/%d", HASTY_KEYS - 1);
    int result = s->fn->get(s, key, 60000, value, err);
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

/* One of the others believes in another world size, or all of them say that they are rank 1. */
static int wrong_size(struct process *p, struct error *err)
{
    struct rendezvous *r;
    p->size += p->rank;
    return open_default(p, &r, err);
}

static int same_rank(struct process *p, struct error *err)
{
    struct rendezvous *r;
    p->size = 4; /* one more than there are */
    p->rank = p->rank > 0;
    return open_default(p, &r, err);
}

static void test_contradictions_are_told_to_all(void **state)
{
    (void)state;
    static const struct {
        process_body *body;
        int processes;
        const char *expected;
    } rows[] = {
        {wrong_size, 2, "rank 1 at 127.0.0.1 says the job has 3 ranks, rank 0 says 2"},
        {same_rank, 3, "two processes say they are rank 1: one at 127.0.0.1, one at 127.0.0.1"},
    };
    for (size_t row = 0; row < array_length(rows); row++) {
        struct process all[3] = {0};
        processes_run(all, rows[row].processes, rows[row].body, 0);
        for (int i = 0; i < rows[row].processes; i++)
            assert_fails(all[i].result, &all[i].err, ERR_CONFIG, rows[row].expected);
    }
}

/* seed: milliseconds to wait for the others. */
static int with_short_patience(struct process *p, struct error *err)
{
    struct rendezvous *r;
    struct rendezvous_options options = options_of(p);
    options.join_timeout_ms = (int)p->seed;
    options.job_id = p->arg ? (const char *)p->arg : "";
    if (rendezvous_open(&options, &r, err) < 0)
        return -1;
    rendezvous_close(r);
    return 0;
}

/* All of `count` processes wait in vain, and the first says this at last; again with more patience
 * if a busy machine was too slow for that. */
static void wait_in_vain(const struct process *first, int count, const char *expected)
{
    struct process all[2];
    int port = free_port();
    for (uint64_t patience_ms = 400;; patience_ms *= 4) {
        for (int i = 0; i < count; i++) {
            all[i] = first[i];
            all[i].port = port;
            all[i].seed = patience_ms;
            all[i].body = with_short_patience;
            process_start(&all[i]);
        }
        for (int i = 0; i < count; i++)
            process_wait(&all[i]);
        for (int i = 0; i < count; i++)
            assert_true(all[i].result < 0);
        if (strstr(all[0].err.msg, expected) || patience_ms > 20000)
            break;
    }
    assert_fails(all[0].result, &all[0].err, ERR_TIMEOUT, expected);
}

static void test_who_is_missing_is_told_at_the_deadline(void **state)
{
    (void)state;
    wait_in_vain(&(struct process){.rank = 0, .size = 4}, 1,
                 "1 of 4 ranks are here; missing: 1 2 3");
}

static void test_without_rank_0_the_last_attempt_is_told(void **state)
{
    (void)state;
    wait_in_vain(&(struct process){.rank = 1, .size = 2}, 1, "Connection refused");
}

static void test_processes_of_another_job_do_not_join(void **state)
{
    (void)state;
    wait_in_vain((struct process[]){{.rank = 0, .size = 2, .arg = "red"},
                                    {.rank = 1, .size = 2, .arg = "blue"}},
                 2, "missing: 1");
}

static void test_a_port_in_use_is_named(void **state)
{
    (void)state;
    int fd;
    char expected[64];
    struct error err;
    struct process p = {.rank = 0, .size = 1, .seed = 400, .body = with_short_patience};
    assert_ok(net_listen("127.0.0.1", 0, &fd, &err), &err);
    p.port = listen_port(fd);
    process_start(&p);
    process_wait(&p);
    close(fd);
    snprintf(expected, sizeof expected, "port %d is in use", p.port);
    assert_fails(p.result, &p.err, ERR_CONFIG, expected);
}

/* A port probe and a stranger that talks HTTP must not disturb. */
static int with_strangers(struct process *p, struct error *err)
{
    if (p->rank == 2) {
        int64_t deadline_ms = clock_monotonic_ms() + 60000;
        for (int i = 0; i < 3; i++) {
            char text[512] = "GET / HTTP/1.1\r\n\r\n", answer;
            int fd, attempt = 0;
            while (net_connect("127.0.0.1", p->port, deadline_ms, &fd, err) < 0)
                attempt = net_back_off(attempt, deadline_ms);
            if (i > 0 && net_send(fd, text, i == 1 ? 18 : sizeof text, deadline_ms, err) < 0)
                return -1;
            if (i == 2 && net_receive(fd, &answer, 1, deadline_ms, err) == 0)
                return error_set(err, ERR_INPUT, "the stranger got an answer");
            close(fd);
        }
        err->code = ERR_NONE;
        p->rank = 1;
        p->size = 2;
        return share_keys(p, err);
    }
    p->size = 2;
    return p->rank == 0 ? share_keys(p, err) : 0;
}

static void test_strangers_do_not_disturb(void **state)
{
    (void)state;
    struct process all[3] = {0};
    processes_run(all, 3, with_strangers, 0);
    assert_ok(all[0].result, &all[0].err);
    assert_ok(all[2].result, &all[2].err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_share_keys),
        cmocka_unit_test(test_the_same_port_serves_round_after_round),
        cmocka_unit_test(test_everybody_learns_which_rank_died),
        cmocka_unit_test(test_everybody_learns_of_a_failure_and_why),
        cmocka_unit_test(test_a_stopped_rank_is_lost_by_its_silence),
        cmocka_unit_test(test_a_goodbye_is_no_loss),
        cmocka_unit_test(test_a_goodbye_counts_though_its_sender_is_gone),
        cmocka_unit_test(test_contradictions_are_told_to_all),
        cmocka_unit_test(test_who_is_missing_is_told_at_the_deadline),
        cmocka_unit_test(test_without_rank_0_the_last_attempt_is_told),
        cmocka_unit_test(test_processes_of_another_job_do_not_join),
        cmocka_unit_test(test_a_port_in_use_is_named),
        cmocka_unit_test(test_strangers_do_not_disturb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
