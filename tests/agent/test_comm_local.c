#include "tests/agent/comm_cases.h"
#include "tests/support.h"

#include "tests/agent/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 5, TIMEOUT_MS = RANKS_TIMEOUT_MS };

static int all_cases(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    (void)r;
    return comm_cases_run(c, s, err);
}

static void test_every_collective_at_every_size(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS; size++) {
        struct rank ranks[RANKS] = {0};
        ranks_run(ranks, size, TIMEOUT_MS, all_cases);
        for (int i = 0; i < size; i++)
            assert_ok(ranks[i].result, &ranks[i].err);
    }
}

static int random_sequence(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    return comm_random_run(c, s, r->seed, &r->digest, err);
}

static void test_sums_have_the_same_bits_in_every_run(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct rank first[RANKS] = {0}, second[RANKS] = {0};
        for (int i = 0; i < RANKS; i++)
            first[i].seed = second[i].seed = seed;
        ranks_run(first, RANKS, TIMEOUT_MS, random_sequence);
        ranks_run(second, RANKS, TIMEOUT_MS, random_sequence);
        for (int i = 0; i < RANKS; i++) {
            assert_ok(first[i].result, &first[i].err);
            assert_ok(second[i].result, &second[i].err);
            assert_int_equal(first[i].digest, second[i].digest);
        }
    }
}

/* Two communicators on two streams at the same time. */
static int two_streams(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    (void)r;
    struct comm *other;
    struct stream *second;
    float a[COMM_CASES_LARGE], b[COMM_CASES_LARGE];
    if (c->fn->split(c, 0, &other, err) < 0)
        return -1;
    int result = stream_open(stream_device(s), "second", &second, err);
    for (int64_t i = 0; i < COMM_CASES_LARGE; i++)
        a[i] = b[i] = comm_value(c->rank, i);
    for (int i = 0; i < 4 && result == 0; i++) {
        c->fn->all_reduce(c, s, DTYPE_F32, a, COMM_CASES_LARGE, COMM_MEAN);
        other->fn->all_reduce(other, second, DTYPE_F32, b, COMM_CASES_LARGE, COMM_MEAN);
    }
    struct error second_err;
    result = stream_sync(s, err);
    int second_result = stream_sync(second, &second_err);
    if (result == 0 && second_result < 0) {
        *err = second_err;
        result = -1;
    }
    stream_close(second);
    comm_close(other);
    return result < 0 ? -1 : comm_expect(a, b, COMM_CASES_LARGE, "two streams", err);
}

static void test_two_streams_use_two_communicators(void **state)
{
    (void)state;
    struct rank ranks[3] = {0};
    ranks_run(ranks, 3, TIMEOUT_MS, two_streams);
    for (int i = 0; i < 3; i++)
        assert_ok(ranks[i].result, &ranks[i].err);
}

/* Nobody leaves before all have failed: who is still on its way would find a neighbour lost. */
static void await_all(const struct rank *r)
{
    struct store *store = comm_local_store(r->group);
    struct error ignored;
    char key[32], value[STORE_VALUE_MAX];
    snprintf(key, sizeof key, "left/%d", r->rank);
    store->fn->set(store, key, "", &ignored);
    for (int i = 0; i < r->size; i++) {
        snprintf(key, sizeof key, "left/%d", i);
        store->fn->get(store, key, TIMEOUT_MS, value, &ignored);
    }
}

/* Rank 2 does not come; the others say so. */
static int one_is_missing(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float data[4] = {0};
    if (r->rank != 2)
        c->fn->all_reduce(c, s, DTYPE_F32, data, 4, COMM_SUM);
    int result = stream_sync(s, err);
    if (r->rank != 2 && result == 0)
        return error_set(err, ERR_INPUT, "all_reduce did not fail");
    await_all(r);
    return result;
}

static bool is_named_by_all(int timeout_ms)
{
    bool is = true;
    char expected[64];
    struct rank ranks[4] = {0};
    snprintf(expected, sizeof expected, "did not come within %d ms: rank 2", timeout_ms);
    ranks_run(ranks, 4, timeout_ms, one_is_missing);
    assert_ok(ranks[2].result, &ranks[2].err);
    for (int i = 0; i < 4; i++)
        if (i != 2)
            is = support_is_error(ranks[i].result, &ranks[i].err, ERR_TIMEOUT, expected) && is;
    return is;
}

static void test_a_missing_rank_is_named_after_the_deadline(void **state)
{
    (void)state;
    int timeout_ms = 500;
    while (!is_named_by_all(timeout_ms))
        timeout_ms = (int)support_longer_ms(timeout_ms);
}

static void *abort_soon(void *arg)
{
    struct comm *c = arg;
    c->fn->abort(c, "somebody pulled the plug");
    return NULL;
}

/* Rank 1 waits in a collective that rank 0 never joins, until another thread aborts it. */
static int aborted(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float data[4] = {0};
    if (r->rank == 0)
        return 0;
    pthread_t thread;
    c->fn->all_reduce(c, s, DTYPE_F32, data, 4, COMM_SUM);
    pthread_create(&thread, NULL, abort_soon, c);
    int result = stream_sync(s, err);
    pthread_join(thread, NULL);
    return result;
}

static void test_abort_fails_the_pending_collective(void **state)
{
    (void)state;
    struct rank ranks[2] = {0};
    ranks_run(ranks, 2, TIMEOUT_MS, aborted);
    assert_fails(ranks[1].result, &ranks[1].err, ERR_PEER, "all_reduce 0: ");
}

static int aborted_alone(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    (void)r;
    float data[4] = {0};
    c->fn->abort(c, "somebody pulled the plug");
    c->fn->all_reduce(c, s, DTYPE_F32, data, 4, COMM_SUM);
    return stream_sync(s, err);
}

static void test_abort_fails_later_collectives(void **state)
{
    (void)state;
    for (int size = 1; size <= 2; size++) {
        struct rank ranks[2] = {0};
        ranks_run(ranks, size, TIMEOUT_MS, aborted_alone);
        for (int i = 0; i < size; i++)
            assert_fails(ranks[i].result, &ranks[i].err, ERR_PEER, "pulled the plug");
    }
}

static int disagree(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float data[4] = {0};
    if (r->rank == 0)
        c->fn->all_reduce(c, s, DTYPE_F32, data, 4, COMM_SUM);
    else
        c->fn->all_gather(c, s, DTYPE_F32, data, data + 2, 2);
    int result = stream_sync(s, err);
    await_all(r);
    return result;
}

static void test_ranks_that_run_different_collectives_find_out(void **state)
{
    (void)state;
    struct rank ranks[2] = {0};
    ranks_run(ranks, 2, TIMEOUT_MS, disagree);
    assert_fails(ranks[0].result, &ranks[0].err, ERR_INPUT, "rank 1 runs all_gather 0 of 16 bytes");
    assert_fails(ranks[1].result, &ranks[1].err, ERR_INPUT, "rank 0 runs all_reduce 0 of 16 bytes");
}

/* Rank 1 of the parent leaves; rank 3 hears of it under its number in the world. */
static int neighbour_leaves(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm *odd;
    float data[4] = {0};
    if (c->fn->split(c, r->rank % 2, &odd, err) < 0)
        return -1;
    if (r->rank == 3)
        odd->fn->all_reduce(odd, s, DTYPE_F32, data, 4, COMM_SUM);
    int result = stream_sync(s, err);
    comm_close(odd);
    return result;
}

static void test_a_neighbour_that_leaves_is_named_by_its_number_in_the_world(void **state)
{
    (void)state;
    struct rank ranks[4] = {0};
    ranks_run(ranks, 4, TIMEOUT_MS, neighbour_leaves);
    assert_fails(ranks[3].result, &ranks[3].err, ERR_PEER, "rank 1 is lost");
}

static int count_work(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    (void)r;
    float data[8] = {0};
    double loss = 0;
    c->fn->all_gather(c, s, DTYPE_F32, data, data + 2 * c->rank, 2);
    c->fn->reduce_scatter(c, s, DTYPE_F32, data + 2 * c->rank, data, 2, COMM_SUM);
    c->fn->all_reduce(c, s, DTYPE_F32, data, 8, COMM_SUM);
    c->fn->all_reduce_f64(c, s, &loss, 1);
    c->fn->broadcast(c, s, data, 12, 0);
    const struct comm_stats *n = &c->stats;
    int64_t sent = 3 * 8 + 3 * 8 + 6 * 8 + 3 * 8 + (c->rank == c->size - 1 ? 0 : 12);
    static const int64_t calls[COMM_COLLECTIVE_KINDS] = {[COMM_ALL_GATHER] = 1,
                                                         [COMM_REDUCE_SCATTER] = 1,
                                                         [COMM_ALL_REDUCE] = 2,
                                                         [COMM_BROADCAST] = 1};
    for (int i = 0; i < COMM_COLLECTIVE_KINDS; i++)
        if (n->calls[i] != calls[i])
            return error_set(err, ERR_INPUT, "counted %lld times %s, not %lld",
                             (long long)n->calls[i], comm_collective_name((enum comm_collective)i),
                             (long long)calls[i]);
    if (n->bytes_sent != sent)
        return error_set(err, ERR_INPUT, "counted %lld bytes, not %lld", (long long)n->bytes_sent,
                         (long long)sent);
    return stream_sync(s, err);
}

static void test_work_is_counted(void **state)
{
    (void)state;
    struct rank ranks[4] = {0};
    ranks_run(ranks, 4, TIMEOUT_MS, count_work);
    for (int i = 0; i < 4; i++)
        assert_ok(ranks[i].result, &ranks[i].err);
}

static void test_a_rank_that_never_joins_is_named(void **state)
{
    (void)state;
    struct comm_local *group = comm_local_open();
    struct comm *comm;
    struct error err;
    int result = comm_local_join(group, 0, 2, 100, &comm, &err);
    assert_fails(result, &err, ERR_TIMEOUT, "meet rank 1");
    comm_local_close(group);
}

static void test_an_unknown_network_interface_is_named(void **state)
{
    (void)state;
    struct comm_local *group = comm_local_open();
    struct comm_ring_options options = {
        .join_timeout_ms = 100, .timeout_ms = 100, .interface = "nosuch0"};
    struct comm *comm;
    struct error err;
    int result = comm_ring_open(comm_local_store(group), 0, 2, &options, &comm, &err);
    assert_fails(result, &err, ERR_CONFIG,
                 "no network interface \"nosuch0\" with an address here; there are lo");
    snprintf(options.interface, sizeof options.interface,
             "lo"); /* is there: only the other rank is missing */
    result = comm_ring_open(comm_local_store(group), 1, 2, &options, &comm, &err);
    assert_fails(result, &err, ERR_TIMEOUT, "meet rank 0");
    comm_local_close(group);
}

/* The ranks of a communicator may part long after the caller's options are gone. */
static void *part(void *arg)
{
    struct rank *r = arg;
    struct comm_ring_options options = {.join_timeout_ms = TIMEOUT_MS, .timeout_ms = TIMEOUT_MS};
    struct comm *all = NULL, *half = NULL;
    r->result =
        comm_ring_open(comm_local_store(r->group), r->rank, r->size, &options, &all, &r->err);
    memset(&options, 'x', sizeof options);
    if (r->result == 0)
        r->result = all->fn->split(all, r->rank / 2, &half, &r->err);
    comm_close(half);
    comm_close(all);
    return NULL;
}

static void test_parts_use_the_network_interface_that_was_asked_for(void **state)
{
    (void)state;
    struct comm_local *group = comm_local_open();
    struct rank ranks[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        ranks[i] = (struct rank){.group = group, .rank = i, .size = 4};
        pthread_create(&threads[i], NULL, part, &ranks[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        assert_ok(ranks[i].result, &ranks[i].err);
    comm_local_close(group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_collective_at_every_size),
        cmocka_unit_test(test_sums_have_the_same_bits_in_every_run),
        cmocka_unit_test(test_two_streams_use_two_communicators),
        cmocka_unit_test(test_a_missing_rank_is_named_after_the_deadline),
        cmocka_unit_test(test_abort_fails_the_pending_collective),
        cmocka_unit_test(test_abort_fails_later_collectives),
        cmocka_unit_test(test_ranks_that_run_different_collectives_find_out),
        cmocka_unit_test(test_a_neighbour_that_leaves_is_named_by_its_number_in_the_world),
        cmocka_unit_test(test_work_is_counted),
        cmocka_unit_test(test_a_rank_that_never_joins_is_named),
        cmocka_unit_test(test_an_unknown_network_interface_is_named),
        cmocka_unit_test(test_parts_use_the_network_interface_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
