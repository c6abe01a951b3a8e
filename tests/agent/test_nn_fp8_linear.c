/* A linear layer in fp8 on the tape: y and all gradients are the products of what the numbers of
 * kernels/fp8.h are. */
#include "agent/nn/nn.h"
#include "agent/nn/nn_fp8.h"
#include "kernels/fp8.h"
#include "kernels/random.h"
#include "tests/support.h"

#include <math.h>
#include <string.h>

enum { ROWS = 37, IN = 48, PASSES = 2, MOST_OUT = 96, MOST_WEIGHT = IN * MOST_OUT };

static const struct layer_row {
    const char *name;
    int count; /* of modules that read x */
    int64_t out[NN_MOST_LINEARS];
    bool bias, relu, conv1d;
    bool apart; /* gradients do not lie as the weights do */
} layers[] = {
    {"linear", 1, {64}, false, false, false, false},
    {"with a bias and relu", 1, {32}, true, true, false, false},
    {"Conv1D", 1, {80}, true, false, true, false},
    {"three of one x", 3, {32, 16, 48}, false, false, false, false},
    {"three with gradients apart", 3, {32, 16, 48}, false, false, false, true},
    {"three with biases", 3, {16, 16, 64}, true, false, false, false},
};

/* All that a test has. Host numbers are what bf16 holds. */
struct net {
    struct arena *arena;
    struct device *device;
    struct stream *stream;
    struct tape *tape;
    struct module *root, *modules[NN_MOST_LINEARS];
    const struct layer_row *row;
    int64_t width; /* all outs */
    float *x, *dy, *w[NN_MOST_LINEARS], *bias[NN_MOST_LINEARS];
    bf16 *y, *dx; /* what a pass leaves, on the host */
    bf16 *host_x, *host_dy;
    void *values;     /* of the weights, behind each other, then of the biases */
    float *gradients; /* likewise */
};

static uint64_t next_key;

/* At random in size * [-1, 1), and -size first, so that each weight has one scale. Sizes differ, so
 * that values, weights and gradients have one each. */
static float *numbers(struct net *net, int64_t count, float size)
{
    float *x = arena_array(net->arena, float, count);
    next_key++;
    for (int64_t i = 0; i < count; i++) {
        x[i] = i == 0 ? -size : size * (2 * random_uniform(next_key, (uint64_t)i) - 1);
        x[i] = bf16_to_float(bf16_from_float(x[i]));
    }
    return x;
}

static bf16 *narrow(struct net *net, const float *x, int64_t count)
{
    bf16 *y = arena_array(net->arena, bf16, count);
    for (int64_t i = 0; i < count; i++)
        y[i] = bf16_from_float(x[i]);
    return y;
}

/* ---- the net ---- */

static struct module *add_module(struct net *net, struct module *block, uint64_t *index, int i)
{
    const struct layer_row *row = net->row;
    if (row->conv1d)
        return nn_conv1d_new(net->arena, block, "layer", index, IN, row->out[i], 1);
    return nn_linear_normal_new(net->arena, block, "layer", index, IN, row->out[i], row->bias, 1);
}

/* Gives each parameter its numbers and its place, weights before biases. */
static void bind(struct net *net)
{
    int64_t place = 0, count = (IN + 1) * net->width;
    bf16 *host = arena_array(net->arena, bf16, count);
    struct error err;
    assert_ok(device_alloc(net->device, MEMORY_UNIT, (size_t)count * sizeof *host, "values",
                           &net->values, &err),
              &err);
    assert_ok(device_alloc(net->device, MEMORY_GRADIENT, (size_t)count * sizeof(float), "gradients",
                           (void **)&net->gradients, &err),
              &err);
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < net->row->count; i++) {
            if (which >= net->modules[i]->param_count)
                continue;
            struct param *p = net->modules[i]->params[which];
            float *x = numbers(net, p->count, 1);
            *(which ? &net->bias[i] : &net->w[i]) = x;
            memcpy(host + place, narrow(net, x, p->count), (size_t)p->count * sizeof *host);
            p->value = (bf16 *)net->values + place;
            int64_t gradient = net->row->apart ? count - place - p->count : place;
            p->gradient = net->gradients + gradient;
            place += p->count;
        }
    stream_copy(net->stream, net->values, host, (size_t)count * sizeof *host);
    assert_ok(stream_sync(net->stream, &err), &err);
}

static void net_open(struct net *net, const struct layer_row *row)
{
    struct error err;
    uint64_t index = 0;
    *net = (struct net){.arena = arena_open(), .row = row};
    assert_ok(device_open(support_device(), 1, &net->device, &err), &err);
    assert_ok(stream_open(net->device, "compute", &net->stream, &err), &err);
    assert_ok(tape_open(net->stream, DTYPE_BF16, NULL, &net->tape, &err), &err);
    net->root = module_new(net->arena, "", "Net", NULL);
    struct module *block =
        module_add(net->arena, net->root, module_new(net->arena, "block", "Block", NULL));
    block->is_block = true;
    for (int i = 0; i < row->count; i++) {
        net->modules[i] = add_module(net, block, &index, i);
        net->width += row->out[i];
    }
    assert_ok(nn_fp8_begin(net->root, &err), &err);
    net->x = numbers(net, ROWS * IN, 8);
    net->dy = numbers(net, ROWS * net->width, 3);
    int64_t column = 0;
    for (int i = 0; i < row->count; column += row->out[i++])
        net->dy[(i + 1) * net->width + column] = 3; /* each product's columns have one scale */
    net->host_x = narrow(net, net->x, ROWS * IN);
    net->host_dy = narrow(net, net->dy, ROWS * net->width);
    net->y = arena_array(net->arena, bf16, ROWS * net->width);
    net->dx = arena_array(net->arena, bf16, ROWS * IN);
    bind(net);
}

static void net_close(struct net *net)
{
    struct memory_use use;
    device_free(net->device, net->values);
    device_free(net->device, net->gradients);
    tape_close(net->tape);
    device_memory_use(net->device, &use);
    assert_int_equal(use.current_total_bytes, 0);
    stream_close(net->stream);
    device_close(net->device);
    arena_close(net->arena);
}

/* ---- a pass ---- */

struct net_args {
    struct net *net;
};

static struct net *net_of(const struct tape_op *op)
{
    struct net_args args;
    memcpy(&args, op->args, sizeof args);
    return args.net;
}

static void source_backward(struct tape *tape, struct tape_op *op)
{
    stream_copy(tape_stream(tape), net_of(op)->dx, op->output->gradient, ROWS * IN * sizeof(bf16));
}

static void sink_backward(struct tape *tape, struct tape_op *op)
{
    struct tensor *y = op->inputs[0];
    bool add;
    void *dy = tape_gradient_in_place(tape, y, &add);
    assert_true(dy && !add);
    stream_copy(tape_stream(tape), dy, net_of(op)->host_dy, (size_t)y->count * sizeof(bf16));
}

static void record(struct net *net, struct tape_op op)
{
    const struct net_args args = {net};
    memcpy(op.args, &args, sizeof args);
    tape_record(net->tape, &op);
}

static struct tensor *apply(struct net *net, struct tensor *x)
{
    if (net->row->count > 1)
        return nn_linears(net->tape, net->modules, net->row->count, x, "y");
    if (net->row->conv1d)
        return nn_conv1d(net->tape, net->modules[0], x);
    return nn_linear(net->tape, net->modules[0], x, net->row->relu);
}

static void run(struct net *net)
{
    struct error err;
    tape_begin(net->tape, &(struct tape_pass){.training = true, .row_stride = 1});
    struct tensor *x = tape_tensor(net->tape, 2, (int64_t[]){ROWS, IN}, "x");
    assert_non_null(x);
    stream_copy(net->stream, x->data, net->host_x, ROWS * IN * sizeof(bf16));
    record(net, (struct tape_op){.backward = source_backward, .output = x});
    struct tensor *y = apply(net, x);
    assert_non_null(y);
    stream_copy(net->stream, net->y, y->data, (size_t)y->count * sizeof(bf16));
    /* as a loss: who is last, without an output, begins backward */
    record(net, (struct tape_op){.backward = sink_backward, .inputs = {y}});
    assert_ok(tape_backward(net->tape, &err), &err);
    assert_ok(stream_sync(net->stream, &err), &err);
}

/* ---- what it must give ---- */

/* The numbers that a cast makes of x: all of it has one scale. */
static double *as_fp8(struct net *net, enum fp8 f, const float *x, int64_t count)
{
    double *values = arena_array(net->arena, double, count);
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        float magnitude = fabsf(x[i]);
        uint32_t bits;
        memcpy(&bits, &magnitude, sizeof bits);
        largest = bits > largest ? bits : largest;
    }
    const struct fp8_scale scale = fp8_scale_of(f, largest);
    for (int64_t i = 0; i < count; i++)
        values[i] =
            (double)fp8_to_float(f, fp8_from_float(f, x[i] * scale.scale)) * (double)scale.inverse;
    return values;
}

/* rounding: what a half unit of the result's format, and terms of a sum, are of it at most. */
static void expect(const char *row, const char *what, int64_t i, double got, double want,
                   double rounding)
{
    if (!(fabs(got - want) <= rounding * (1 + fabs(want))))
        fail_msg("%s: %s %lld is %.9g, should be %.9g", row, what, (long long)i, got, want);
}

enum { WIDE = 22, NARROW = 8 }; /* bits */

struct reference {
    double x[ROWS * IN], dy[ROWS * MOST_OUT], w[NN_MOST_LINEARS][MOST_WEIGHT];
};

static double weight(const struct net *net, const struct reference *r, int i, int64_t o, int64_t k)
{
    return r->w[i][net->row->conv1d ? k * net->row->out[i] + o : o * IN + k];
}

static void check_forward(const struct net *net, const struct reference *r)
{
    int64_t column = 0;
    for (int i = 0; i < net->row->count; column += net->row->out[i++])
        for (int64_t row = 0; row < ROWS; row++)
            for (int64_t o = 0; o < net->row->out[i]; o++) {
                double sum = net->bias[i] ? (double)net->bias[i][o] : 0;
                for (int64_t k = 0; k < IN; k++)
                    sum += r->x[row * IN + k] * weight(net, r, i, o, k);
                sum = net->row->relu && sum < 0 ? 0 : sum;
                int64_t place = row * net->width + column + o;
                expect(net->row->name, "y", place, bf16_to_float(net->y[place]), sum,
                       ldexp(1, -NARROW));
            }
}

static void check_weights(const struct net *net, const struct reference *r, const float *gradients)
{
    int64_t column = 0;
    for (int i = 0; i < net->row->count; column += net->row->out[i++]) {
        const float *dw = gradients + (net->modules[i]->params[0]->gradient - net->gradients);
        for (int64_t o = 0; o < net->row->out[i]; o++)
            for (int64_t k = 0; k < IN; k++) {
                double sum = 0;
                for (int64_t row = 0; row < ROWS; row++)
                    sum += r->dy[row * net->width + column + o] * r->x[row * IN + k];
                int64_t place = net->row->conv1d ? k * net->row->out[i] + o : o * IN + k;
                expect(net->row->name, "dw", place, dw[place], PASSES * sum, 16 * ldexp(1, -WIDE));
            }
    }
}

static void check_biases(const struct net *net, const float *dy, const float *gradients)
{
    int64_t column = 0;
    for (int i = 0; i < net->row->count; column += net->row->out[i++])
        for (int64_t o = 0; net->bias[i] && o < net->row->out[i]; o++) {
            const float *db = gradients + (net->modules[i]->params[1]->gradient - net->gradients);
            double sum = 0;
            for (int64_t row = 0; row < ROWS; row++)
                sum += (double)dy[row * net->width + column + o];
            expect(net->row->name, "db", o, db[o], PASSES * sum, 4 * ldexp(1, -WIDE));
        }
}

static void check_data(const struct net *net, const struct reference *r)
{
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t k = 0; k < IN; k++) {
            double sum = 0;
            int64_t column = 0;
            for (int i = 0; i < net->row->count; column += net->row->out[i++])
                for (int64_t o = 0; o < net->row->out[i]; o++)
                    sum += r->dy[row * net->width + column + o] * weight(net, r, i, o, k);
            /* each of several products, which are larger, may be rounded, and their sums */
            expect(net->row->name, "dx", row * IN + k, bf16_to_float(net->dx[row * IN + k]), sum,
                   (net->row->count > 1 ? 12 : 1) * ldexp(1, -NARROW));
        }
}

static void check_layer(const struct layer_row *row)
{
    struct net net;
    struct error err;
    net_open(&net, row);
    for (int pass = 0; pass < PASSES; pass++)
        run(&net);
    int64_t count = (IN + 1) * net.width;
    float *gradients = arena_array(net.arena, float, count), *dy = net.dy;
    stream_copy(net.stream, gradients, net.gradients, (size_t)count * sizeof(float));
    assert_ok(stream_sync(net.stream, &err), &err);
    for (int64_t i = 0; row->relu && i < ROWS * net.width; i++) /* relu's slope */
        dy[i] = bf16_to_float(net.y[i]) > 0 ? dy[i] : 0;
    struct reference *r = arena_new(net.arena, struct reference);
    memcpy(r->x, as_fp8(&net, FP8_E4M3, net.x, ROWS * IN), sizeof r->x);
    memcpy(r->dy, as_fp8(&net, FP8_E5M2, dy, ROWS * net.width),
           (size_t)(ROWS * net.width) * sizeof(double));
    for (int i = 0; i < row->count; i++)
        memcpy(r->w[i], as_fp8(&net, FP8_E4M3, net.w[i], IN * row->out[i]),
               (size_t)(IN * row->out[i]) * sizeof(double));
    check_forward(&net, r);
    check_weights(&net, r, gradients);
    check_biases(&net, dy, gradients);
    check_data(&net, r);
    net_close(&net);
}

static void test_layers(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(layers); i++)
        check_layer(&layers[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
