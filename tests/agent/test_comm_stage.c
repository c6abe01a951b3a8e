/* Collectives through page-locked memory do what those below do, bit for bit, however small the
 * pieces. */
#include "agent/comm/comm_stage.h"

#include "tests/agent/comm_cases.h"
#include "tests/agent/ranks.h"
#include "tests/support.h"

enum { RANKS = 5, TIMEOUT_MS = RANKS_TIMEOUT_MS, NOT_STAGED = 0 };

static size_t smallest_buffer(int size)
{
    return (size_t)size * 128;
}

/* Runs what `r->arg`, the bytes of a buffer, asks for. */
static int run_staged(struct rank *r, struct comm *c, struct stream *s,
                      int (*body)(struct rank *, struct comm *, struct stream *, struct error *),
                      struct error *err)
{
    size_t bytes = *(size_t *)r->arg;
    struct comm *staged = c;
    if (c->size > 1 && bytes != NOT_STAGED &&
        comm_stage_open(c, false, stream_device(s), bytes, &staged, err))
        return -1;
    int result = body(r, staged, s, err);
    if (staged != c)
        comm_close(staged);
    return result;
}

static int cases(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    (void)r;
    return comm_cases_run(c, s, err);
}

static int all_cases(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    return run_staged(r, c, s, cases, err);
}

static void test_every_collective_at_every_size(void **state)
{
    (void)state;
    for (int size = 2; size <= RANKS; size++) {
        struct rank ranks[RANKS] = {0};
        size_t bytes = size == 3 ? COMM_STAGE_BYTES : 32 * smallest_buffer(size);
        for (int i = 0; i < size; i++)
            ranks[i].arg = &bytes;
        ranks_run(ranks, size, TIMEOUT_MS, all_cases);
        for (int i = 0; i < size; i++)
            assert_ok(ranks[i].result, &ranks[i].err);
    }
}

static int sequence(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    return comm_random_run(c, s, r->seed, &r->digest, err);
}

static int random_sequence(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    return run_staged(r, c, s, sequence, err);
}

static void test_sums_have_the_bits_of_the_ring(void **state)
{
    (void)state;
    uint64_t digests[RANKS] = {0};
    size_t sizes[] = {NOT_STAGED, smallest_buffer(RANKS), 1000 * RANKS, COMM_STAGE_BYTES};
    for (size_t k = 0; k < array_length(sizes); k++) {
        struct rank ranks[RANKS] = {0};
        for (int i = 0; i < RANKS; i++)
            ranks[i].seed = 7, ranks[i].arg = &sizes[k];
        ranks_run(ranks, RANKS, TIMEOUT_MS, random_sequence);
        for (int i = 0; i < RANKS; i++) {
            assert_ok(ranks[i].result, &ranks[i].err);
            if (k == 0)
                digests[i] = ranks[i].digest;
            assert_int_equal(ranks[i].digest, digests[i]);
        }
    }
}

/* The error of what is below comes out of the caller's stream. */
static int leaves(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    float data[4] = {0};
    if (r->rank == 0)
        c->fn->abort(c, "somebody pulled the plug");
    c->fn->all_reduce(c, s, DTYPE_F32, data, 4, COMM_SUM);
    return stream_sync(s, err);
}

static int leave(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    return run_staged(r, c, s, leaves, err);
}

static void test_an_abort_fails_the_stream(void **state)
{
    (void)state;
    struct rank ranks[2] = {0};
    size_t bytes = COMM_STAGE_BYTES;
    ranks[0].arg = ranks[1].arg = &bytes;
    ranks_run(ranks, 2, TIMEOUT_MS, leave);
    assert_fails(ranks[0].result, &ranks[0].err, ERR_PEER, "pulled the plug");
    assert_fails(ranks[1].result, &ranks[1].err, ERR_PEER, "rank 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_collective_at_every_size),
        cmocka_unit_test(test_sums_have_the_bits_of_the_ring),
        cmocka_unit_test(test_an_abort_fails_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
