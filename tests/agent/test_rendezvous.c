/* Ranks that meet, and what keeps them from it. */
#include "tests/agent/rendezvous_rank.h"
#include "tests/support.h"

#include "agent/comm/net.h"
#include "agent/comm/rendezvous_wire.h"
#include "base/clock.h"
#include "base/listen.h"
#include "base/mem.h"

#include <stdio.h>
#include <sys/resource.h>

static int share_keys(struct process *p, struct error *err)
{
    struct rendezvous *r;
    if (rendezvous_rank_open(p, &r, err) < 0)
        return -1;
    int result = rendezvous_rank_share(r, p, err);
    /* the store leaves with rank 0: it goes when all have read */
    char key[32], value[STORE_VALUE_MAX];
    struct store *s = rendezvous_store(r);
    for (int i = 1; i < p->size && result == 0; i++) {
        snprintf(key, sizeof key, "done/%d", i);
        if (p->rank == i)
            result = s->fn->set(s, key, "", err);
        else if (p->rank == 0)
            result = s->fn->get(s, key, SUPPORT_PATIENCE_MS, value, err);
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

/* One of the others believes in another world size, or all of them say that they are rank 1. */
static int wrong_size(struct process *p, struct error *err)
{
    struct rendezvous *r;
    p->size += p->rank;
    return rendezvous_rank_open(p, &r, err);
}

static int same_rank(struct process *p, struct error *err)
{
    struct rendezvous *r;
    p->size = 4; /* one more than there are */
    p->rank = p->rank > 0;
    return rendezvous_rank_open(p, &r, err);
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

/* seed: milliseconds to wait for the others; digest: the secret. */
static int with_short_patience(struct process *p, struct error *err)
{
    struct rendezvous *r;
    struct rendezvous_options options = rendezvous_rank_options(p);
    options.join_timeout_ms = (int)p->seed;
    options.job_id = p->arg ? (const char *)p->arg : "";
    char secret[32];
    snprintf(secret, sizeof secret, "%d", (int)p->digest);
    options.secret = secret;
    if (rendezvous_open(&options, &r, err) < 0)
        return -1;
    rendezvous_close(r);
    return 0;
}

/* All of `count` processes wait in vain, and the first says this at last; again with more patience
 * if a busy machine was too slow for that. Their seed: how many times as long as others they wait,
 * 0 is once. */
static void wait_in_vain(const struct process *first, int count, const char *expected)
{
    struct process all[2];
    int port = free_port();
    for (uint64_t patience_ms = 400;;
         patience_ms = (uint64_t)support_longer_ms((int64_t)patience_ms)) {
        for (int i = 0; i < count; i++) {
            all[i] = first[i];
            all[i].port = port;
            all[i].seed = patience_ms * (first[i].seed ? first[i].seed : 1);
            all[i].body = with_short_patience;
            process_start(&all[i]);
        }
        for (int i = 0; i < count; i++)
            process_wait(&all[i]);
        for (int i = 0; i < count; i++)
            assert_true(all[i].result < 0);
        if (strstr(all[0].err.msg, expected))
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
    assert_ok(listen_tcp("127.0.0.1", 0, &fd, &err), &err);
    p.port = listen_port(fd);
    process_start(&p);
    process_wait(&p);
    close(fd);
    snprintf(expected, sizeof expected, "port %d is in use", p.port);
    assert_fails(p.result, &p.err, ERR_EXISTS, expected);
}

/* As `ulimit -n` does. */
static void limit_files(rlim_t most)
{
    const struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int with_64_files(struct process *p, struct error *err)
{
    limit_files(64);
    return share_keys(p, err);
}

/* Fewer than there is room for strangers. */
static void test_few_open_files_are_enough_for_few_ranks(void **state)
{
    (void)state;
    struct process all[4] = {0};
    processes_run(all, 4, with_64_files, 0);
    for (int i = 0; i < 4; i++)
        assert_ok(all[i].result, &all[i].err);
}

static void test_too_few_open_files_are_told(void **state)
{
    (void)state;
    struct process p = {.rank = 0, .size = 40, .port = free_port(), .body = with_64_files};
    process_start(&p);
    process_wait(&p);
    assert_fails(p.result, &p.err, ERR_CONFIG,
                 "40 ranks need 72 open files in rank 0, which may have 64: raise the limit");
}

/* Connects as soon as rank 0 listens. */
static int dial(const struct process *p, struct error *err)
{
    int64_t deadline_ms = clock_monotonic_ms() + SUPPORT_PATIENCE_MS;
    int fd, attempt = 0;
    while (net_connect("127.0.0.1", p->port, deadline_ms, &fd, err) < 0)
        attempt = net_back_off(attempt, deadline_ms);
    return fd;
}

/* Says it, and then hears the challenge and no more. */
static int say(const struct process *p, const void *text, size_t bytes, struct error *err)
{
    int64_t deadline_ms = clock_monotonic_ms() + SUPPORT_PATIENCE_MS;
    struct wire_message in;
    auto_close int fd = dial(p, err);
    char more;
    if (net_send(fd, text, bytes, deadline_ms, err) < 0 ||
        rendezvous_rank_receive(fd, &in, sizeof in, err) < 0)
        return -1;
    if (in.type != WIRE_CHALLENGE)
        return error_set(err, ERR_INPUT, "a stranger was told %d: %s", in.type, in.text);
    if (rendezvous_rank_receive(fd, &more, 1, err) == 0)
        return error_set(err, ERR_INPUT, "a stranger got an answer");
    return 0;
}

/* Rank 0 and rank 1 meet, as this process's stranger has done its worst. */
static int with_strangers(struct process *p, struct error *err)
{
    static const struct wire_message rows[] = {
        {.magic = WIRE_MAGIC, .type = WIRE_JOIN, .number = 1, .size = 99},
        {.magic = WIRE_MAGIC, .type = WIRE_JOIN, .number = 1, .size = 2},
        {.magic = WIRE_MAGIC, .type = WIRE_JOIN, .number = 0, .size = 2},
        {.magic = WIRE_MAGIC, .type = WIRE_JOIN, .number = 1, .size = 2, .text = "zzz"},
        {.magic = WIRE_MAGIC, .type = WIRE_JOIN, .number = 1, .size = 2, .key = "0"},
        {.magic = WIRE_MAGIC, .type = WIRE_GET, .key = "world/at/0"},
        {.magic = WIRE_MAGIC, .type = WIRE_FAILED, .text = "so that all end"},
    };
    if (p->rank == 0)
        return share_keys(p, err);
    close(dial(p, err)); /* a port probe */
    const char http[sizeof rows[0]] = "GET / HTTP/1.1\r\n\r\n";
    if (say(p, http, sizeof http, err) < 0)
        return -1;
    for (size_t i = 0; i < array_length(rows); i++)
        if (say(p, &rows[i], sizeof rows[i], err) < 0)
            return error_wrap(err, "row %zu", i);
    err->code = ERR_NONE;
    return share_keys(p, err);
}

static void test_strangers_do_not_disturb(void **state)
{
    (void)state;
    struct process all[2] = {0};
    processes_run(all, 2, with_strangers, 0);
    for (int i = 0; i < 2; i++)
        assert_ok(all[i].result, &all[i].err);
}

/* More than rank 0 has places for, and another for each that it hangs up on. */
static int among_a_crowd(struct process *p, struct error *err)
{
    enum { CROWD = 150 };
    int crowd[CROWD];
    if (p->rank == 0)
        return share_keys(p, err);
    for (int i = 0; i < 2 * CROWD; i++) {
        if (i >= CROWD)
            close(crowd[i - CROWD]);
        crowd[i % CROWD] = dial(p, err);
    }
    int result = share_keys(p, err);
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
    return result;
}

static void test_a_crowd_does_not_keep_a_rank_out(void **state)
{
    (void)state;
    struct process all[2] = {0};
    processes_run(all, 2, among_a_crowd, 0);
    for (int i = 0; i < 2; i++)
        assert_ok(all[i].result, &all[i].err);
}

static void test_processes_of_another_run_do_not_join(void **state)
{
    (void)state;
    const struct process both[] = {{.rank = 0, .size = 2, .arg = "red", .digest = 1},
                                   {.rank = 1, .size = 2, .arg = "red", .digest = 2}};
    wait_in_vain(both, 2, "did not know the run's secret); missing: 1");
    struct process patient = both[1]; /* whom rank 0, once it has gone, only refuses */
    patient.seed = 2;
    wait_in_vain((struct process[]){patient, both[0]}, 2,
                 "rank 0 hung up without a word: SHOAL_RUN_SECRET, or else SHOAL_RUN_ID, must be "
                 "the same on all ranks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_share_keys),
        cmocka_unit_test(test_the_same_port_serves_round_after_round),
        cmocka_unit_test(test_contradictions_are_told_to_all),
        cmocka_unit_test(test_who_is_missing_is_told_at_the_deadline),
        cmocka_unit_test(test_without_rank_0_the_last_attempt_is_told),
        cmocka_unit_test(test_processes_of_another_job_do_not_join),
        cmocka_unit_test(test_a_port_in_use_is_named),
        cmocka_unit_test(test_processes_of_another_run_do_not_join),
        cmocka_unit_test(test_strangers_do_not_disturb),
        cmocka_unit_test(test_a_crowd_does_not_keep_a_rank_out),
        cmocka_unit_test(test_few_open_files_are_enough_for_few_ranks),
        cmocka_unit_test(test_too_few_open_files_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
