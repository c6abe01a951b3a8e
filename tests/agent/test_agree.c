#include "agent/comm/agree.h"

#include "tests/agent/ranks.h"
#include "tests/support.h"

#include <string.h>

enum { RANKS = 3 };

/* What one rank was told. */
struct heard {
    char broadcast[100];
    uint32_t gathered[RANKS][7];
};

static int talk(struct rank *r, struct comm *comm, struct stream *stream, struct error *err)
{
    struct heard *heard = r->arg;
    memset(heard->broadcast, 'a' + r->rank, sizeof heard->broadcast);
    if (agree_broadcast(comm, stream, heard->broadcast, sizeof heard->broadcast, err) < 0)
        return -1;
    uint32_t mine[7]; /* as a float it would be a signalling NaN: it must only be moved */
    for (int i = 0; i < 7; i++)
        mine[i] = 0x7f800001U + (uint32_t)(16 * r->rank + i);
    return agree_gather(comm, stream, mine, heard->gathered, sizeof mine, err);
}

static void test_messages(void **state)
{
    (void)state;
    struct rank ranks[RANKS] = {0};
    struct heard heard[RANKS];
    for (int r = 0; r < RANKS; r++)
        ranks[r].arg = &heard[r];
    ranks_run(ranks, RANKS, RANKS_TIMEOUT_MS, talk);
    for (int r = 0; r < RANKS; r++) {
        assert_ok(ranks[r].result, &ranks[r].err);
        assert_memory_equal(heard[r].broadcast, heard[0].broadcast, sizeof heard[0].broadcast);
        assert_int_equal(heard[r].broadcast[99], 'a');
        for (int from = 0; from < RANKS; from++)
            for (int i = 0; i < 7; i++)
                assert_true(heard[r].gathered[from][i] == 0x7f800001U + (uint32_t)(16 * from + i));
    }
}

/* Each rank's own result; only rank 2's is a failure, which another may see. */
static int fail_on_rank_2(struct rank *r, struct comm *comm, struct stream *stream,
                          struct error *err)
{
    if (agree_all(comm, stream, 0, err) < 0)
        return 0; /* not seen as the failure that is expected */
    const bool *sees = r->arg;
    int result = r->rank == 2           ? error_set(err, ERR_INPUT, "no file")
                 : sees && r->rank == 1 ? error_set(err, ERR_PEER, "rank 2 is lost")
                                        : 0;
    return agree_all(comm, stream, result, err);
}

static void test_all(void **state)
{
    (void)state;
    bool sees = true;
    for (int is_seen = 0; is_seen < 2; is_seen++) {
        struct rank ranks[RANKS] = {0};
        for (int r = 0; r < RANKS; r++)
            ranks[r].arg = is_seen ? &sees : NULL;
        ranks_run(ranks, RANKS, RANKS_TIMEOUT_MS, fail_on_rank_2);
        for (int r = 0; r < RANKS; r++)
            assert_fails(ranks[r].result, &ranks[r].err, ERR_INPUT, "rank 2: no file");
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
    assert_false(err.shared);
    assert_fails(outcome_get(&outcome, 3, &err), &err, ERR_NO_SPACE, "rank 3: write x");
    error_wrap(&err, "save");
    assert_true(err.shared);
    memset(long_err.msg, 'x', sizeof long_err.msg - 1);
    outcome_set(&outcome, -1, &long_err);
    assert_int_equal(strlen(outcome.msg), sizeof outcome.msg - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_outcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
