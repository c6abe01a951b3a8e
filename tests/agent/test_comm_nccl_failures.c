/* What happens when a collective over NCCL does not end, or NCCL refuses it. */
#include "tests/agent/nccl_ranks.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        c->fn->all_to_all(c, s, DTYPE_F32, to, from, 2, 2, NULL);
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
    const struct nccl_wish wish = {
        .body = two,
        .watchdog = {.timeout_ms = timeout_s * 1000, .dumps = true, .dump_path = prefix}};
    nccl_ranks_run(ranks, 2, "hang=1:1", &wish);
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
    store->fn->get(store, "failed", RANKS_TIMEOUT_MS, value, &ignored);
    return result;
}

static bool who_did_not_come_is_named(int timeout_ms)
{
    struct rank ranks[3] = {0};
    nccl_ranks_run(
        ranks, 3, "",
        &(struct nccl_wish){.body = one_stays_away, .watchdog = {.timeout_ms = timeout_ms}});
    assert_ok(ranks[1].result, &ranks[1].err);
    static const char expected[] = "it was not reached by rank 1";
    return support_is_error(ranks[0].result, &ranks[0].err, ERR_TIMEOUT, expected) &&
           !strstr(ranks[0].err.msg, "rank 1, 2") &&
           support_is_error(ranks[2].result, &ranks[2].err, ERR_TIMEOUT, expected);
}

static bool exchange_is_aborted(int timeout_ms)
{
    struct rank ranks[2] = {0};
    nccl_ranks_run(
        ranks, 2, "hang=1:1",
        &(struct nccl_wish){.body = two_exchanges, .watchdog = {.timeout_ms = timeout_ms}});
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
    nccl_ranks_run(ranks, 2, "fail=1:1",
                   &(struct nccl_wish){.body = two, .watchdog = {.timeout_ms = timeout_ms}});
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
        nccl_ranks_run(
            ranks, 2, "refuse=1",
            &(struct nccl_wish){.body = exchanges ? two_exchanges : two, .waits_out = row % 2});
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
    nccl_ranks_run(ranks, 2, "", &(struct nccl_wish){.body = is_lost});
    assert_fails(ranks[0].result, &ranks[0].err, ERR_PEER, "rank 1 is lost: it went away");
    assert_true(clock_monotonic_ms() - begin_ms < RANKS_TIMEOUT_MS / 2);
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
    nccl_ranks_run(ranks, 2, "", &(struct nccl_wish){.body = splits_too_late});
    for (int i = 0; i < 2; i++)
        assert_fails(ranks[i].result, &ranks[i].err, ERR_PEER, "rank 7 is lost");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_collective_that_hangs_is_aborted_and_told),
        cmocka_unit_test(test_an_exchange_that_hangs_is_aborted),
        cmocka_unit_test(test_who_did_not_come_is_named),
        cmocka_unit_test(test_an_error_of_nccls_aborts),
        cmocka_unit_test(test_a_refused_call_ends_in_any_case),
        cmocka_unit_test(test_a_lost_rank_aborts_at_once),
        cmocka_unit_test(test_a_communicator_after_an_abort_is_refused),
    };
    return cmocka_run_group_tests(tests, nccl_find_library, NULL);
}
