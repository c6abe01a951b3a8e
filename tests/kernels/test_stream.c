/* Streams and events: order, running ahead, waiting for each other, failures. */
#include "kernels/ops.h"
#include "tests/support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A gate that a closure waits at until the test opens it: shows who runs ahead without timing. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
};

#define GATE_CLOSED                                                                                \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false                                 \
    }

static void gate_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static int wait_at_gate(void *args, struct error *err)
{
    (void)err;
    struct gate *gate = *(struct gate **)args;
    pthread_mutex_lock(&gate->lock);
    while (!gate->open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return 0;
}

struct append {
    int *list, *length; /* plain memory: the streams must order its users */
    int value;
};

static int append(void *args, struct error *err)
{
    (void)err;
    struct append *a = args;
    a->list[(*a->length)++] = a->value;
    return 0;
}

static int fail_call(void *args, struct error *err)
{
    return error_set(err, ERR_PEER, "call %d failed", *(int *)args);
}

struct world {
    struct device *device;
    struct stream *a, *b;
};

static int setup(void **state)
{
    static struct world world;
    struct error err;
    assert_ok(device_open(support_device(), 1, &world.device, &err), &err);
    assert_ok(stream_open(world.device, "a", &world.a, &err), &err);
    assert_ok(stream_open(world.device, "b", &world.b, &err), &err);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    stream_close(world->a);
    stream_close(world->b);
    device_close(world->device);
    return 0;
}

static void test_unknown_device(void **state)
{
    (void)state;
    struct device *device;
    struct error err;
    assert_fails(device_open("abacus", 1, &device, &err), &err, ERR_UNSUPPORTED, "\"abacus\"");
}

/* The caller fills the queue while its first closure is stopped at a gate: nothing has run yet. */
static void test_caller_runs_ahead_in_order(void **state)
{
    struct world *world = *state;
    enum { CALLS = 1000 };
    static int list[CALLS];
    int length = 0;
    struct gate gate = GATE_CLOSED, *at = &gate;
    stream_call(world->a, wait_at_gate, &at, sizeof at);
    for (int i = 0; i < CALLS; i++) {
        struct append call = {list, &length, i};
        stream_call(world->a, append, &call, sizeof call);
    }
    assert_int_equal(length, 0);
    gate_open(&gate);
    struct error err;
    assert_ok(stream_sync(world->a, &err), &err);
    assert_int_equal(length, CALLS);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(list[i], i);
}

/* Many more closures than the queue holds: the caller waits for room and none is lost. */
static void test_full_queue(void **state)
{
    struct world *world = *state;
    enum { CALLS = 20000 };
    static int list[CALLS];
    int length = 0;
    for (int i = 0; i < CALLS; i++) {
        struct append call = {list, &length, i};
        stream_call(world->a, append, &call, sizeof call);
    }
    struct error err;
    assert_ok(stream_sync(world->a, &err), &err);
    assert_int_equal(length, CALLS);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(list[i], i);
}

/* Two streams append to one list in turns, ordered only by two events recorded again and again. */
static void test_events_order_two_streams(void **state)
{
    struct world *world = *state;
    enum { TURNS = 2000 };
    static int list[2 * TURNS];
    int length = 0;
    struct event *a_did, *b_did;
    struct error err;
    assert_ok(event_open(world->device, &a_did, &err), &err);
    assert_ok(event_open(world->device, &b_did, &err), &err);
    for (int i = 0; i < TURNS; i++) {
        struct append call = {list, &length, 2 * i};
        stream_wait(world->a, b_did); /* the first time: not recorded yet, does not wait */
        stream_call(world->a, append, &call, sizeof call);
        event_record(a_did, world->a);
        call.value++;
        stream_wait(world->b, a_did);
        stream_call(world->b, append, &call, sizeof call);
        event_record(b_did, world->b);
    }
    event_close(a_did); /* waits that are queued do not need it */
    event_close(b_did);
    assert_ok(stream_sync(world->b, &err), &err);
    assert_ok(stream_sync(world->a, &err), &err);
    assert_int_equal(length, 2 * TURNS);
    for (int i = 0; i < length; i++)
        assert_int_equal(list[i], i);
}

/* A wait is for the point recorded before it, not for what was queued or recorded later. */
static void test_wait_is_for_the_recorded_point(void **state)
{
    struct world *world = *state;
    struct gate gate = GATE_CLOSED, *at = &gate;
    struct event *event;
    struct error err;
    assert_ok(event_open(world->device, &event, &err), &err);
    event_record(event, world->a);
    stream_wait(world->b, event);
    stream_call(world->a, wait_at_gate, &at, sizeof at);
    event_record(event, world->a);
    assert_ok(stream_sync(world->b, &err), &err); /* else: waits for ever */
    gate_open(&gate);
    assert_ok(stream_sync(world->a, &err), &err);
    event_close(event);
}

static int open_gate(void *args, struct error *err)
{
    (void)err;
    gate_open(*(struct gate **)args);
    return 0;
}

/* A function may wait for one of another stream, as collectives do. */
static void test_calls_wait_for_each_other(void **state)
{
    struct world *world = *state;
    struct gate first = GATE_CLOSED, second = GATE_CLOSED, *at = &first, *other = &second;
    stream_call(world->a, wait_at_gate, &at, sizeof at);
    stream_call(world->a, open_gate, &other, sizeof other);
    stream_call(world->b, open_gate, &at, sizeof at);
    stream_call(world->b, wait_at_gate, &other, sizeof other);
    struct error err;
    assert_ok(stream_sync(world->a, &err), &err);
    assert_ok(stream_sync(world->b, &err), &err);
}

/* Who asks does not wait; of a stream that failed, all has passed. */
static void test_events_are_asked(void **state)
{
    struct world *world = *state;
    struct gate gate = GATE_CLOSED, *at = &gate;
    struct event *event;
    struct error err;
    assert_ok(event_open(world->device, &event, &err), &err);
    assert_true(event_query(event)); /* no record */
    stream_call(world->a, wait_at_gate, &at, sizeof at);
    event_record(event, world->a);
    assert_false(event_query(event));
    gate_open(&gate);
    assert_ok(stream_sync(world->a, &err), &err);
    assert_true(event_query(event));
    int one = 1;
    stream_call(world->a, fail_call, &one, sizeof one);
    event_record(event, world->a);
    assert_fails(stream_sync(world->a, &err), &err, ERR_PEER, "call 1 failed");
    assert_true(event_query(event));
    event_close(event);
}

static int is_well(void *ctx, struct error *err)
{
    return *(const bool *)ctx ? 0 : error_set(err, ERR_PEER, "a library failed");
}

/* The guard is asked when a stream is waited for; the stream's own failure comes first. */
static void test_guard(void **state)
{
    struct world *world = *state;
    struct error err;
    bool well = true;
    int one = 1;
    device_set_health_check(world->device, is_well, &well);
    assert_ok(stream_sync(world->a, &err), &err);
    well = false;
    assert_fails(stream_sync(world->a, &err), &err, ERR_PEER, "a library failed");
    stream_call(world->a, fail_call, &one, sizeof one);
    assert_fails(stream_sync(world->a, &err), &err, ERR_PEER, "call 1 failed");
    assert_fails(stream_sync(world->b, &err), &err, ERR_PEER, "a library failed");
    device_set_health_check(world->device, NULL, NULL);
    assert_ok(stream_sync(world->b, &err), &err);
}

static void test_first_failure_stays(void **state)
{
    struct world *world = *state;
    int list[1], length = 0;
    struct append late = {list, &length, 1};
    struct error err;
    for (int i = 1; i <= 2; i++)
        stream_call(world->a, fail_call, &i, sizeof i);
    stream_call(world->a, append, &late, sizeof late);
    for (int i = 0; i < 2; i++)
        assert_fails(stream_sync(world->a, &err), &err, ERR_PEER, "call 1 failed");
    stream_call(world->a, append, &late, sizeof late);
    assert_fails(stream_sync(world->a, &err), &err, ERR_PEER, "call 1 failed");
    assert_int_equal(length, 0); /* all later work was skipped */
    assert_ok(stream_sync(world->b, &err), &err);
}

/* A failure goes on to who waits for a point after it, and not to who waits for one before it. */
static void test_failure_crosses_events(void **state)
{
    struct world *world = *state;
    int list[2], length = 0, one = 1;
    struct append call = {list, &length, 1};
    struct event *before, *after;
    struct error err;
    assert_ok(event_open(world->device, &before, &err), &err);
    assert_ok(event_open(world->device, &after, &err), &err);
    event_record(before, world->a);
    stream_call(world->a, fail_call, &one, sizeof one);
    event_record(after, world->a);
    assert_fails(stream_sync(world->a, &err), &err, ERR_PEER, "call 1 failed");
    stream_wait(world->b, before);
    stream_call(world->b, append, &call, sizeof call);
    assert_ok(stream_sync(world->b, &err), &err);
    stream_wait(world->b, after);
    stream_call(world->b, append, &call, sizeof call);
    assert_fails(stream_sync(world->b, &err), &err, ERR_PEER, "call 1 failed");
    assert_int_equal(length, 1);
    event_close(before);
    event_close(after);
}

/* A stream may be closed while others still wait for it. */
static void test_close_while_waited_for(void **state)
{
    struct world *world = *state;
    struct gate gate = GATE_CLOSED, *at = &gate;
    struct stream *c;
    struct event *event;
    struct error err;
    assert_ok(stream_open(world->device, "c", &c, &err), &err);
    assert_ok(event_open(world->device, &event, &err), &err);
    stream_call(world->b, wait_at_gate, &at, sizeof at);
    event_record(event, c);
    stream_wait(world->b, event);
    stream_close(c);
    gate_open(&gate);
    assert_ok(stream_sync(world->b, &err), &err);
    event_close(event);
}

/* Memory freed while work on it is queued comes back at once and is used in stream order. */
static void test_memory_in_stream_order(void **state)
{
    struct world *world = *state;
    const struct ops *ops = device_ops(world->device);
    enum { COUNT = 1000, ROUNDS = 100 };
    static float host[ROUNDS][COUNT];
    struct gate gate = GATE_CLOSED, *at = &gate;
    struct error err;
    void *first = NULL;
    stream_call(world->a, wait_at_gate, &at, sizeof at);
    for (int i = 0; i < ROUNDS; i++) {
        void *memory;
        assert_ok(
            device_alloc(world->device, MEMORY_ACTIVATION, sizeof host[i], "x", &memory, &err),
            &err);
        first = first ? first : memory;
        assert_ptr_equal(memory, first);
        ops->fill(world->a, memory, (float)i, COUNT);
        stream_copy(world->a, host[i], memory, sizeof host[i]);
        device_free(world->device, memory);
    }
    gate_open(&gate);
    assert_ok(stream_sync(world->a, &err), &err);
    for (int i = 0; i < ROUNDS; i++)
        assert_true(host[i][0] == (float)i && host[i][COUNT - 1] == (float)i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_device),
        cmocka_unit_test_setup_teardown(test_caller_runs_ahead_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events_order_two_streams, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wait_is_for_the_recorded_point, setup, teardown),
        cmocka_unit_test_setup_teardown(test_calls_wait_for_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events_are_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_guard, setup, teardown),
        cmocka_unit_test_setup_teardown(test_first_failure_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failure_crosses_events, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_while_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_in_stream_order, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
