/* What the CUDA backend keeps of the order of streams, without a GPU. */
#include "kernels/cuda/stream_progress.h"

#include "tests/support.h"

#include <malloc.h>

enum { WAITS = 100000, MOST_BYTES = 100000 };

static bool end(struct stream_progress *p)
{
    struct error err;
    return stream_progress_end(p, &err);
}

/* A stream that nobody waits for, but that waits for one that is. How much memory is in use only
 * the system's allocator tells (variant debug), which sanitizers replace. */
static void test_waits_that_passed_are_forgotten(void **state)
{
    (void)state;
    struct error err;
    struct stream_progress *compute = stream_progress_open(), *staging = stream_progress_open();
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < WAITS; i++) {
        stream_progress_wait(staging, compute, stream_progress_step(compute));
        if (i % 8 == 7)
            assert_false(end(compute));
    }
    assert_true(mallinfo2().uordblks < before + MOST_BYTES);
    /* what has not passed is still waited for, however many have */
    uint64_t last = stream_progress_step(compute);
    stream_progress_wait(staging, compute, last);
    for (int i = 0; i < 100; i++)
        stream_progress_wait(staging, compute, 1);
    assert_false(stream_progress_has_failed(staging, UINT64_MAX));
    error_set(&err, ERR_PEER, "lost");
    stream_progress_fail(compute, last, &err);
    assert_true(end(staging));
    stream_progress_close(staging);
    stream_progress_close(compute);
}

static void test_failures_go_where_they_are_waited_for(void **state)
{
    (void)state;
    struct error err;
    struct stream_progress *a = stream_progress_open(), *b = stream_progress_open(),
                           *c = stream_progress_open();
    uint64_t well = stream_progress_step(a), ill = stream_progress_step(a);
    stream_progress_wait(c, a, well);
    error_set(&err, ERR_PEER, "lost");
    stream_progress_fail(a, ill, &err);
    assert_false(stream_progress_has_failed(c, UINT64_MAX));
    stream_progress_wait(b, a, ill); /* it failed before */
    assert_true(end(b));
    stream_progress_wait(c, b, 1);
    assert_true(end(c));
    stream_progress_close(a);
    stream_progress_close(b);
    stream_progress_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_that_passed_are_forgotten),
        cmocka_unit_test(test_failures_go_where_they_are_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
