/* The residual stream without passes of its own: the sum at a block's end is made by the next norm,
 * and its gradient is not copied. A net of blocks against the same net with additions and copies
 * apart: the same bits, forward and backward, fewer ops, and no more memory. */
#include "agent/nn/nn.h"
#include "kernels/ops.h"
#include "kernels/random.h"
#include "kernels/trace.h"
#include "tests/agent/taped.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, D = 8, BLOCKS = 3, MOST_PARAMS = 64, MOST_EVENTS = 4096 };

struct net;
struct block {
    struct net *net;
    uint64_t number;
    struct module *first, *second, *attention, *up, *down, *dropout;
};

struct net {
    struct taped *f;
    struct tape *tape;
    enum dtype dtype;
    bool apart, layer_norm;
    struct module *root, *x, *norm;
    struct block blocks[BLOCKS];
    struct param *params[MOST_PARAMS];
    int param_count;
    int32_t target[ROWS];
};

/* What a run gives. */
struct result {
    double sums[3];
    float *gradients; /* of all parameters */
    int64_t count;    /* of them */
    int adds, copies; /* ops */
    int64_t peak_bytes, host_bytes;
};

/* ---- the sum in passes of its own ---- */

static void apart_backward(struct tape *tape, struct tape_op *op)
{
    struct tensor *x = op->inputs[0], *y = op->output;
    const struct ops *ops = device_ops(stream_device(tape_stream(tape)));
    bool add;
    void *dx = tape_gradient_in_place(tape, x, &add);
    assert_true(dx && !add);
    ops->cast(tape_stream(tape), x->dtype, dx, y->dtype, y->gradient, x->count);
}

static struct tensor *add_apart(struct tape *tape, struct tensor *x, struct tensor *y)
{
    const struct ops *ops = device_ops(stream_device(tape_stream(tape)));
    ops->add(tape_stream(tape), y->dtype, y->data, x->dtype, x->data, y->count);
    tape_record(tape, &(struct tape_op){.backward = apart_backward, .output = y, .inputs = {x}});
    return y;
}

/* ---- the net ---- */

static struct tensor *norm(const struct net *net, struct module *m, struct tensor *x)
{
    return net->layer_norm ? nn_layer_norm(net->tape, m, x, 1e-5f)
                           : nn_rms_norm(net->tape, m, x, 1e-5f);
}

/* Of x + y, which is *ret_sum. */
static struct tensor *add_norm(const struct net *net, struct module *m, struct tensor *x,
                               struct tensor *y, struct tensor **ret_sum)
{
    if (!net->apart)
        return net->layer_norm ? nn_add_layer_norm(net->tape, m, x, y, ret_sum, 1e-5f)
                               : nn_add_rms_norm(net->tape, m, x, y, ret_sum, 1e-5f);
    *ret_sum = add_apart(net->tape, x, y);
    return norm(net, m, tape_retain(*ret_sum));
}

static struct tensor *run_block(struct tape *tape, const void *args,
                                struct tensor *const inputs[TAPE_MAX_INPUTS])
{
    const struct block *b = *(const struct block *const *)args;
    const struct net *net = b->net;
    struct tensor *x = inputs[0];
    struct tensor *y = norm(net, b->first, tape_retain(x));
    y = nn_linear(tape, b->attention, y, false);
    y = nn_dropout(tape, b->dropout, y, 2 * b->number);
    y = add_norm(net, b->second, x, y, &x);
    y = nn_gelu(tape, nn_linear(tape, b->up, y, false), true);
    y = nn_linear(tape, b->down, y, false);
    y = nn_dropout(tape, b->dropout, y, 2 * b->number + 1);
    return net->apart ? add_apart(tape, x, y) : nn_add_later(tape, x, y);
}

static void source_backward(struct tape *tape, struct tape_op *op)
{
    bool add;
    float *gradient = tape_param_gradient(op->module->params[0], &add);
    device_ops(stream_device(tape_stream(tape)))
        ->cast(tape_stream(tape), DTYPE_F32, gradient, op->output->dtype, op->output->gradient,
               op->output->count);
}

static struct tensor *source(struct tape *tape, struct module *m)
{
    const struct param *p = m->params[0];
    struct tensor *x = tape_tensor(tape, p->dims, p->shape, "x");
    assert_non_null(x);
    stream_copy(tape_stream(tape), x->data, p->value, (size_t)p->count * dtype_bytes(x->dtype));
    tape_record(tape, &(struct tape_op){.backward = source_backward, .module = m, .output = x});
    return x;
}

static struct module *new_norm(const struct net *net, const char *name, uint64_t *index)
{
    struct arena *arena = net->f->arena;
    return net->layer_norm
               ? nn_layer_norm_new(arena, net->root, name, index, D, 1e-5)
               : nn_rms_norm_new(arena, net->root, name, "LlamaRMSNorm", index, D, 1e-5);
}

static void declare(struct net *net, float dropout)
{
    struct arena *arena = net->f->arena;
    uint64_t index = 0;
    net->root = module_new(arena, "", "Net", NULL);
    net->x = nn_linear_normal_new(arena, net->root, "x", &index, D, ROWS, false, 1);
    for (int i = 0; i < BLOCKS; i++) {
        struct block *b = &net->blocks[i];
        *b = (struct block){.net = net, .number = (uint64_t)i};
        b->first = new_norm(net, "first", &index);
        b->second = new_norm(net, "second", &index);
        b->attention = nn_linear_new(arena, net->root, "attention", &index, D, D);
        b->up = nn_linear_new(arena, net->root, "up", &index, D, 4 * D);
        b->down = nn_linear_new(arena, net->root, "down", &index, 4 * D, D);
        b->dropout = nn_dropout_new(arena, net->root, "dropout", dropout);
    }
    net->norm = new_norm(net, "norm", &index);
    for (int i = 0; i < ROWS; i++)
        net->target[i] = i % D;
}

/* Values between -1 and 1, and memory for gradients. */
static void bind(struct net *net)
{
    for (int c = 0; c < net->root->child_count; c++) {
        const struct module *m = net->root->children[c];
        for (int i = 0; i < m->param_count; i++) {
            struct param *p = m->params[i];
            char *value = arena_alloc(net->f->arena, (size_t)p->count * dtype_bytes(net->dtype));
            for (int64_t k = 0; k < p->count; k++) {
                float v = 2 * random_uniform(p->index + 1, (uint64_t)k) - 1;
                if (net->dtype == DTYPE_F32)
                    ((float *)(void *)value)[k] = v;
                else
                    ((bf16 *)(void *)value)[k] = bf16_from_float(v);
            }
            p->value = value;
            p->gradient = arena_array(net->f->arena, float, p->count);
            assert_true(net->param_count < MOST_PARAMS);
            net->params[net->param_count++] = p;
        }
    }
}

static void count_op(void *ctx, const struct trace_event *event)
{
    struct result *r = ctx;
    r->adds += event->kind == TRACE_OP && strcmp(event->range.what, "add") == 0;
    r->copies += event->kind == TRACE_OP && strcmp(event->range.what, "cast") == 0;
}

/* ---- a pass ---- */

struct setting {
    enum dtype dtype;
    enum tape_checkpointing checkpointing;
    bool offload, layer_norm;
    float dropout;
};

static void forward(struct net *net, double *sums)
{
    struct tensor *x = source(net->tape, net->x);
    for (int i = 0; i < BLOCKS; i++) {
        const struct block *b = &net->blocks[i];
        x = tape_segment(net->tape, run_block, &b, sizeof b, (struct tensor *[TAPE_MAX_INPUTS]){x});
    }
    nn_cross_entropy(net->tape, norm(net, net->norm, x), net->target, 0.5f, sums);
}

static void keep_gradients(const struct net *net, struct result *r)
{
    r->count = 0;
    for (int i = 0; i < net->param_count; i++)
        r->count += net->params[i]->count;
    float *next = r->gradients = arena_array(net->f->arena, float, r->count);
    for (int i = 0; i < net->param_count; i++) {
        assert_true(net->params[i]->gradient_written);
        memcpy(next, net->params[i]->gradient, (size_t)net->params[i]->count * sizeof(float));
        next += net->params[i]->count;
    }
}

static struct result run(struct taped *f, const struct setting *s, bool training, bool apart)
{
    struct net net = {
        .f = f, .dtype = s->dtype, .apart = apart, .layer_norm = s->layer_norm, .root = NULL};
    struct result r = {0};
    struct device *host = NULL;
    struct memory_use use;
    struct error err;
    declare(&net, s->dropout);
    bind(&net);
    if (s->offload)
        assert_ok(device_open_host(f->device, 1, &host, &err), &err);
    assert_ok(tape_open(f->stream, s->dtype, NULL, &net.tape, &err), &err);
    assert_ok(tape_save_memory(net.tape, s->checkpointing, host, 1, &err), &err);
    device_memory_reset_peak(f->device);
    assert_true(device_trace_begin(f->device, MOST_EVENTS, false, &err));
    tape_begin(net.tape, &(struct tape_pass){.training = training, .seed = 3, .row_stride = 1});
    forward(&net, r.sums);
    assert_ok(training ? tape_backward(net.tape, &err) : tape_finish(net.tape, &err), &err);
    assert_ok(stream_sync(f->stream, &err), &err);
    assert_int_equal(device_trace_end(f->device, count_op, &r), 0);
    device_memory_use(f->device, &use);
    r.peak_bytes = use.peak_total_bytes;
    if (training)
        keep_gradients(&net, &r);
    if (host) {
        device_memory_use(host, &use);
        r.host_bytes = use.peak_total_bytes;
    }
    tape_close(net.tape);
    device_close(host);
    return r;
}

/* ---- tests ---- */

static void check_training(struct taped *f, const struct setting *s)
{
    struct result with = run(f, s, true, false), apart = run(f, s, true, true);
    assert_true(with.sums[0] > 0);
    assert_memory_equal(with.sums, apart.sums, sizeof with.sums);
    assert_int_equal(with.count, apart.count);
    assert_memory_equal(with.gradients, apart.gradients, (size_t)with.count * sizeof(float));
    /* Forward's sums, which a block that runs again makes once more; and a copy of each gradient.
     * What is left is source_backward(). */
    int sums = 2 * BLOCKS;
    int again = s->checkpointing == TAPE_CHECKPOINTING_FULL ? sums : 0;
    assert_int_equal(apart.adds, sums + again);
    assert_int_equal(with.adds, 0);
    assert_int_equal(apart.copies, sums + 1);
    assert_int_equal(with.copies, 1);
    assert_true(with.peak_bytes <= apart.peak_bytes);
    assert_int_equal(with.host_bytes, apart.host_bytes);
    assert_true(s->offload == (with.host_bytes > 0));
}

static void training_has_the_bits_of_sums_apart(void **state)
{
    static const enum tape_checkpointing kinds[] = {
        TAPE_CHECKPOINTING_NONE, TAPE_CHECKPOINTING_SELECTIVE, TAPE_CHECKPOINTING_FULL};
    enum { BF16 = 1, LAYER_NORM = 2, OFFLOAD = 4, DROPOUT = 8, ALL = 16 };
    for (size_t k = 0; k < array_length(kinds); k++) {
        for (int bits = 0; bits < ALL; bits++) {
            const struct setting s = {
                .dtype = bits & BF16 ? DTYPE_BF16 : DTYPE_F32,
                .checkpointing = kinds[k],
                .offload = bits & OFFLOAD,
                .layer_norm = bits & LAYER_NORM,
                .dropout = bits & DROPOUT ? 0.25f : 0,
            };
            check_training(*state, &s);
        }
    }
}

static void evaluation_has_the_bits_of_sums_apart(void **state)
{
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16};
    for (size_t i = 0; i < array_length(dtypes); i++) {
        const struct setting s = {.dtype = dtypes[i]};
        struct result with = run(*state, &s, false, false), apart = run(*state, &s, false, true);
        assert_memory_equal(with.sums, apart.sums, sizeof with.sums);
        assert_int_equal(apart.adds, 2 * BLOCKS);
        assert_int_equal(with.adds, 0);
    }
}

/* Whatever allocation fails: nothing stays, of sums that were never made either. */
static void running_out_of_memory_leaves_nothing(void **state)
{
    struct taped *f = *state;
    const struct setting s = {.dtype = DTYPE_F32, .dropout = 0.25f};
    int64_t most = run(f, &s, true, false).peak_bytes;
    int failures = 0;
    for (int64_t limit = 64; limit < most; limit += 64) {
        struct net net = {.f = f, .dtype = s.dtype, .root = NULL};
        struct memory_use use;
        struct error err;
        double sums[3] = {0};
        declare(&net, s.dropout);
        bind(&net);
        assert_ok(tape_open(f->stream, s.dtype, NULL, &net.tape, &err), &err);
        tape_begin(net.tape, &(struct tape_pass){.training = true, .seed = 3, .row_stride = 1});
        struct tensor *x = source(net.tape, net.x);
        device_memory_set_limit(f->device, limit + ROWS * D * (int64_t)sizeof(float));
        for (int i = 0; i < BLOCKS; i++) {
            const struct block *b = &net.blocks[i];
            x = tape_segment(net.tape, run_block, &b, sizeof b,
                             (struct tensor *[TAPE_MAX_INPUTS]){x});
        }
        nn_cross_entropy(net.tape, norm(&net, net.norm, x), net.target, 0.5f, sums);
        failures += tape_backward(net.tape, &err) < 0;
        assert_ok(stream_sync(f->stream, &err), &err); /* what is queued reads this net */
        device_memory_set_limit(f->device, 0);
        device_memory_use(f->device, &use);
        assert_int_equal(use.current_total_bytes, 0);
        tape_close(net.tape);
    }
    assert_true(failures > 10);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, taped_setup, taped_teardown)
    const struct CMUnitTest tests[] = {
        ROW(training_has_the_bits_of_sums_apart),
        ROW(evaluation_has_the_bits_of_sums_apart),
        ROW(running_out_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
