/* GPT-2's feed-forward as one layer: two products with a GELU between. Against the same three
 * layers apart on the CPU: the same bits, forward and backward, whatever is made again, and no more
 * memory. */
#include "agent/nn/nn.h"
#include "kernels/ops.h"
#include "kernels/random.h"
#include "tests/agent/taped.h"
#include "tests/support.h"

#include <string.h>

enum { ROWS = 5, D = 8, I = 32, BLOCKS = 2, MOST_PARAMS = 16 };

struct net;
struct block {
    struct net *net;
    struct module *norm, *up, *down;
};
struct net {
    struct arena *arena;
    struct tape *tape;
    bool apart, tanh;
    struct module *root, *x, *norm;
    struct block blocks[BLOCKS];
    struct param *params[MOST_PARAMS];
    int param_count;
    int32_t target[ROWS];
};

struct setting {
    enum dtype dtype;
    enum tape_checkpointing checkpointing;
    bool offload, tanh, nondeterministic;
};

struct result {
    double sums[3];
    float *gradients;
    int64_t count, peak_bytes;
};

/* ---- the net ---- */

static struct tensor *run_block(struct tape *tape, const void *args,
                                struct tensor *const inputs[TAPE_MAX_INPUTS])
{
    const struct block *b = *(const struct block *const *)args;
    struct tensor *y = nn_layer_norm(tape, b->norm, inputs[0], 1e-5f);
    if (!b->net->apart)
        return nn_conv1d_mlp(tape, b->up, b->down, y, b->net->tanh);
    y = nn_conv1d(tape, b->up, y);
    y = nn_gelu(tape, y, b->net->tanh);
    return nn_conv1d(tape, b->down, y);
}

/* A parameter's value as an activation that needs a gradient. */
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
    if (x)
        stream_copy(tape_stream(tape), x->data, p->value, (size_t)p->count * dtype_bytes(x->dtype));
    tape_record(tape, &(struct tape_op){.backward = source_backward, .module = m, .output = x});
    return x;
}

static void declare(struct net *net)
{
    uint64_t index = 0;
    net->root = module_new(net->arena, "", "Net", NULL);
    net->x = nn_linear_normal_new(net->arena, net->root, "x", &index, D, ROWS, false, 1);
    for (int i = 0; i < BLOCKS; i++) {
        struct block *b = &net->blocks[i];
        b->net = net;
        b->norm = nn_layer_norm_new(net->arena, net->root, "norm", &index, D, 1e-5);
        b->up = nn_conv1d_new(net->arena, net->root, "up", &index, D, I, 1);
        b->down = nn_conv1d_new(net->arena, net->root, "down", &index, I, D, 1);
    }
    net->norm = nn_layer_norm_new(net->arena, net->root, "norm", &index, D, 1e-5);
    for (int i = 0; i < ROWS; i++)
        net->target[i] = i % D;
}

static void bind_param(struct net *net, struct param *p, enum dtype t)
{
    float *values = arena_array(net->arena, float, p->count);
    bf16 *rounded = arena_array(net->arena, bf16, p->count);
    for (int64_t k = 0; k < p->count; k++) {
        values[k] = 2 * random_uniform(p->index + 1, (uint64_t)k) - 1;
        rounded[k] = bf16_from_float(values[k]);
    }
    p->value = t == DTYPE_F32 ? (void *)values : (void *)rounded;
    p->gradient = arena_array(net->arena, float, p->count);
    assert_true(net->param_count < MOST_PARAMS);
    net->params[net->param_count++] = p;
}

static void net_make(struct net *net, enum dtype t)
{
    declare(net);
    for (int c = 0; c < net->root->child_count; c++)
        for (int i = 0; i < net->root->children[c]->param_count; i++)
            bind_param(net, net->root->children[c]->params[i], t);
}

static void forward(struct net *net, double *sums)
{
    struct tensor *x = source(net->tape, net->x);
    for (int i = 0; i < BLOCKS; i++) {
        const struct block *b = &net->blocks[i];
        x = tape_segment(net->tape, run_block, &b, sizeof b, (struct tensor *[TAPE_MAX_INPUTS]){x});
    }
    x = nn_layer_norm(net->tape, net->norm, x, 1e-5f);
    nn_cross_entropy(net->tape, x, net->target, 0.5f, sums);
}

/* ---- a pass ---- */

static void keep_gradients(const struct net *net, struct result *r)
{
    for (int i = 0; i < net->param_count; i++)
        r->count += net->params[i]->count;
    float *next = r->gradients = arena_array(net->arena, float, r->count);
    for (int i = 0; i < net->param_count; i++) {
        assert_true(net->params[i]->gradient_written);
        memcpy(next, net->params[i]->gradient, (size_t)net->params[i]->count * sizeof(float));
        next += net->params[i]->count;
    }
}

static struct result run(struct taped *f, const struct setting *s, bool training, bool apart)
{
    struct net net = {.arena = f->arena, .apart = apart, .tanh = s->tanh};
    struct result r = {0};
    struct device *host = NULL;
    struct memory_use use;
    struct error err;
    net_make(&net, s->dtype);
    if (s->offload)
        assert_ok(device_open_host(f->device, 1, &host, &err), &err);
    assert_ok(tape_open(f->stream, s->dtype, NULL, &net.tape, &err), &err);
    assert_ok(tape_save_memory(net.tape, s->checkpointing, host, 1, &err), &err);
    device_memory_reset_peak(f->device);
    tape_begin(net.tape, &(struct tape_pass){.training = training,
                                             .row_stride = 1,
                                             .nondeterministic = s->nondeterministic});
    forward(&net, r.sums);
    assert_ok(training ? tape_backward(net.tape, &err) : tape_finish(net.tape, &err), &err);
    assert_ok(stream_sync(f->stream, &err), &err);
    device_memory_use(f->device, &use);
    r.peak_bytes = use.peak_total_bytes;
    if (training)
        keep_gradients(&net, &r);
    tape_close(net.tape);
    device_close(host);
    return r;
}

static void has_the_bits_of_layers_apart(void **state)
{
    enum { BF16 = 1, OFFLOAD = 2, TANH = 4, ANY_ORDER = 8, TRAINING = 16, ALL = 32 };
    static const enum tape_checkpointing kinds[] = {
        TAPE_CHECKPOINTING_NONE, TAPE_CHECKPOINTING_SELECTIVE, TAPE_CHECKPOINTING_FULL};
    for (int bits = 0; bits < (int)array_length(kinds) * ALL; bits++) {
        const struct setting s = {
            .dtype = bits & BF16 ? DTYPE_BF16 : DTYPE_F32,
            .checkpointing = kinds[bits / ALL],
            .offload = bits & OFFLOAD,
            .tanh = bits & TANH,
            .nondeterministic = bits & ANY_ORDER,
        };
        struct result with = run(*state, &s, bits & TRAINING, false);
        struct result apart = run(*state, &s, bits & TRAINING, true);
        assert_true(with.sums[0] > 0);
        assert_memory_equal(with.sums, apart.sums, sizeof with.sums);
        assert_int_equal(with.count, apart.count);
        if (bits & TRAINING)
            assert_memory_equal(with.gradients, apart.gradients,
                                (size_t)with.count * sizeof(float));
        assert_true(with.peak_bytes <= apart.peak_bytes);
    }
}

/* Whatever allocation fails: nothing stays. */
static void running_out_of_memory_leaves_nothing(void **state)
{
    struct taped *f = *state;
    for (int any_order = 0; any_order < 2; any_order++) {
        const struct setting s = {.dtype = DTYPE_F32, .tanh = true, .nondeterministic = any_order};
        int64_t most = run(f, &s, true, false).peak_bytes;
        int failures = 0;
        for (int64_t limit = 64; limit < most; limit += 64) {
            struct net net = {.arena = f->arena, .tanh = true};
            struct memory_use use;
            struct error err;
            double sums[3] = {0};
            net_make(&net, s.dtype);
            assert_ok(tape_open(f->stream, s.dtype, NULL, &net.tape, &err), &err);
            tape_begin(net.tape, &(struct tape_pass){.training = true,
                                                     .row_stride = 1,
                                                     .nondeterministic = any_order});
            device_memory_set_limit(f->device, limit);
            forward(&net, sums);
            failures += tape_backward(net.tape, &err) < 0;
            assert_ok(stream_sync(f->stream, &err), &err); /* what is queued reads this net */
            device_memory_set_limit(f->device, 0);
            device_memory_use(f->device, &use);
            assert_int_equal(use.current_total_bytes, 0);
            tape_close(net.tape);
        }
        assert_true(failures > 10);
    }
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, taped_setup, taped_teardown)
    const struct CMUnitTest tests[] = {
        ROW(has_the_bits_of_layers_apart),
        ROW(running_out_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
