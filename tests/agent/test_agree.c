#include "agent/agree.h"

#include "agent/comm_local.h"
#include "tests/support.h"

#include <pthread.h>
#include <string.h>

enum { RANKS = 3, JOIN_TIMEOUT_MS = 60000 };

struct rank {
    pthread_t thread;
    struct comm_local *group;
    int rank, result;
    char broadcast[100];
    uint32_t gathered[RANKS][7];
    struct error err;
};

static int talk(struct rank *r, struct comm *comm, struct stream *stream)
{
    memset(r->broadcast, 'a' + r->rank, sizeof r->broadcast);
    if (agree_broadcast(comm, stream, r->broadcast, sizeof r->broadcast, &r->err) < 0)
        return -1;
    uint32_t mine[7]; /* as a float it would be a signalling NaN: it must only be moved */
    for (int i = 0; i < 7; i++)
        mine[i] = 0x7f800001U + (uint32_t)(16 * r->rank + i);
    return agree_gather(comm, stream, mine, r->gathered, sizeof mine, &r->err);
}

static void *run_rank(void *arg)
{
    struct rank *r = arg;
    struct device *device = NULL;
    struct stream *stream = NULL;
    struct comm *comm = NULL;
    r->result = device_open("cpu", 1, &device, &r->err);
    if (r->result == 0)
        r->result = stream_open(device, "agree", &stream, &r->err);
    if (r->result == 0)
        r->result = comm_local_join(r->group, r->rank, RANKS, JOIN_TIMEOUT_MS, &comm, &r->err);
    if (r->result == 0)
        r->result = talk(r, comm, stream);
    stream_close(stream);
    comm_close(comm);
    device_close(device);
    return NULL;
}

static void test_messages(void **state)
{
    (void)state;
    struct rank ranks[RANKS] = {0};
    struct comm_local *group = comm_local_open();
    for (int r = 0; r < RANKS; r++) {
        ranks[r] = (struct rank){.group = group, .rank = r};
        pthread_create(&ranks[r].thread, NULL, run_rank, &ranks[r]);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(ranks[r].thread, NULL);
    comm_local_close(group);
    for (int r = 0; r < RANKS; r++) {
        assert_ok(ranks[r].result, &ranks[r].err);
        assert_memory_equal(ranks[r].broadcast, ranks[0].broadcast, sizeof ranks[0].broadcast);
        assert_int_equal(ranks[r].broadcast[99], 'a');
        for (int from = 0; from < RANKS; from++)
            for (int i = 0; i < 7; i++)
                assert_true(ranks[r].gathered[from][i] == 0x7f800001U + (uint32_t)(16 * from + i));
    }
}

static void test_outcome(void **state)
{
    (void)state;
    struct outcome outcome;
    struct error err = {0}, long_err = {.code = ERR_IO};
    outcome_set(&outcome, 0, &err);
    assert_ok(outcome_get(&outcome, 3, &err), &err);
    error_set(&err, ERR_NO_SPACE, "write x");
    outcome_set(&outcome, -1, &err);
    assert_fails(outcome_get(&outcome, 3, &err), &err, ERR_NO_SPACE, "rank 3: write x");
    memset(long_err.msg, 'x', sizeof long_err.msg - 1);
    outcome_set(&outcome, -1, &long_err);
    assert_int_equal(strlen(outcome.msg), sizeof outcome.msg - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_outcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
