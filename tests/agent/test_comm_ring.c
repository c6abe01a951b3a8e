/* Communicators between processes. What a communicator must do is in comm_cases.h and runs between
 * threads in test_comm_local; here are processes that die, stop, come late and come back. */
#include "tests/agent/comm_cases.h"
#include "tests/agent/processes.h"
#include "tests/support.h"

#include "agent/comm/net.h"
#include "agent/comm/rendezvous.h"
#include "base/listen.h"
#include "tests/agent/comm_local.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define RANKS 4

/* What a rank of a job holds. */
struct rank {
    struct rendezvous *rendezvous;
    struct device *device;
    struct stream *stream;
    struct comm *comm;
};

static int rank_open_noting(struct rank *r, const struct process *p, int timeout_ms,
                            struct collective_progress *progress, struct error *err)
{
    struct rendezvous_options options = {.host = "127.0.0.1",
                                         .port = p->port,
                                         .rank = p->rank,
                                         .size = p->size,
                                         .job_id = "",
                                         .secret = "",
                                         .join_timeout_ms = SUPPORT_PATIENCE_MS,
                                         .beat_ms = 1000,
                                         .silence_ms = SUPPORT_PATIENCE_MS};
    struct comm_ring_options ring = {
        .join_timeout_ms = SUPPORT_PATIENCE_MS, .timeout_ms = timeout_ms, .progress = progress};
    *r = (struct rank){0};
    if (rendezvous_open(&options, &r->rendezvous, err) < 0 ||
        comm_ring_open(rendezvous_store(r->rendezvous), p->rank, p->size, &ring, &r->comm, err) <
            0 ||
        device_open("cpu", 1, &r->device, err) < 0)
        return -1;
    return stream_open(r->device, "comm", &r->stream, err);
}

static int rank_open(struct rank *r, const struct process *p, int timeout_ms, struct error *err)
{
    return rank_open_noting(r, p, timeout_ms, NULL, err);
}

static void rank_close(struct rank *r)
{
    stream_close(r->stream);
    comm_close(r->comm);
    device_close(r->device);
    rendezvous_close(r->rendezvous);
}

/* As the agent does: one that is still waiting would learn only that this one has left. */
static int rank_leave(struct rank *r, int result, const struct error *err)
{
    if (result < 0 && r->rendezvous)
        rendezvous_fail(r->rendezvous, err->msg);
    rank_close(r);
    return result;
}

static int all_cases(struct process *p, struct error *err)
{
    struct rank r;
    int result = rank_open(&r, p, SUPPORT_PATIENCE_MS, err);
    if (result == 0)
        result = comm_cases_run(r.comm, r.stream, err);
    rank_close(&r);
    return result;
}

static void test_every_collective_at_every_size(void **state)
{
    (void)state;
    for (int size = 1; size <= 5; size++) {
        struct process all[5] = {0};
        processes_run(all, size, all_cases, 0);
        for (int i = 0; i < size; i++)
            assert_ok(all[i].result, &all[i].err);
    }
}

static int is_noted(struct rank *r, struct collective_progress *progress, uint64_t count,
                    const char *op, const char *unit, struct error *err)
{
    if (stream_sync(r->stream, err))
        return -1;
    struct collective_state at = collective_progress_read(progress);
    if (at.entered != count || at.ended != count || strcmp(at.op, op) != 0 ||
        strcmp(at.unit, unit) != 0)
        return error_set(err, ERR_INPUT, "%d entered, %d ended, last %s of %s", (int)at.entered,
                         (int)at.ended, at.op, at.unit);
    return 0;
}

/* A rank's sequence has the collectives of all its communicators. */
static int noted(struct process *p, struct error *err)
{
    struct rank r;
    double sum = 1;
    struct comm *part = NULL;
    struct collective_progress progress;
    collective_progress_init(&progress);
    int result = rank_open_noting(&r, p, SUPPORT_PATIENCE_MS, &progress, err);
    if (result == 0)
        result = r.comm->fn->split(r.comm, 0, &part, err);
    if (result == 0) {
        r.comm->unit = "layers.0";
        r.comm->fn->all_reduce_f64(r.comm, r.stream, &sum, 1);
        r.comm->unit = NULL;
        result = is_noted(&r, &progress, 1, "all_reduce_f64", "layers.0", err);
    }
    if (result == 0) {
        part->fn->barrier(part, r.stream);
        result = is_noted(&r, &progress, 2, "barrier", "", err);
    }
    comm_close(part);
    rank_close(&r);
    collective_progress_destroy(&progress);
    return result;
}

static void test_a_rank_notes_its_sequence(void **state)
{
    (void)state;
    struct process all[2] = {0};
    processes_run(all, 2, noted, 0);
    for (int i = 0; i < 2; i++)
        assert_ok(all[i].result, &all[i].err);
}

static int random_sequence(struct process *p, struct error *err)
{
    struct rank r;
    int result = rank_open(&r, p, SUPPORT_PATIENCE_MS, err);
    if (result == 0)
        result = comm_random_run(r.comm, r.stream, p->seed, &p->digest, err);
    rank_close(&r);
    return result;
}

struct local_rank {
    struct comm_local *group;
    struct process p;
};

static void *local_main(void *arg)
{
    struct local_rank *l = arg;
    struct rank r = {0};
    l->p.result =
        comm_local_join(l->group, l->p.rank, l->p.size, SUPPORT_PATIENCE_MS, &r.comm, &l->p.err);
    if (l->p.result == 0)
        l->p.result = device_open("cpu", 1, &r.device, &l->p.err);
    if (l->p.result == 0)
        l->p.result = stream_open(r.device, "comm", &r.stream, &l->p.err);
    if (l->p.result == 0)
        l->p.result = comm_random_run(r.comm, r.stream, l->p.seed, &l->p.digest, &l->p.err);
    rank_close(&r);
    return NULL;
}

/* The same sequence between the threads of one process. */
static int random_sequence_local(struct process *p, struct error *err)
{
    struct local_rank ranks[RANKS];
    pthread_t threads[RANKS];
    struct comm_local *group = comm_local_open();
    for (int i = 0; i < RANKS; i++) {
        ranks[i] =
            (struct local_rank){.group = group, .p = {.rank = i, .size = RANKS, .seed = p->seed}};
        pthread_create(&threads[i], NULL, local_main, &ranks[i]);
    }
    int result = 0;
    for (int i = 0; i < RANKS; i++) {
        pthread_join(threads[i], NULL);
        if (ranks[i].p.result < 0) {
            *err = ranks[i].p.err;
            result = -1;
        }
        p->digest = p->digest * 31 + ranks[i].p.digest;
    }
    comm_local_close(group);
    return result;
}

static void test_processes_and_threads_get_the_same_bits(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct process all[RANKS] = {0}, local = {.seed = seed, .body = random_sequence_local};
        uint64_t digest = 0;
        processes_run(all, RANKS, random_sequence, seed);
        for (int i = 0; i < RANKS; i++) {
            assert_ok(all[i].result, &all[i].err);
            digest = digest * 31 + all[i].digest;
        }
        process_start(&local);
        process_wait(&local);
        assert_ok(local.result, &local.err);
        assert_int_equal(digest, local.digest);
    }
}

/* Collectives without end; rank seed % size dies while the seed-th is queued or runs. */
static int one_dies(struct process *p, struct error *err)
{
    struct rank r;
    int result = rank_open(&r, p, SUPPORT_PATIENCE_MS, err);
    int dying = (int)(p->seed % (uint64_t)p->size);
    auto_free float *data = comm_floats(30000);
    for (uint64_t i = 0; result == 0; i++) {
        r.comm->fn->all_reduce(r.comm, r.stream, DTYPE_F32, data, (int64_t)(i * 997 % 30000),
                               COMM_MEAN);
        if (p->rank == dying && i == p->seed)
            raise(SIGKILL);
        result = stream_sync(r.stream, err);
    }
    return rank_leave(&r, result, err);
}

static void test_a_killed_rank_is_named_by_all_survivors(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct process all[RANKS] = {0};
        char expected[64];
        snprintf(expected, sizeof expected, "rank %d is lost", (int)(seed % RANKS));
        processes_run(all, RANKS, one_dies, seed);
        for (int i = 0; i < RANKS; i++)
            if (i != (int)(seed % RANKS))
                assert_fails(all[i].result, &all[i].err, ERR_PEER, expected);
    }
}

static int one_stops(struct process *p, struct error *err)
{
    struct rank r;
    float data[8] = {0};
    int result = rank_open(&r, p, *(const int *)p->arg, err);
    for (int i = 0; result == 0; i++) {
        if (p->rank == 1 && i == 10)
            raise(SIGSTOP);
        r.comm->fn->all_reduce(r.comm, r.stream, DTYPE_F32, data, 8, COMM_SUM);
        result = stream_sync(r.stream, err);
    }
    return rank_leave(&r, result, err);
}

/* By all: those whose time is up, and those who hear it from them. */
static bool is_named_by_all(int timeout_ms)
{
    bool is = true;
    char expected[64];
    struct process all[RANKS];
    int port = free_port();
    snprintf(expected, sizeof expected, "did not come within %d ms: rank 1", timeout_ms);
    for (int i = 0; i < RANKS; i++) {
        all[i] = (struct process){
            .rank = i, .size = RANKS, .port = port, .body = one_stops, .arg = &timeout_ms};
        process_start(&all[i]);
    }
    for (int i = 0; i < RANKS; i++)
        if (i != 1)
            process_wait(&all[i]);
    kill(all[1].pid, SIGKILL);
    process_wait(&all[1]);
    for (int i = 0; i < RANKS; i++)
        if (i != 1)
            is = support_is_error(all[i].result, &all[i].err, all[i].err.code, expected) && is;
    return is;
}

static void test_a_stopped_rank_is_named_at_the_deadline(void **state)
{
    (void)state;
    int timeout_ms = 1000;
    while (!is_named_by_all(timeout_ms))
        timeout_ms = (int)support_longer_ms(timeout_ms);
}

static int all_cases_late(struct process *p, struct error *err)
{
    close(*(const int *)p->arg); /* the test's listener */
    return all_cases(p, err);
}

/* Ranks 1 and 2 have tried in vain before rank 0 is there. */
static void test_a_rank_may_come_late(void **state)
{
    (void)state;
    struct process all[3];
    struct error err;
    int listener;
    assert_ok(listen_tcp("127.0.0.1", free_port(), &listener, &err), &err);
    for (int i = 0; i < 3; i++)
        all[i] = (struct process){.rank = i,
                                  .size = 3,
                                  .port = listen_port(listener),
                                  .body = all_cases_late,
                                  .arg = &listener};
    for (int i = 1; i < 3; i++) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        process_start(&all[i]);
        assert_int_equal(poll(&p, 1, SUPPORT_PATIENCE_MS), 1);
        close(net_accept(listener));
    }
    close(listener); /* before rank 0 wants the port */
    all[0].body = all_cases;
    process_start(&all[0]);
    for (int i = 0; i < 3; i++) {
        process_wait(&all[i]);
        assert_ok(all[i].result, &all[i].err);
    }
}

/* A whole group dies of one death and meets again at the same port, as a restarted job does. */
static void test_a_group_meets_again_after_a_death(void **state)
{
    (void)state;
    int port = free_port();
    for (uint64_t round = 0; round < 20; round++) {
        struct process all[3];
        for (int i = 0; i < 3; i++) {
            all[i] = (struct process){
                .rank = i, .size = 3, .port = port, .seed = round, .body = one_dies};
            process_start(&all[i]);
        }
        for (int i = 0; i < 3; i++) {
            process_wait(&all[i]);
            assert_int_equal(all[i].err.code, i == (int)(round % 3) ? ERR_CANCELLED : ERR_PEER);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_collective_at_every_size),
        cmocka_unit_test(test_a_rank_notes_its_sequence),
        cmocka_unit_test(test_processes_and_threads_get_the_same_bits),
        cmocka_unit_test(test_a_killed_rank_is_named_by_all_survivors),
        cmocka_unit_test(test_a_stopped_rank_is_named_at_the_deadline),
        cmocka_unit_test(test_a_rank_may_come_late),
        cmocka_unit_test(test_a_group_meets_again_after_a_death),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
