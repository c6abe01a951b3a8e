/* Micro-batches arrive as they were made ready, on the device under test (support_device()),
 * however late its streams run: each wait between them is needed
 * (tests/emulation/test_barriers.sh). */
#include "agent/batches/prefetcher.h"

#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

enum {
    BYTES = 100, /* of a micro-batch: no multiple of anything */
    MOST = 3,
    MAX_STEPS = 8,
    MAX_TAKEN = MAX_STEPS * MOST,
};

struct fixture {
    struct device *device;
    struct stream *compute;
    struct prefetcher *prefetcher;
    unsigned char *seen; /* device [MAX_TAKEN, BYTES]: what compute found */
    int made, taken;     /* micro-batches so far */
};

static int setup(void **state)
{
    static struct fixture f;
    struct error err;
    void *seen;
    f = (struct fixture){0};
    assert_ok(device_open(support_device(), 1, &f.device, &err), &err);
    assert_ok(stream_open(f.device, "compute", &f.compute, &err), &err);
    assert_ok(prefetcher_open(f.compute, BYTES, MOST, "rows", &f.prefetcher, &err), &err);
    assert_ok(device_alloc(f.device, MEMORY_INPUT, (size_t)MAX_TAKEN * BYTES, "seen", &seen, &err),
              &err);
    f.seen = seen;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    prefetcher_close(f->prefetcher);
    device_free(f->device, f->seen);
    stream_close(f->compute);
    device_close(f->device);
    return 0;
}

/* Every micro-batch is full of its own number, from 1 on. */
static void make_ready(struct fixture *f, int count)
{
    for (int i = 0; i < count; i++)
        memset(prefetcher_next(f->prefetcher, i), ++f->made, BYTES);
    prefetcher_filled(f->prefetcher, count);
}

static void read_one(struct fixture *f, int i)
{
    stream_copy(f->compute, f->seen + (size_t)f->taken++ * BYTES, prefetcher_take(f->prefetcher, i),
                BYTES);
}

static void sync(struct fixture *f)
{
    struct error err;
    assert_ok(stream_sync(f->compute, &err), &err);
}

/* The first `count` that were taken have the numbers from `first` on. */
static void assert_seen(struct fixture *f, int first, int count)
{
    unsigned char found[MAX_TAKEN * BYTES], expected[BYTES];
    stream_copy(f->compute, found, f->seen, (size_t)count * BYTES);
    sync(f);
    for (int i = 0; i < count; i++) {
        memset(expected, first + i, BYTES);
        assert_memory_equal(found + (size_t)i * BYTES, expected, BYTES);
    }
}

static void test_steps(void **state)
{
    static const struct {
        int steps, counts[MAX_STEPS];
        bool ahead; /* of the step, as training does; else when it begins */
    } rows[] = {
        {8, {1, 1, 1, 1, 1, 1, 1, 1}, true},
        {8, {3, 3, 3, 3, 3, 3, 3, 3}, true},
        {8, {2, 3, 1, 2, 1, 3, 3, 1}, true},
        {8, {2, 3, 1, 2, 1, 3, 3, 1}, false},
        {4, {3, 0, 2, 0}, true},
    };
    for (size_t r = 0; r < array_length(rows); r++) {
        struct fixture *f = *state;
        for (int step = 0; step < rows[r].steps; step++) {
            if (step == 0 || !rows[r].ahead)
                make_ready(f, rows[r].counts[step]);
            int set = prefetcher_next_set(f->prefetcher);
            prefetcher_swap(f->prefetcher);
            assert_int_equal(prefetcher_set(f->prefetcher), set);
            for (int i = 0; i < rows[r].counts[step]; i++)
                read_one(f, i);
            if (step + 1 < rows[r].steps && rows[r].ahead)
                make_ready(f, rows[r].counts[step + 1]);
            sync(f);
        }
        assert_seen(f, 1, f->made);
        teardown(state);
        setup(state);
    }
}

/* What was fetched ahead is not wanted, whether it was on its way or waited for its turn. */
static void test_reset(void **state)
{
    struct fixture *f = *state;
    make_ready(f, 2);
    prefetcher_swap(f->prefetcher);
    read_one(f, 0);
    read_one(f, 1);
    make_ready(f, 3);
    prefetcher_reset(f->prefetcher);
    sync(f);
    f->made = 2;
    make_ready(f, 2);
    prefetcher_swap(f->prefetcher);
    prefetcher_reset(f->prefetcher);
    f->made = 2;
    for (int step = 0; step < 3; step++) {
        make_ready(f, 2);
        prefetcher_swap(f->prefetcher);
        read_one(f, 0);
        read_one(f, 1);
        sync(f);
    }
    assert_seen(f, 1, 8);
}

/* It may be closed with one on its way; and a device without room says for what. */
static void test_ends(void **state)
{
    struct fixture *f = *state;
    struct prefetcher *prefetcher = NULL;
    struct error err;
    make_ready(f, 1);
    device_memory_set_limit(f->device, MAX_TAKEN * BYTES + 3 * BYTES);
    assert_fails(prefetcher_open(f->compute, BYTES, MOST, "columns", &prefetcher, &err), &err,
                 ERR_MEMORY, "columns");
    prefetcher_close(prefetcher);
}

int main(void)
{
#define ON_DEVICE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {ON_DEVICE(test_steps), ON_DEVICE(test_reset),
                                       ON_DEVICE(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
