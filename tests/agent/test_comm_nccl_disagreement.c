/* Ranks that do not call the same. What the other tests rely on: the fake does not let it pass. */
#include "tests/agent/nccl_ranks.h"

#include "base/mem.h"

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
    c->fn->all_to_all(c, s, DTYPE_F32, to, from, 1 + r->rank, 1 + r->rank, NULL);
    return stream_sync(s, err);
}

static void test_ranks_that_disagree_end_the_test(void **state)
{
    (void)state;
    static const struct nccl_wish rows[] = {
        {.body = other_count},     {.body = other_reduction}, {.body = other_root},
        {.body = other_operation}, {.body = other_exchange},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char told[NCCL_TOLD_BYTES];
        nccl_ranks_must_end(&rows[i], "", told);
        if (!strstr(told, "fake NCCL: rank ") || !strstr(told, " elements of type "))
            fail_msg("row %zu: %s", i, told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_that_disagree_end_the_test),
    };
    return cmocka_run_group_tests(tests, nccl_find_library, NULL);
}
