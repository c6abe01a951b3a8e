#include "agent/nn/tape.h"
#include "base/mem.h"
#include "base/str.h"
#include "kernels/ops.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

/* Ops of our own: y = 2 x, whose backward reads nothing, and a sum that starts backward with 1. */

struct fixture {
    struct device *device;
    struct stream *stream;
    struct tape *tape;
    struct arena *arena;
    struct str
        calls; /* hooks write here: "+f NAME" before forward, "-b NAME" after backward, ... */
    const char *fail;  /* the call that fails */
    float gradient[4]; /* of nested_pass()'s source */
};

static int note(void *ctx, const char *call, struct module *m, struct error *err)
{
    struct fixture *f = ctx;
    str_printf(&f->calls, " %s%s", call, m->name);
    const char *text = str_text(&f->calls);
    if (f->fail && strcmp(text + strlen(text) - strlen(f->fail), f->fail) == 0)
        return error_set(err, ERR_PEER, "hook %s failed", f->fail);
    return 0;
}

static int before_forward(void *ctx, struct module *m, struct error *err)
{
    return note(ctx, "+f:", m, err);
}
static int after_forward(void *ctx, struct module *m, struct error *err)
{
    return note(ctx, "-f:", m, err);
}
static int before_backward(void *ctx, struct module *m, struct error *err)
{
    return note(ctx, "+b:", m, err);
}
static int after_backward(void *ctx, struct module *m, struct error *err)
{
    return note(ctx, "-b:", m, err);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    struct error err;
    struct tape_hooks hooks = {f, before_forward, after_forward, before_backward, after_backward};
    f->arena = arena_open();
    str_init(&f->calls, 4096);
    assert_ok(device_open("cpu", 1, &f->device, &err), &err);
    assert_ok(stream_open(f->device, "compute", &f->stream, &err), &err);
    assert_ok(tape_open(f->stream, DTYPE_F32, &hooks, &f->tape, &err), &err);
    *state = f;
    return 0;
}

static int64_t bytes_in_use(struct fixture *f)
{
    struct memory_use use;
    device_memory_use(f->device, &use);
    return use.current_total_bytes;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(bytes_in_use(f), 0);
    tape_close(f->tape);
    stream_close(f->stream);
    device_close(f->device);
    arena_close(f->arena);
    str_free(&f->calls);
    free(f);
    return 0;
}

static void twice_backward(struct tape *tape, struct tape_op *op)
{
    const float *dy = op->output->gradient;
    float *dx = tape_steal_gradient(tape, op->output);
    const struct ops *ops = device_ops(stream_device(tape_stream(tape)));
    if (dx != dy)
        stream_copy(tape_stream(tape), dx, dy, (size_t)op->output->count * sizeof(float));
    ops->scale(tape_stream(tape), DTYPE_F32, dx, 2, op->output->count);
    tape_accumulate_gradient(tape, op->inputs[0], dx);
}

static struct tensor *twice(struct tape *tape, struct tensor *x, bool reads_inputs)
{
    if (tape_failed(tape)) {
        tape_release(tape, x);
        return NULL;
    }
    struct tensor *y = tape_tensor(tape, x->dims, x->shape, "twice");
    if (y) {
        stream_copy(tape_stream(tape), y->data, x->data, (size_t)x->count * sizeof(float));
        device_ops(stream_device(tape_stream(tape)))
            ->scale(tape_stream(tape), y->dtype, y->data, 2, x->count);
    }
    tape_record(tape, &(struct tape_op){.backward = twice_backward,
                                        .output = y,
                                        .inputs = {x},
                                        .reads_inputs = reads_inputs});
    return y;
}

/* Backward leaves the gradient of the pass's first activation here. */
struct probe {
    float *into;
};

static void probe_backward(struct tape *tape, struct tape_op *op)
{
    struct probe probe;
    memcpy(&probe, op->args, sizeof probe);
    stream_copy(tape_stream(tape), probe.into, op->output->gradient,
                (size_t)op->output->count * sizeof(float));
}

static struct tensor *source(struct tape *tape, float *into)
{
    struct tensor *y = tape_tensor(tape, 1, (int64_t[]){4}, "source");
    struct probe probe = {into};
    struct tape_op op = {.backward = probe_backward, .output = y};
    memcpy(op.args, &probe, sizeof probe);
    if (y)
        tape_record(tape, &op);
    return y;
}

static void loss_backward(struct tape *tape, struct tape_op *op)
{
    float *gradient = tape_gradient(tape, op->inputs[0]);
    if (gradient)
        device_ops(stream_device(tape_stream(tape)))->fill(tape_stream(tape), gradient, 1, 4);
    tape_accumulate_gradient(tape, op->inputs[0], gradient);
}

static void loss(struct tape *tape, struct tensor *x)
{
    if (x)
        tape_record(tape, &(struct tape_op){
                              .backward = loss_backward, .inputs = {x}, .reads_inputs = true});
}

static void gradients_of_all_uses_add_up(void **state)
{
    struct fixture *f = *state;
    struct error err;
    float gradient[4] = {0};
    tape_begin(f->tape, &(struct tape_pass){.training = true});
    struct tensor *x = source(f->tape, gradient);
    loss(f->tape, twice(f->tape, twice(f->tape, tape_retain(x), false), true)); /* 4 */
    loss(f->tape, tape_retain(x));                                              /* 1 */
    loss(f->tape, twice(f->tape, x, true));                                     /* 2 */
    assert_ok(tape_backward(f->tape, &err), &err);
    assert_ok(stream_sync(f->stream, &err), &err);
    for (int i = 0; i < 4; i++)
        assert_true(gradient[i] == 7);
}

static void sum_backward(struct tape *tape, struct tape_op *op)
{
    tape_share_gradient(tape, op->inputs[0], op->output);
}

/* x + y, of which only the gradients are of interest, in y's memory. */
static struct tensor *sum(struct tape *tape, struct tensor *x, struct tensor *y)
{
    tape_record(tape, &(struct tape_op){.backward = sum_backward, .output = y, .inputs = {x}});
    return y;
}

/* Whoever of a sum's two tensors is first to write its gradient leaves the other's as it is. */
static void shared_gradients_are_written_apart(void **state)
{
    struct fixture *f = *state;
    struct error err;
    float a[4] = {0}, b[4] = {0}, c[4] = {0};
    enum { STEALS, ADDS, HAS_ONE, TWO_SUMS, CASES };
    static const float want[CASES][3] = {{2, 2, 0}, {2, 2, 0}, {2, 2, 0}, {2, 1, 1}};
    for (int i = 0; i < CASES; i++) {
        memset(c, 0, sizeof c);
        tape_begin(f->tape, &(struct tape_pass){.training = true});
        struct tensor *z = i == TWO_SUMS ? source(f->tape, c) : NULL;
        struct tensor *y = twice(f->tape, source(f->tape, a), false), *x = source(f->tape, b);
        if (i == STEALS)
            x = twice(f->tape, x, false);
        if (i == ADDS)
            loss(f->tape, tape_retain(x));
        y = sum(f->tape, i == HAS_ONE ? tape_retain(x) : x, y);
        if (i == HAS_ONE)
            loss(f->tape, x);
        if (i == TWO_SUMS)
            y = sum(f->tape, z, y);
        loss(f->tape, y);
        assert_ok(tape_backward(f->tape, &err), &err);
        assert_ok(stream_sync(f->stream, &err), &err);
        for (int k = 0; k < 4; k++)
            assert_true(a[k] == want[i][0] && b[k] == want[i][1] && c[k] == want[i][2]);
    }
}

static void what_no_loss_depends_on_gets_no_gradient(void **state)
{
    struct fixture *f = *state;
    struct error err;
    float gradient[4] = {-1, -1, -1, -1}, input[4] = {0};
    tape_begin(f->tape, &(struct tape_pass){.training = true});
    tape_release(f->tape, twice(f->tape, source(f->tape, gradient), true));
    loss(f->tape, twice(f->tape, tape_input(f->tape, input, 1, (int64_t[]){4}), true));
    assert_ok(tape_backward(f->tape, &err), &err);
    assert_ok(stream_sync(f->stream, &err), &err);
    assert_true(gradient[0] == -1);
}

/* 16 bytes each: values live while the model or a backward reads them. */
static void values_live_as_long_as_they_are_read(void **state)
{
    struct fixture *f = *state;
    static const struct {
        bool training, reads_inputs;
        int64_t bytes; /* in use after three ops on a source */
    } rows[] = {{true, false, 16}, {true, true, 64}, {false, true, 16}, {false, false, 16}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error err;
        float gradient[4];
        tape_begin(f->tape, &(struct tape_pass){.training = rows[i].training});
        struct tensor *x = source(f->tape, gradient);
        for (int k = 0; k < 3; k++)
            x = twice(f->tape, x, rows[i].reads_inputs);
        assert_int_equal(bytes_in_use(f), rows[i].bytes);
        tape_release(f->tape, x);
        assert_ok(tape_finish(f->tape, &err), &err);
        assert_int_equal(bytes_in_use(f), 0);
    }
}

/* root { a, b { c } } */
static void nested_pass(struct fixture *f, bool training)
{
    struct module *names[4];
    static const char *const texts[] = {"root", "a", "b", "c"};
    for (int i = 0; i < 4; i++)
        names[i] = module_new(f->arena, texts[i], "Module", NULL);
    tape_begin(f->tape, &(struct tape_pass){.training = training});
    tape_enter(f->tape, names[0]);
    tape_enter(f->tape, names[1]);
    struct tensor *x = twice(f->tape, source(f->tape, f->gradient), true);
    tape_leave(f->tape, names[1]);
    tape_enter(f->tape, names[2]);
    tape_enter(f->tape, names[3]);
    x = twice(f->tape, x, true);
    tape_leave(f->tape, names[3]);
    tape_leave(f->tape, names[2]);
    loss(f->tape, x);
    tape_leave(f->tape, names[0]);
}

#define FORWARD " +f:root +f:a -f:a +f:b +f:c -f:c -f:b -f:root"

static void backward_meets_the_modules_in_reverse(void **state)
{
    struct fixture *f = *state;
    struct error err;
    nested_pass(f, true);
    assert_ok(tape_backward(f->tape, &err), &err);
    assert_string_equal(str_text(&f->calls),
                        FORWARD " +b:root +b:b +b:c -b:c -b:b +b:a -b:a -b:root");
    str_clear(&f->calls);
    nested_pass(f, false);
    assert_ok(tape_finish(f->tape, &err), &err);
    assert_string_equal(str_text(&f->calls), FORWARD);
}

static void a_failed_hook_ends_the_pass(void **state)
{
    struct fixture *f = *state;
    static const char *const rows[] = {"+f:root", "-f:a", "+f:c",   "-f:root",
                                       "+b:root", "-b:c", "-b:root"};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error err;
        f->fail = rows[i];
        str_clear(&f->calls);
        nested_pass(f, true);
        assert_fails(tape_backward(f->tape, &err), &err, ERR_PEER, rows[i]);
        const char *text = str_text(&f->calls); /* nothing is called after it */
        assert_string_equal(text + strlen(text) - strlen(rows[i]), rows[i]);
        assert_int_equal(bytes_in_use(f), 0);
    }
    f->fail = NULL;
    struct error err;
    nested_pass(f, true); /* the next pass starts afresh */
    assert_ok(tape_backward(f->tape, &err), &err);
}

/* Whatever allocation fails: the tensor is named, nothing stays. */
static void running_out_of_memory_ends_the_pass(void **state)
{
    struct fixture *f = *state;
    static const struct {
        int64_t limit_bytes;
        const char *what;
    } rows[] = {{8, "source"}, {16, "twice"}, {40, "twice"}, {48, "gradient of twice"}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error err;
        device_memory_set_limit(f->device, rows[i].limit_bytes);
        nested_pass(f, true);
        assert_fails(tape_backward(f->tape, &err), &err, ERR_MEMORY, rows[i].what);
        assert_int_equal(bytes_in_use(f), 0);
    }
}

/* A table is copied once, and stays until the tape is closed. */
static void constants_are_copied_once(void **state)
{
    struct fixture *f = *state;
    static const float table[] = {1, 2, 3}, other[] = {4};
    struct tape *tape;
    struct error err;
    assert_ok(tape_open(f->stream, DTYPE_F32, NULL, &tape, &err), &err);
    const float *first = NULL;
    for (int pass = 0; pass < 2; pass++) {
        tape_begin(tape, &(struct tape_pass){.training = true});
        const float *copy = tape_constant(tape, table, sizeof table, "table");
        assert_ptr_equal(tape_constant(tape, table, sizeof table, "table"), copy);
        assert_ptr_not_equal(tape_constant(tape, other, sizeof other, "other"), copy);
        assert_true(pass == 0 || copy == first);
        first = copy;
        assert_ok(tape_backward(tape, &err), &err);
        assert_ok(stream_sync(f->stream, &err), &err);
        assert_memory_equal(copy, table, sizeof table);
    }
    assert_int_equal(bytes_in_use(f), sizeof table + sizeof other);
    tape_begin(tape, &(struct tape_pass){.training = true});
    tape_fail(tape, &err);
    assert_null(tape_constant(tape, table, sizeof table, "table"));
    assert_true(tape_finish(tape, &err) < 0);
    tape_close(tape);
    assert_int_equal(bytes_in_use(f), 0);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        ROW(gradients_of_all_uses_add_up),
        ROW(shared_gradients_are_written_apart),
        ROW(what_no_loss_depends_on_gets_no_gradient),
        ROW(values_live_as_long_as_they_are_read),
        ROW(backward_meets_the_modules_in_reverse),
        ROW(a_failed_hook_ends_the_pass),
        ROW(running_out_of_memory_ends_the_pass),
        ROW(constants_are_copied_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
