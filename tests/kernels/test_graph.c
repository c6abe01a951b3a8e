/* Graphs: the same bits as without, whatever lies between the ops, and how often one is made. On a
 * device without graphs: that it says so. */
#include "kernels/random.h"
#include "tests/kernels/ops_fixture.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 6, MOST_ROWS = 12, IN = 600, OUT = 24, WEIGHTS = IN * OUT };

/* What a few steps of a tiny model leave behind. */
struct outcome {
    float w[WEIGHTS], z[STEPS][MOST_ROWS * OUT], seen[STEPS][MOST_ROWS * OUT];
    int64_t ns[STEPS];
    int calls;
};

struct training {
    struct world *world;
    struct graph *graph; /* NULL: without */
    struct stream *other;
    struct event *there, *back;
    float *x, *w, *g, *m, *v;
    float *y, *z; /* of the step */
    int64_t rows;
    int step;
    struct outcome *outcome;
};

struct situation {
    const char *name;
    void (*between)(struct training *t); /* the step's ops */
    int parts;                           /* graphs a step */
    int more;                            /* of a later step alone: parted by plans that are new, or
                                            of so few ops that it is not captured again */
    bool repeats;                        /* each step is of one form */
    int64_t rows[STEPS];
    bool accumulates[STEPS];
};

static void *alloc(struct world *world, size_t bytes)
{
    void *memory;
    struct error err;
    assert_ok(device_alloc(world->device, MEMORY_ACTIVATION, bytes, "graph", &memory, &err), &err);
    return memory;
}

/* ---- what lies between ops ---- */

static void nothing(struct training *t)
{
    (void)t;
}

static void look(struct training *t, struct stream *s)
{
    stream_copy(s, t->outcome->seen[t->step], t->z, (size_t)(t->rows * OUT) * sizeof(float));
}

static void copy(struct training *t)
{
    look(t, t->world->stream);
}

static void another_stream(struct training *t)
{
    event_record(t->there, t->world->stream);
    stream_wait(t->other, t->there);
    look(t, t->other);
    event_record(t->back, t->other);
    stream_wait(t->world->stream, t->back); /* z's memory is given back */
}

static int count_call(void *args, struct error *err)
{
    (void)err;
    ++**(int **)args;
    return 0;
}

static void call(struct training *t)
{
    int *calls = &t->outcome->calls;
    stream_call(t->world->stream, count_call, &calls, sizeof calls);
}

static void stamp(struct training *t)
{
    stream_timestamp(t->world->stream, &t->outcome->ns[t->step]);
}

static void wait_here(struct training *t)
{
    struct error err;
    assert_ok(stream_sync(t->world->stream, &err), &err);
}

static void native(struct training *t)
{
    stream_native(t->world->stream);
}

/* So that addresses change. */
static void take_memory(struct training *t)
{
    float *more = alloc(t->world, (size_t)(t->step + 1) * 1000);
    t->world->ops->fill(t->world->stream, more, 1, 10);
    t->world->ops->add(t->world->stream, DTYPE_F32, t->z, DTYPE_F32, more, 10);
    device_free(t->world->device, more);
}

static void several(struct training *t)
{
    copy(t);
    stamp(t);
    take_memory(t);
    another_stream(t);
}

#define ALL_ROWS                                                                                   \
    {                                                                                              \
        MOST_ROWS, MOST_ROWS, MOST_ROWS, MOST_ROWS, MOST_ROWS, MOST_ROWS                           \
    }
#define ONE_FORM .repeats = true, .rows = ALL_ROWS
static const struct situation situations[] = {
    {"ops alone", nothing, 1, ONE_FORM},
    {"a copy", copy, 2, ONE_FORM},
    {"another stream", another_stream, 2, ONE_FORM},
    {"a host function", call, 2, ONE_FORM},
    {"a stamp", stamp, 2, ONE_FORM},
    {"a wait of the host", wait_here, 2, ONE_FORM},
    {"work of others", native, 2, ONE_FORM},
    {"other addresses", take_memory, 1, ONE_FORM},
    {"several", several, 2, .more = 1, ONE_FORM},
    {"micro-batches", copy, 2, 0, false, ALL_ROWS, {false, true, false, true, false, true}},
    {"a short batch", nothing, 1, 2, false, {7, 7, 7, 7, 7, 3}, {false}},
    {"scratch that grows", nothing, 0, 0, false, {1, 1, 3, 5, 8, 12}, {false}},
};

/* ---- the steps ---- */

static void queue_step(struct training *t, bool accumulates, void (*between)(struct training *))
{
    struct stream *s = t->world->stream;
    const struct ops *ops = t->world->ops;
    const struct linear_shape shape = linear_dense(t->rows, IN, OUT);
    const struct adam_step adam = {
        0.01f * (float)(t->step + 1), 0.9f, 0.99f, 1e-8f, 0.1f, true, t->step + 1};
    ops->dropout(s, DTYPE_F32, t->y, t->x, t->rows, IN, 0.5f,
                 random_key(7, (uint64_t)t->step, 0, 0), 0, 1);
    ops->scale(s, DTYPE_F32, t->y, 2, t->rows * IN);
    ops->scale(s, DTYPE_F32, t->y, 0.5f, t->rows * IN);
    ops->linear_forward(s, DTYPE_F32, DTYPE_F32, t->z, t->y, t->w, NULL, false, &shape);
    ops->scale(s, DTYPE_F32, t->z, 0.25f, t->rows * OUT);
    between(t);
    ops->linear_backward_weights(s, DTYPE_F32, t->g, NULL, t->y, t->z, &shape, accumulates);
    ops->scale(s, DTYPE_F32, t->g, 2, WEIGHTS);
    ops->scale(s, DTYPE_F32, t->g, 0.75f, WEIGHTS);
    ops->scale(s, DTYPE_F32, t->g, 0.5f, WEIGHTS);
    ops->adam(s, DTYPE_F32, t->w, t->g, t->m, t->v, WEIGHTS, &adam, NULL, 0, 0);
}

static void run_step(struct training *t, const struct situation *in)
{
    struct world *world = t->world;
    size_t z_bytes = (size_t)(in->rows[t->step] * OUT) * sizeof(float);
    t->rows = in->rows[t->step];
    t->y = alloc(world, (size_t)(t->rows * IN) * sizeof(float));
    t->z = alloc(world, z_bytes);
    graph_begin(t->graph);
    queue_step(t, in->accumulates[t->step], in->between);
    graph_end(t->graph);
    stream_copy(world->stream, t->outcome->z[t->step], t->z, z_bytes);
    device_free(world->device, t->y);
    device_free(world->device, t->z);
}

static void run(struct world *world, struct graph *graph, const struct situation *in,
                struct outcome *outcome)
{
    struct error err;
    struct training t = {.world = world, .graph = graph, .outcome = outcome};
    float *zeros = host_zeros(world, WEIGHTS);
    world->next_key = 0;
    assert_ok(stream_open(world->device, "other", &t.other, &err), &err);
    assert_ok(event_open(world->device, &t.there, &err), &err);
    assert_ok(event_open(world->device, &t.back, &err), &err);
    t.x = to_device(world, host_random(world, MOST_ROWS * IN, -1, 1), MOST_ROWS * IN);
    t.w = to_device(world, host_random(world, WEIGHTS, -1, 1), WEIGHTS);
    t.g = to_device(world, zeros, WEIGHTS);
    t.m = to_device(world, zeros, WEIGHTS);
    t.v = to_device(world, zeros, WEIGHTS);
    for (t.step = 0; t.step < STEPS; t.step++)
        run_step(&t, in);
    memcpy(outcome->w, from_device(world, t.w, WEIGHTS), sizeof outcome->w);
    float *const rest[] = {t.x, t.g, t.m, t.v};
    for (size_t i = 0; i < array_length(rest); i++)
        device_free(world->device, rest[i]);
    assert_ok(stream_sync(t.other, &err), &err);
    stream_close(t.other);
    event_close(t.there);
    event_close(t.back);
}

/* NULL on a device that has none, and says so. */
static struct graph *open_graph(struct world *world)
{
    struct graph *graph = NULL;
    struct error err;
    int result = graph_open(world->stream, &graph, &err);
    if (device_is_host(world->device))
        assert_fails(result, &err, ERR_UNSUPPORTED, "the CPU has no graphs");
    else
        assert_ok(result, &err);
    return graph;
}

/* ---- tests ---- */

static void test_same_bits(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < array_length(situations); i++) {
        const struct situation *in = &situations[i];
        struct outcome *without = arena_new(world->arena, struct outcome);
        struct outcome *with = arena_new(world->arena, struct outcome);
        struct graph *graph = open_graph(world);
        run(world, graph, in, with); /* first: it meets the shapes */
        run(world, NULL, in, without);
        if (memcmp(with->w, without->w, sizeof with->w) ||
            memcmp(with->z, without->z, sizeof with->z) ||
            memcmp(with->seen, without->seen, sizeof with->seen) || with->calls != without->calls)
            fail_msg("%s: a graph changes what comes out", in->name);
        for (int step = 1; step < STEPS; step++)
            if (with->ns[step] < with->ns[step - 1])
                fail_msg("%s: the stamps are not in order", in->name);
        struct graph_use use = {0};
        if (graph)
            graph_get_use(graph, &use);
        /* the first step is not captured */
        if (graph && in->parts && use.launched != (STEPS - 1) * in->parts + in->more)
            fail_msg("%s: %d graphs launched", in->name, (int)use.launched);
        if (graph && in->repeats && use.made != in->parts + in->more)
            fail_msg("%s: %d graphs made", in->name, (int)use.made);
        graph_close(graph);
    }
}

/* A few forms are kept: as many as take turns are made once, more are made again and again. Too few
 * ops are captured once. */
static void test_forms(void **state)
{
    static const struct {
        int lengths[8], made, launched;
    } rows[] = {
        {{6, 6, 6, 6, 6, 6, 6, 6}, 1, 8}, {{6, 8, 6, 8, 6, 8, 6, 8}, 2, 8},
        {{4, 5, 6, 7, 7, 6, 5, 4}, 4, 8}, {{4, 5, 6, 7, 8, 9, 10, 11}, 8, 8},
        {{4, 5, 6, 7, 8, 4, 5, 6}, 8, 8}, /* what was used longest ago made room */
        {{0, 6, 0, 6, 0, 6, 0, 0}, 1, 3}, {{3, 3, 3, 3, 3, 3, 3, 3}, 1, 1},
        {{3, 1, 5, 3, 5, 3, 5, 3}, 2, 6}, /* it is longer than it seemed */
    };
    struct world *world = *state;
    float *y = to_device(world, host_zeros(world, 1), 1), sum = 0;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct graph *graph = open_graph(world);
        struct graph_use use = {.made = rows[i].made, .launched = rows[i].launched};
        const float one = 1;
        float *x = to_device(world, &one, 1);
        graph_begin(graph); /* the first is not captured */
        graph_end(graph);
        for (int step = 0; step < 8; step++) {
            graph_begin(graph);
            for (int n = 0; n < rows[i].lengths[step]; n++)
                world->ops->add(world->stream, DTYPE_F32, y, DTYPE_F32, x, 1);
            graph_end(graph);
            sum += (float)rows[i].lengths[step];
        }
        if (graph)
            graph_get_use(graph, &use);
        assert_int_equal(use.made, rows[i].made);
        assert_int_equal(use.launched, rows[i].launched);
        graph_close(graph);
        device_free(world->device, x);
    }
    assert_true(*from_device(world, y, 1) == sum);
}

/* Of the same length, but of other kinds: a memset where an add was, now and then or in turns. Both
 * are made once. */
static void test_other_kinds(void **state)
{
    enum { V = 3, MOST = 8 };
    static const int32_t ids[1] = {1};
    static const float ones[V] = {1, 1, 1};
    static const struct {
        int adds[MOST]; /* after each pass that writes y: [0, 1, 0] by a memset and a
                           kernel, twice */
        int made;
    } rows[] = {{{0, 4, 5, 6, 7, 8, 9, 10}, 8}, {{4, 4, 4, 4, 4, 4, 4, 4}, 2}};
    struct world *world = *state;
    struct error err;
    int32_t *at = to_device_bytes(world, ids, sizeof ids);
    float *x = to_device(world, ones, V), *y = to_device(world, ones, V);
    for (size_t row = 0; row < array_length(rows); row++) {
        struct graph *graph = open_graph(world);
        struct graph_use use = {.made = rows[row].made};
        float got[MOST][V];
        for (int n = -1; n < MOST; n++) { /* the first is not captured */
            graph_begin(graph);
            for (int i = 0; i < 2; i++)
                world->ops->embedding_backward(world->stream, DTYPE_F32, y, x, at, 1, V, 1, false);
            graph_end(graph);
            if (n < 0)
                continue;
            graph_begin(graph);
            for (int i = 0; i < rows[row].adds[n]; i++)
                world->ops->add(world->stream, DTYPE_F32, y, DTYPE_F32, x, V);
            graph_end(graph);
            stream_copy(world->stream, got[n], y, sizeof got[n]);
        }
        assert_ok(stream_sync(world->stream, &err), &err);
        for (int n = 0; n < MOST; n++) {
            float sum = (float)rows[row].adds[n];
            assert_true(got[n][0] == sum && got[n][1] == sum + 1 && got[n][2] == sum);
        }
        if (graph)
            graph_get_use(graph, &use);
        assert_int_equal(use.made, rows[row].made);
        graph_close(graph);
    }
    device_free(world->device, x);
    device_free(world->device, y);
    device_free(world->device, at);
}

/* Sets the emulation; returns what it was, for emulate() again. NULL: not set. */
static char *emulate(struct world *world, const char *setting)
{
    char *before = getenv("SHOAL_EMULATION");
    char *kept = before ? arena_strdup(world->arena, before) : NULL;
    if (setting)
        setenv("SHOAL_EMULATION", setting, 1);
    else
        unsetenv("SHOAL_EMULATION");
    return kept;
}

/* A request that finds memory only by giving back what is cached, of which a captured op still
 * reads a part: on the emulated GPU, which has 4 MiB here. */
static void test_memory_is_given_back(void **state)
{
    enum { COUNT = 300000, MORE = 400000 };
    struct world *world = *state;
    char *kept = emulate(world, "memory_mib=4");
    struct graph *graph = open_graph(world);
    float *sum = to_device(world, host_zeros(world, MORE), MORE);
    for (int i = 0; i < 2; i++) {
        graph_begin(graph);
        float *a = alloc(world, COUNT * sizeof *a);
        world->ops->fill(world->stream, a, (float)(i + 1), COUNT);
        world->ops->add(world->stream, DTYPE_F32, sum, DTYPE_F32, a, COUNT);
        device_free(world->device, a);
        float *b = alloc(world, MORE * sizeof *b);
        world->ops->fill(world->stream, b, 1, MORE);
        world->ops->add(world->stream, DTYPE_F32, sum, DTYPE_F32, b, MORE);
        graph_end(graph);
        device_free(world->device, b);
    }
    const float *got = from_device(world, sum, MORE);
    assert_true(got[0] == 5 && got[COUNT - 1] == 5 && got[COUNT] == 2 && got[MORE - 1] == 2);
    graph_close(graph);
    emulate(world, kept);
}

/* One that the GPU does not take fails the stream, and is none that was made or launched. */
static void test_refused(void **state)
{
    struct world *world = *state;
    if (!support_is_emulated()) /* no other refuses when asked to */
        return;
    struct stream *s;
    struct graph *graph;
    struct graph_use use;
    struct error err;
    float *y = alloc(world, sizeof *y);
    assert_ok(stream_open(world->device, "refused", &s, &err), &err);
    assert_ok(graph_open(s, &graph, &err), &err);
    graph_begin(graph); /* the first is not captured */
    graph_end(graph);
    char *kept = emulate(world, "no_more_graphs=1");
    graph_begin(graph);
    for (int i = 0; i < 6; i++)
        world->ops->fill(s, y, 1, 1);
    graph_end(graph);
    emulate(world, kept);
    assert_fails(stream_sync(s, &err), &err, ERR_MEMORY, "launch a graph of ops: out of memory");
    graph_get_use(graph, &use);
    assert_int_equal(use.made, 0);
    assert_int_equal(use.launched, 0);
    graph_close(graph);
    stream_close(s);
    device_free(world->device, y);
}

static int fail_call(void *args, struct error *err)
{
    return error_set(err, ERR_PEER, "call %d failed", *(int *)args);
}

/* What fails between begin and end, before, or after, comes out of the stream as it would
 * without. */
static void test_failures(void **state)
{
    struct world *world = *state;
    for (int where = 0; where < 3; where++) {
        struct stream *s;
        struct graph *graph = NULL;
        struct error err;
        float *y = alloc(world, sizeof *y);
        assert_ok(stream_open(world->device, "fails", &s, &err), &err);
        if (graph_open(s, &graph, &err) < 0)
            assert_true(device_is_host(world->device));
        for (int i = 0; i < 3; i++) {
            graph_begin(graph);
            world->ops->fill(s, y, 1, 1);
            if (i == where)
                stream_call(s, fail_call, &i, sizeof i);
            world->ops->fill(s, y, 2, 1);
            graph_end(graph);
        }
        assert_fails(stream_sync(s, &err), &err, ERR_PEER, "failed");
        graph_close(graph);
        assert_fails(stream_sync(s, &err), &err, ERR_PEER, "failed");
        stream_close(s);
        device_free(world->device, y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_bits, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_forms, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_other_kinds, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_given_back, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_refused, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_failures, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
