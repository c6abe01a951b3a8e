/* The watch over collectives where no NCCL is; with a fake one:
 * test_comm_nccl_failures. */
#include "agent/comm/collective_watchdog.h"
#include "agent/comm/flight_recorder.h"
#include "tests/agent/comm_local.h"

#include "base/clock.h"
#include "tests/support.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_MS = SUPPORT_PATIENCE_MS };

static void test_records_are_the_last_ones(void **state)
{
    (void)state;
    struct flight_recorder *recorder = flight_recorder_open(3);
    auto_str struct str text;
    str_init(&text, 1000);
    flight_recorder_add(recorder, "barrier", "world", 0, 4, 100);
    flight_recorder_add(recorder, "all_gather", "world", 1, 64, 110);
    flight_recorder_add(recorder, "all_reduce", "world", 2, 8, 120);
    flight_recorder_add(recorder, "all_reduce", "world.0:1", 0, 8, 130);
    flight_recorder_end(recorder, "world", 0, 140); /* not there any more */
    flight_recorder_end(recorder, "world.0:1", 0, 150);
    flight_recorder_print(recorder, 10, 200, &text);
    assert_string_equal(str_text(&text), "all_gather 1 of world, 64 bytes: runs for 90 ms\n"
                                         "all_reduce 2 of world, 8 bytes: waits\n"
                                         "all_reduce 0 of world.0:1, 8 bytes: ended after 20 ms\n");
    str_clear(&text);
    flight_recorder_print(recorder, 1, 200, &text);
    assert_string_equal(str_text(&text), "all_reduce 0 of world.0:1, 8 bytes: ended after 20 ms\n");
    assert_null(flight_recorder_find(recorder, "world", 0));
    assert_string_equal(flight_recorder_find(recorder, "world", 2)->op, "all_reduce");
    flight_recorder_close(recorder);
}

static sem_t released;
static atomic_int aborts, checks, calls;

static int is_well(void *ctx, struct error *err)
{
    (void)ctx, (void)err;
    atomic_fetch_add(&checks, 1);
    return 0;
}

static uint64_t count_ended(void *ctx)
{
    return atomic_load((atomic_int *)ctx);
}

static int is_broken(void *ctx, struct error *err)
{
    (void)ctx;
    return error_set(err, ERR_PEER, "the wire is cut");
}

static void abort_at_once(const struct watched_comm *first)
{
    for (; first; first = first->next)
        atomic_fetch_add(&aborts, 1);
}

static void abort_all_once(const struct watched_comm *first)
{
    abort_at_once(first);
    atomic_fetch_add(&calls, 1);
}

static void abort_hangs(const struct watched_comm *first)
{
    abort_at_once(first);
    sem_wait(&released);
}

static void release(void)
{
    sem_post(&released);
}

struct fixture {
    struct comm_local *group;
    struct watchdog *watchdog;
    struct watched_comm one;
    atomic_int ended;
    int world_ranks[2];
};

static void open_watchdog(struct fixture *f, int (*check)(void *, struct error *),
                          void (*abort)(const struct watched_comm *),
                          const struct watchdog_options *options)
{
    struct error err;
    struct watchdog_options whole = *options;
    atomic_store(&aborts, 0);
    sem_init(&released, 0, 0);
    f->group = comm_local_open();
    f->world_ranks[0] = 0, f->world_ranks[1] = 1;
    atomic_init(&f->ended, 0);
    f->one = (struct watched_comm){.id = "world",
                                   .size = 2,
                                   .world_ranks = f->world_ranks,
                                   .check = check,
                                   .count_ended = count_ended,
                                   .ctx = &f->ended};
    whole.abort = abort;
    whole.store = comm_local_store(f->group);
    whole.records = 4;
    whole.dump_path = "";
    assert_ok(watchdog_open(&whole, &f->watchdog, &err), &err);
    assert_ok(watchdog_add(f->watchdog, &f->one, &err), &err);
}

static void close_watchdog(struct fixture *f, bool was_aborted)
{
    assert_int_equal(watchdog_remove(f->watchdog, &f->one), was_aborted);
    watchdog_close(f->watchdog);
    comm_local_close(f->group);
    sem_destroy(&released);
}

static void test_who_is_well_is_left_alone(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    open_watchdog(&f, is_well, abort_at_once,
                  &(struct watchdog_options){.timeout_ms = TIMEOUT_MS, .aborts = true});
    watchdog_begin(f.watchdog, &f.one, "barrier", 4);
    int seen = atomic_load(&checks);
    while (atomic_load(&checks) < seen + 2)
        ;
    atomic_store(&f.ended, 1);
    assert_ok(watchdog_check(f.watchdog, &err), &err);
    close_watchdog(&f, false);
    assert_int_equal(atomic_load(&aborts), 0);
}

static void test_who_is_broken_is_aborted_once(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    open_watchdog(&f, is_broken, abort_at_once,
                  &(struct watchdog_options){.timeout_ms = TIMEOUT_MS, .aborts = true});
    while (!watchdog_has_failed(f.watchdog))
        ;
    assert_fails(watchdog_check(f.watchdog, &err), &err, ERR_PEER, "the wire is cut");
    close_watchdog(&f, true);
    assert_int_equal(atomic_load(&aborts), 1);
}

static bool is_one_collectives(int timeout_s)
{
    struct fixture f;
    struct error err;
    char expected[64];
    const int first_ms = timeout_s * 1000 / 8;
    open_watchdog(&f, is_well, abort_at_once,
                  &(struct watchdog_options){.timeout_ms = timeout_s * 1000, .aborts = true});
    struct store *store = comm_local_store(f.group);
    assert_ok(store->fn->set(store, "late/world/1", "3", &err), &err); /* it came as far */
    int64_t begin_ms = clock_monotonic_ms();
    for (int i = 0; i < 3; i++)
        watchdog_begin(f.watchdog, &f.one, "barrier", 4);
    while (clock_monotonic_ms() - begin_ms < first_ms)
        usleep(1000);
    atomic_store(&f.ended, 1);
    while (watchdog_check(f.watchdog, &err) == 0)
        usleep(1000);
    bool is_late = clock_monotonic_ms() - begin_ms >= timeout_s * 1000 + first_ms;
    close_watchdog(&f, true);
    snprintf(expected, sizeof expected, "barrier 1 of world (4 bytes) did not end within %d s",
             timeout_s);
    return support_is_error(-1, &err, ERR_TIMEOUT, expected) && is_late;
}

/* Each may take as long as the deadline, however many are queued at once; the next does not. */
static void test_a_deadline_is_one_collectives(void **state)
{
    (void)state;
    int timeout_s = 1;
    while (!is_one_collectives(timeout_s))
        timeout_s = (int)(support_longer_ms(timeout_s * 1000) / 1000);
}

/* One call ends all: who is aborted alone may wait for what another runs. */
static void test_all_are_aborted_at_once(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    open_watchdog(&f, is_well, abort_all_once,
                  &(struct watchdog_options){.timeout_ms = TIMEOUT_MS, .aborts = true});
    struct watched_comm second = f.one;
    assert_ok(watchdog_add(f.watchdog, &second, &err), &err);
    error_set(&err, ERR_PEER, "rank 1 is lost");
    watchdog_fail(f.watchdog, &err);
    assert_true(watchdog_remove(f.watchdog, &second));
    close_watchdog(&f, true);
    assert_int_equal(atomic_load(&aborts), 2);
    assert_int_equal(atomic_load(&calls), 1);
}

static void test_an_abort_that_hangs_is_told_of(void **state)
{
    (void)state;
    struct fixture f;
    open_watchdog(&f, is_broken, abort_hangs,
                  &(struct watchdog_options){
                      .timeout_ms = TIMEOUT_MS, .aborts = true, .stuck = release, .grace_ms = 200});
    while (!watchdog_has_failed(f.watchdog))
        ;
    close_watchdog(&f, true); /* waits for the abort, which only `stuck` lets go on */
}

/* Whose abort nobody would see to: before all are aborted, meanwhile and after. */
static void test_who_comes_after_a_failure_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    open_watchdog(&f, is_well, abort_hangs,
                  &(struct watchdog_options){.timeout_ms = TIMEOUT_MS, .aborts = true});
    struct watched_comm second = f.one;
    error_set(&err, ERR_PEER, "rank 1 is lost");
    watchdog_fail(f.watchdog, &err);
    assert_fails(watchdog_add(f.watchdog, &second, &err), &err, ERR_PEER, "rank 1 is lost");
    while (atomic_load(&aborts) == 0)
        usleep(1000);
    assert_fails(watchdog_add(f.watchdog, &second, &err), &err, ERR_PEER, "rank 1 is lost");
    release();
    assert_true(watchdog_remove(f.watchdog, &f.one));
    assert_fails(watchdog_add(f.watchdog, &second, &err), &err, ERR_PEER, "rank 1 is lost");
    watchdog_close(f.watchdog);
    comm_local_close(f.group);
    sem_destroy(&released);
    assert_int_equal(atomic_load(&aborts), 1);
}

static sem_t asked, answered;

/* As a device that does not answer; only the first question. */
static uint64_t count_hangs(void *ctx)
{
    if (atomic_exchange((atomic_int *)ctx, 1) == 0) {
        sem_post(&asked);
        sem_wait(&answered);
    }
    return 0;
}

static void *remove_one(void *ctx)
{
    struct fixture *f = ctx;
    return watchdog_remove(f->watchdog, &f->one) ? f : NULL;
}

/* A failure that comes while a question is waited for: nobody goes while all are aborted. */
static void test_who_goes_waits_for_an_abort_that_begins_meanwhile(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    pthread_t goes;
    void *was_aborted;
    open_watchdog(&f, is_well, abort_hangs,
                  &(struct watchdog_options){.timeout_ms = TIMEOUT_MS, .aborts = true});
    sem_init(&asked, 0, 0);
    sem_init(&answered, 0, 0);
    assert_false(watchdog_remove(f.watchdog, &f.one));
    f.one.count_ended = count_hangs;
    assert_ok(watchdog_add(f.watchdog, &f.one, &err), &err);
    sem_wait(&asked);
    assert_int_equal(pthread_create(&goes, NULL, remove_one, &f), 0);
    usleep(100000); /* it waits for the answer */
    error_set(&err, ERR_PEER, "rank 1 is lost");
    watchdog_fail(f.watchdog, &err);
    while (atomic_load(&aborts) == 0)
        usleep(1000);
    sem_post(&answered);
    usleep(100000); /* it would go */
    release();
    pthread_join(goes, &was_aborted);
    assert_non_null(was_aborted);
    watchdog_close(f.watchdog);
    comm_local_close(f.group);
    sem_destroy(&released);
    sem_destroy(&asked);
    sem_destroy(&answered);
}

static void test_failures_may_be_waited_out(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    open_watchdog(&f, is_well, abort_at_once, &(struct watchdog_options){.timeout_ms = TIMEOUT_MS});
    watchdog_begin(f.watchdog, &f.one, "barrier", 4);
    error_set(&err, ERR_TIMEOUT, "late");
    watchdog_fail(f.watchdog, &err);
    assert_false(watchdog_has_failed(f.watchdog));
    assert_ok(watchdog_check(f.watchdog, &err), &err);
    close_watchdog(&f, false);
    assert_int_equal(atomic_load(&aborts), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_are_the_last_ones),
        cmocka_unit_test(test_who_is_well_is_left_alone),
        cmocka_unit_test(test_who_is_broken_is_aborted_once),
        cmocka_unit_test(test_a_deadline_is_one_collectives),
        cmocka_unit_test(test_all_are_aborted_at_once),
        cmocka_unit_test(test_who_comes_after_a_failure_is_refused),
        cmocka_unit_test(test_an_abort_that_hangs_is_told_of),
        cmocka_unit_test(test_who_goes_waits_for_an_abort_that_begins_meanwhile),
        cmocka_unit_test(test_failures_may_be_waited_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
