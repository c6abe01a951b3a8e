/* Communicators over NCCL, on the CPU and with a fake of NCCL (tests/emulation/nccl*.c): what they
 * ask it for, how ranks meet, and what happens when a collective does not end. */
#include "agent/comm/comm_nccl.h"
#include "agent/comm/nccl_api.h"

#include "tests/agent/comm_cases.h"
#include "tests/agent/ranks.h"
#include "tests/support.h"

#include "base/clock.h"
#include "base/contract.h"
#include "base/mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_MS = RANKS_TIMEOUT_MS };

/* What a test asks of the watch. */
struct wish {
    int (*body)(struct rank *, struct comm *, struct stream *, struct error *);
    struct watchdog_options watchdog;
    bool registers;
    bool waits_out; /* failures: nothing is aborted */
};

static int run_nccl(struct rank *r, struct comm *host, struct stream *s, struct error *err)
{
    const struct wish *wish = r->arg;
    struct comm_nccl_options options = {.store = comm_local_store(r->group),
                                        .join_timeout_ms = TIMEOUT_MS,
                                        .watchdog = wish->watchdog,
                                        .registers = wish->registers};
    struct nccl_api api;
    struct comm *c = host;
    struct collective_progress progress;
    collective_progress_init(&progress);
    options.watchdog.progress = &progress;
    options.watchdog.records = 16;
    if (options.watchdog.timeout_ms == 0)
        options.watchdog.timeout_ms = TIMEOUT_MS;
    if (!options.watchdog.dump_path)
        options.watchdog.dump_path = "";
    if (r->size > 1 && (nccl_api_open(&api, err) || comm_nccl_open(&api, &options, stream_device(s),
                                                                   r->rank, r->size, &c, err)))
        return -1;
    int result = wish->body(r, c, s, err);
    bool called = c->stats.calls[COMM_ALL_REDUCE] > 0;
    if (c != host)
        comm_close(c);
    struct collective_state at = collective_progress_read(&progress);
    collective_progress_destroy(&progress);
    if (result == 0 && r->size > 1 && ((called && at.entered == 0) || at.ended != at.entered))
        return error_set(err, ERR_INPUT, "of %d collectives %d have ended", (int)at.entered,
                         (int)at.ended);
    return result;
}

static void run_ranks(struct rank *ranks, int size, const char *faults, const struct wish *wish)
{
    struct wish whole = *wish;
    whole.watchdog.aborts = !wish->waits_out;
    setenv("FAKE_NCCL", faults, 1);
    for (int i = 0; i < size; i++)
        ranks[i].arg = &whole;
    ranks_run(ranks, size, TIMEOUT_MS, run_nccl);
}

static int cases(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    (void)r;
    return comm_cases_run(c, s, err);
}

static void test_every_collective(void **state)
{
    (void)state;
    for (int size = 2; size <= 3; size++) {
        struct rank ranks[3] = {0};
        run_ranks(ranks, size, "", &(struct wish){.body = cases});
        for (int i = 0; i < size; i++)
            assert_ok(ranks[i].result, &ranks[i].err);
    }
}

/* Memory that goes back to the system is not registered any more, whatever comes to lie there. */
static int move_in_fresh_memory(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    enum { COUNT = 1000 };
    struct device *device = stream_device(s);
    for (int i = 0; i < 100; i++) {
        void *all, *other, *rest;
        size_t bytes = (size_t)(i + 1) * COUNT * 2 * 4;
        if (device_alloc(device, MEMORY_UNIT, bytes, "all", &all, err) ||
            device_alloc(device, MEMORY_UNIT, bytes, "other", &other, err))
            return -1;
        memset(all, 0, bytes);
        c->fn->all_gather(c, s, DTYPE_F32, all, (float *)all + r->rank * (i + 1) * COUNT,
                          (i + 1) * COUNT);
        c->fn->all_to_all(c, s, DTYPE_F32, other, all, (i + 1) * COUNT, NULL);
        int result = stream_sync(s, err);
        device_free(device, all);
        device_free(device, other);
        if (result)
            return -1;
        /* beyond what there is: what is cached is given back */
        struct error ignored;
        if (device_alloc(device, MEMORY_UNIT, (size_t)1 << 60, "too much", &rest, &ignored) == 0)
            return error_set(err, ERR_INPUT, "memory without end");
    }
    return 0;
}

static void test_memory_is_registered_while_it_is_there(void **state)
{
    (void)state;
    struct rank ranks[2] = {0};
    run_ranks(ranks, 2, "registered=1",
              &(struct wish){.body = move_in_fresh_memory, .registers = true});
    for (int i = 0; i < 2; i++)
        assert_ok(ranks[i].result, &ranks[i].err);
}

/* The reserve is NCCL's memory, registered as a whole while it is there: the fake ends the test
 * where it is freed before. */
static int move_within_reserve(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    enum { COUNT = 1000 };
    struct device *device = stream_device(s);
    struct memory_use use;
    void *all;
    if (device_reserve(device, NCCL_MEMORY_GRANULE, err) ||
        device_alloc(device, MEMORY_UNIT, 2 * COUNT * sizeof(float), "all", &all, err))
        return -1;
    memset(all, 0, 2 * COUNT * sizeof(float));
    c->fn->all_gather(c, s, DTYPE_F32, all, (float *)all + r->rank * COUNT, COUNT);
    int result = stream_sync(s, err);
    device_free(device, all);
    device_memory_use(device, &use);
    if (result == 0 && use.reserve_is_lent != (strstr(getenv("FAKE_NCCL"), "lends=0") == NULL &&
                                               strstr(getenv("FAKE_NCCL"), "22600") == NULL))
        return error_set(err, ERR_INPUT, "whose memory the reserve is: %d", use.reserve_is_lent);
    return result;
}

static void test_the_reserve_is_nccls(void **state)
{
    static const char *const settings[] = {"registered=1", "registered=1,lends=0",
                                           "registered=1,version=22600"};
    (void)state;
    for (size_t n = 0; n < array_length(settings); n++) {
        struct rank ranks[2] = {0};
        run_ranks(ranks, 2, settings[n],
                  &(struct wish){.body = move_within_reserve, .registers = true});
        for (int i = 0; i < 2; i++)
            assert_ok(ranks[i].result, &ranks[i].err);
    }
}

/* Two collectives, of which the test lets the second fail; the next one fails, too. */
static int two(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    (void)r;
    float data[4] = {0};
    struct error ignored;
    c->fn->all_reduce(c, s, DTYPE_F32, data, 4, COMM_SUM);
    if (stream_sync(s, err))
        return -1;
    c->fn->all_gather(c, s, DTYPE_F32, data, data + 2 * c->rank, 2);
    int result = stream_sync(s, err);
    c->fn->barrier(c, s);
    if (result < 0 && stream_sync(s, &ignored) == 0)
        return error_set(err, ERR_INPUT, "a dead communicator went on");
    return result;
}

static int two_exchanges(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float from[4] = {0}, to[4];
    (void)r;
    for (int i = 0; i < 2; i++) {
        c->fn->all_to_all(c, s, DTYPE_F32, to, from, 2, NULL);
        if (stream_sync(s, err))
            return -1;
    }
    return 0;
}

static bool is_aborted_and_told(int timeout_s)
{
    bool is = true;
    char path[] = "/tmp/shoal-watch-XXXXXX", file[96], text[2000] = "";
    assert_non_null(mkdtemp(path));
    char prefix[64], expected[96];
    snprintf(expected, sizeof expected, "all_gather 1 of nccl (8 bytes) did not end within %d s",
             timeout_s);
    snprintf(prefix, sizeof prefix, "%s/rank", path);
    struct rank ranks[2] = {0};
    const struct wish wish = {
        .body = two,
        .watchdog = {.timeout_ms = timeout_s * 1000, .dumps = true, .dump_path = prefix}};
    run_ranks(ranks, 2, "hang=1:1", &wish);
    for (int i = 0; i < 2; i++) {
        is = support_is_error(ranks[i].result, &ranks[i].err, ERR_TIMEOUT, expected) && is;
        snprintf(file, sizeof file, "%s%d", prefix, i);
        FILE *f = fopen(file, "r");
        assert_non_null(f);
        assert_true(fread(text, 1, sizeof text - 1, f) > 0);
        fclose(f);
        is = strstr(text, "all_reduce 0 of nccl, 16 bytes: ended after") &&
             strstr(text, "all_gather 1 of nccl, 8 bytes: runs for") && is;
        unlink(file);
    }
    rmdir(path);
    return is;
}

static void test_a_collective_that_hangs_is_aborted_and_told(void **state)
{
    (void)state;
    int timeout_s = 1;
    while (!is_aborted_and_told(timeout_s))
        timeout_s = (int)(support_longer_ms(timeout_s * 1000) / 1000);
}

/* Rank 1 does not come to the second: it waits until the others have failed. */
static int one_stays_away(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float data[4] = {0};
    struct store *store = comm_local_store(r->group);
    struct error ignored;
    char value[STORE_VALUE_MAX];
    if (r->rank != 1)
        c->fn->all_reduce(c, s, DTYPE_F32, data, 4, COMM_SUM);
    int result = stream_sync(s, err);
    if (r->rank == 0)
        store->fn->set(store, "failed", "", &ignored);
    store->fn->get(store, "failed", TIMEOUT_MS, value, &ignored);
    return result;
}

static bool who_did_not_come_is_named(int timeout_ms)
{
    struct rank ranks[3] = {0};
    run_ranks(ranks, 3, "",
              &(struct wish){.body = one_stays_away, .watchdog = {.timeout_ms = timeout_ms}});
    assert_ok(ranks[1].result, &ranks[1].err);
    static const char expected[] = "it was not reached by rank 1";
    return support_is_error(ranks[0].result, &ranks[0].err, ERR_TIMEOUT, expected) &&
           !strstr(ranks[0].err.msg, "rank 1, 2") &&
           support_is_error(ranks[2].result, &ranks[2].err, ERR_TIMEOUT, expected);
}

static bool exchange_is_aborted(int timeout_ms)
{
    struct rank ranks[2] = {0};
    run_ranks(ranks, 2, "hang=1:1",
              &(struct wish){.body = two_exchanges, .watchdog = {.timeout_ms = timeout_ms}});
    bool is = true;
    for (int i = 0; i < 2; i++)
        is = support_is_error(ranks[i].result, &ranks[i].err, ERR_TIMEOUT,
                              "all_to_all 1 of nccl (8 bytes) did not end within ") &&
             is;
    return is;
}

static void test_an_exchange_that_hangs_is_aborted(void **state)
{
    (void)state;
    int timeout_ms = 1000;
    while (!exchange_is_aborted(timeout_ms))
        timeout_ms = (int)support_longer_ms(timeout_ms);
}

static void test_who_did_not_come_is_named(void **state)
{
    (void)state;
    int timeout_ms = 1000;
    while (!who_did_not_come_is_named(timeout_ms))
        timeout_ms = (int)support_longer_ms(timeout_ms);
}

static bool an_error_aborts(int timeout_ms)
{
    struct rank ranks[2] = {0};
    run_ranks(ranks, 2, "fail=1:1",
              &(struct wish){.body = two, .watchdog = {.timeout_ms = timeout_ms}});
    return support_is_error(ranks[1].result, &ranks[1].err, ERR_PEER, "remote process exited") &&
           support_is_error(ranks[0].result, &ranks[0].err, ERR_TIMEOUT,
                            "it was not reached by rank 1");
}

static void test_an_error_of_nccls_aborts(void **state)
{
    (void)state;
    int timeout_ms = 1000;
    while (!an_error_aborts(timeout_ms))
        timeout_ms = (int)support_longer_ms(timeout_ms);
}

/* What was refused has written nothing: that is no failure to be waited out. */
static void test_a_refused_call_ends_in_any_case(void **state)
{
    (void)state;
    for (int row = 0; row < 4; row++) {
        struct rank ranks[2] = {0};
        bool exchanges = row / 2;
        run_ranks(ranks, 2, "refuse=1",
                  &(struct wish){.body = exchanges ? two_exchanges : two, .waits_out = row % 2});
        for (int i = 0; i < 2; i++)
            assert_fails(ranks[i].result, &ranks[i].err, ERR_CONFIG,
                         exchanges ? "all_to_all: NCCL: " : "all_gather: NCCL: ");
    }
}

static int is_lost(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float data[4] = {0};
    if (r->rank == 1) {
        store_mark_lost(comm_local_store(r->group), "rank 1 is lost: it went away");
        return 0;
    }
    c->fn->all_reduce(c, s, DTYPE_F32, data, 4, COMM_SUM);
    return stream_sync(s, err);
}

static void test_a_lost_rank_aborts_at_once(void **state)
{
    (void)state;
    struct rank ranks[2] = {0};
    int64_t begin_ms = clock_monotonic_ms();
    run_ranks(ranks, 2, "", &(struct wish){.body = is_lost});
    assert_fails(ranks[0].result, &ranks[0].err, ERR_PEER, "rank 1 is lost: it went away");
    assert_true(clock_monotonic_ms() - begin_ms < TIMEOUT_MS / 2);
}

/* The ranks meet, but what could end it is over: the new one goes at once. */
static int splits_too_late(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm *part;
    (void)r, (void)s;
    c->fn->abort(c, "rank 7 is lost");
    return c->fn->split(c, 0, &part, err);
}

static void test_a_communicator_after_an_abort_is_refused(void **state)
{
    (void)state;
    struct rank ranks[2] = {0};
    run_ranks(ranks, 2, "", &(struct wish){.body = splits_too_late});
    for (int i = 0; i < 2; i++)
        assert_fails(ranks[i].result, &ranks[i].err, ERR_PEER, "rank 7 is lost");
}

static void test_old_libraries_are_refused(void **state)
{
    (void)state;
    struct nccl_api api;
    struct error err;
    setenv("FAKE_NCCL", "version=20803", 1);
    assert_fails(nccl_api_open(&api, &err), &err, ERR_UNSUPPORTED, "NCCL 2.8.3 is too old");
    setenv("FAKE_NCCL", "version=22703", 1);
    assert_ok(nccl_api_open(&api, &err), &err);
    assert_int_equal(api.version, 22703);
}

/* ---- ranks that do not call the same ---- */

static int other_count(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float data[4] = {0};
    c->fn->all_reduce(c, s, DTYPE_F32, data, 2 + r->rank, COMM_SUM);
    return stream_sync(s, err);
}

static int other_reduction(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float data[4] = {0};
    c->fn->all_reduce(c, s, DTYPE_F32, data, 4, r->rank ? COMM_SUM : COMM_MEAN);
    return stream_sync(s, err);
}

static int other_root(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float data[4] = {0};
    c->fn->broadcast(c, s, data, sizeof data, r->rank);
    return stream_sync(s, err);
}

static int other_operation(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float data[4] = {0};
    if (r->rank == 0)
        c->fn->all_reduce(c, s, DTYPE_F32, data, 2, COMM_SUM);
    else
        c->fn->all_gather(c, s, DTYPE_F32, data, data + 2, 2);
    return stream_sync(s, err);
}

static int other_exchange(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float from[4] = {0}, to[4];
    c->fn->all_to_all(c, s, DTYPE_F32, to, from, 1 + r->rank, NULL);
    return stream_sync(s, err);
}

/* In a process of its own, which it ends. */
static void disagree(const struct wish *wish, int error_pipe)
{
    const struct rlimit no_core = {0, 0};
    struct rank ranks[2] = {0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(error_pipe, STDERR_FILENO);
    run_ranks(ranks, 2, "", wish);
    _exit(0);
}

/* What the other tests rely on: the fake does not let it pass. */
static void test_ranks_that_disagree_end_the_test(void **state)
{
    (void)state;
    static const struct wish rows[] = {
        {.body = other_count},     {.body = other_reduction}, {.body = other_root},
        {.body = other_operation}, {.body = other_exchange},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int status, ends[2];
        char told[1000] = "";
        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            disagree(&rows[i], ends[1]);
        close(ends[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(read(ends[0], told, sizeof told - 1) > 0);
        close(ends[0]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        if (!strstr(told, "fake NCCL: rank ") || !strstr(told, " elements of type "))
            fail_msg("row %zu: %s", i, told);
    }
}

/* The library lies beside this program: build/VARIANT/emulation. */
static int find_library(void **state)
{
    (void)state;
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    assert_true(length > 0);
    path[length] = '\0';
    char *tests = strstr(path, "/tests/agent/");
    assert_non_null(tests);
    strcpy(tests, "/emulation");
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1); /* here, where no other thread is yet */
    return setenv(ENV_LIBRARY_PATH, path, 1);
}

static const char *text_of(int result)
{
    (void)result;
    return "it failed";
}

static const char *last_of(nccl_comm comm)
{
    (void)comm;
    return NULL;
}

static void test_an_error_of_nccls_tells_whose_it_is(void **state)
{
    (void)state;
    static const struct {
        int result;
        enum error_code code;
    } rows[] = {{NCCL_UNHANDLED_CUDA_ERROR, ERR_DEVICE}, /* this rank's GPU */
                {NCCL_INVALID_ARGUMENT, ERR_CONFIG},
                {NCCL_INVALID_USAGE, ERR_CONFIG},
                {2, ERR_PEER},  /* ncclSystemError */
                {6, ERR_PEER}}; /* ncclRemoteError */
    const struct nccl_api api = {.error_text = text_of, .last_error = last_of};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error err;
        assert_fails(nccl_api_fail(&api, NULL, rows[i].result, "meet", &err), &err, rows[i].code,
                     "meet: NCCL: it failed");
    }
}

static const char *no_room(nccl_comm comm)
{
    (void)comm;
    return "Error while creating shared memory segment /dev/shm/nccl-a1b2c3 (size 9637888), error: "
           "No space left on device (28)";
}

static void test_a_full_shm_is_told_with_what_to_do(void **state)
{
    (void)state;
    const struct nccl_api api = {.error_text = text_of, .last_error = no_room};
    struct error err;
    assert_fails(nccl_api_fail(&api, NULL, 2, "meet", &err), &err, ERR_PEER,
                 "No space left on device (28); /dev/shm may be full: give the pod an emptyDir "
                 "with medium: Memory there, or the container --shm-size");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_that_disagree_end_the_test), /* it forks: no thread is yet */
        cmocka_unit_test(test_every_collective),
        cmocka_unit_test(test_memory_is_registered_while_it_is_there),
        cmocka_unit_test(test_the_reserve_is_nccls),
        cmocka_unit_test(test_a_collective_that_hangs_is_aborted_and_told),
        cmocka_unit_test(test_an_exchange_that_hangs_is_aborted),
        cmocka_unit_test(test_who_did_not_come_is_named),
        cmocka_unit_test(test_an_error_of_nccls_aborts),
        cmocka_unit_test(test_an_error_of_nccls_tells_whose_it_is),
        cmocka_unit_test(test_a_full_shm_is_told_with_what_to_do),
        cmocka_unit_test(test_a_refused_call_ends_in_any_case),
        cmocka_unit_test(test_a_lost_rank_aborts_at_once),
        cmocka_unit_test(test_a_communicator_after_an_abort_is_refused),
        cmocka_unit_test(test_old_libraries_are_refused),
    };
    return cmocka_run_group_tests(tests, find_library, NULL);
}
