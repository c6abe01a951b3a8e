#include "agent/models/mnist.h"
#include "kernels/random.h"
#include "tests/agent/taped.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, SIDE = 12 };

/* The model alone: weights and gradients are bound here, as the shard engine would. */
struct fixture {
    struct taped on;
    float input[ROWS * SIDE * SIDE];
    int32_t target[ROWS];
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    taped_open(&f->on);
    for (int i = 0; i < ROWS * SIDE * SIDE; i++)
        f->input[i] = random_uniform(1, (uint64_t)i);
    for (int i = 0; i < ROWS; i++)
        f->target[i] = i;
    *state = f;
    return 0;
}

static int64_t bytes_in_use(const struct fixture *f)
{
    struct memory_use use;
    device_memory_use(f->on.device, &use);
    return use.current_total_bytes;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    taped_close(&f->on);
    free(f);
    return 0;
}

/* The values, as the tape has them. */
static void *of_dtype(struct fixture *f, float *values, int64_t count)
{
    if (tape_dtype(f->on.tape) == DTYPE_F32)
        return values;
    bf16 *rounded = arena_array(f->on.arena, bf16, count);
    for (int64_t i = 0; i < count; i++)
        rounded[i] = bf16_from_float(values[i]);
    return rounded;
}

static struct model *new_model_of(struct fixture *f, const struct mnist_shape *shape)
{
    struct model *model = model_mnist_new(f->on.arena, shape);
    for (int i = 0; i < model->root->child_count; i++)
        for (int k = 0; k < model->root->children[i]->param_count; k++) {
            struct param *p = model->root->children[i]->params[k];
            float *value = arena_array(f->on.arena, float, p->count);
            for (int64_t e = 0; e < p->count; e++)
                value[e] =
                    p->init.a + (p->init.b - p->init.a) * random_uniform(p->index + 1, (uint64_t)e);
            p->value = of_dtype(f, value, p->count);
            p->gradient = arena_array(f->on.arena, float, p->count);
        }
    return model;
}

static struct model *new_model(struct fixture *f, float dropout1, float dropout2)
{
    return new_model_of(f, &(struct mnist_shape){.height = SIDE,
                                                 .width = SIDE,
                                                 .channels1 = 4,
                                                 .channels2 = 6,
                                                 .hidden = 16,
                                                 .classes = 10,
                                                 .dropout1 = dropout1,
                                                 .dropout2 = dropout2});
}

/* One pass over so many rows; returns the mean loss. */
static int run_rows(struct fixture *f, struct model *model, bool training, int rows,
                    double *ret_loss, struct error *err)
{
    double sums[3] = {0};
    tape_begin(f->on.tape, &(struct tape_pass){.training = training, .seed = 1, .row_stride = 1});
    model->forward(model, f->on.tape,
                   &(struct batch){.input = of_dtype(f, f->input, array_length(f->input)),
                                   .target = f->target,
                                   .rows = rows},
                   1, sums);
    int result = training ? tape_backward(f->on.tape, err) : tape_finish(f->on.tape, err);
    struct error late;
    assert_ok(stream_sync(f->on.stream, &late), &late);
    if (result == 0) {
        assert_true(sums[2] == rows);
        assert_true(sums[1] >= 0 && sums[1] <= rows);
        *ret_loss = sums[0] / sums[2];
    }
    return result;
}

static int run(struct fixture *f, struct model *model, bool training, double *ret_loss,
               struct error *err)
{
    return run_rows(f, model, training, ROWS, ret_loss, err);
}

static void a_new_network_guesses(void **state)
{
    struct fixture *f = *state;
    struct error err;
    double loss;
    assert_ok(run(f, new_model(f, 0, 0), false, &loss, &err), &err);
    assert_true(fabs(loss - log(10)) < 0.2);
}

static void dropout_is_for_training(void **state)
{
    struct fixture *f = *state;
    struct error err;
    double plain, trained, evaluated;
    assert_ok(run(f, new_model(f, 0, 0), true, &plain, &err), &err);
    assert_ok(run(f, new_model(f, 0.25f, 0.5f), true, &trained, &err), &err);
    assert_ok(run(f, new_model(f, 0.25f, 0.5f), false, &evaluated, &err), &err);
    assert_true(plain == evaluated);
    assert_true(plain != trained);
}

static void every_parameter_gets_a_gradient_once(void **state)
{
    struct fixture *f = *state;
    struct error err;
    double loss;
    struct model *model = new_model(f, 0.25f, 0.5f);
    const struct param *p = model->root->children[0]->params[0];
    float once[36];
    assert_int_equal(p->count, 36);
    assert_ok(run(f, model, true, &loss, &err), &err);
    memcpy(once, p->gradient, sizeof once);
    assert_ok(run(f, model, true, &loss, &err), &err); /* added to the first, as marked */
    for (int i = 0; i < 36; i++)
        assert_true(fabsf(p->gradient[i] - 2 * once[i]) <= 1e-5f * fabsf(once[i]) + 1e-7f);
    for (int i = 0; i < model->root->child_count; i++)
        for (int k = 0; k < model->root->children[i]->param_count; k++)
            assert_true(model->root->children[i]->params[k]->gradient_written);
}

/* Whatever allocation of the pass fails: the error names the tensor, nothing stays behind. */
static void limit_each_allocation(struct fixture *f)
{
    struct error err;
    double loss;
    struct model *model = new_model(f, 0.25f, 0.5f);
    assert_ok(run(f, model, true, &loss, &err), &err);
    struct memory_use use;
    device_memory_use(f->on.device, &use);
    bool seen[2] = {false, false};
    for (int64_t limit = 16; limit < use.peak_total_bytes; limit += use.peak_total_bytes / 97) {
        device_memory_set_limit(f->on.device, limit);
        assert_fails(run(f, model, true, &loss, &err), &err, ERR_MEMORY, "no device memory for ");
        seen[0] |= strstr(err.msg, "for conv2 ") != NULL;
        seen[1] |= strstr(err.msg, "for gradient of conv1 ") != NULL;
        assert_int_equal(bytes_in_use(f), 0);
    }
    assert_true(seen[0] && seen[1]);
    device_memory_set_limit(f->on.device, 0);
    assert_ok(run(f, model, true, &loss, &err), &err);
}

static void compute_in_bf16(struct fixture *f)
{
    struct error err;
    tape_close(f->on.tape);
    assert_ok(tape_open(f->on.stream, DTYPE_BF16, NULL, &f->on.tape, &err), &err);
}

static void every_allocation_may_fail(void **state)
{
    limit_each_allocation(*state);
    compute_in_bf16(*state);
    device_memory_reset_peak(((struct fixture *)*state)->on.device);
    limit_each_allocation(*state);
}

/* Of the network that people train, a plan knows what a pass takes, in either dtype. */
static void a_pass_takes_what_it_says(void **state)
{
    enum { LARGE_ROWS = sizeof((struct fixture *)0)->input / sizeof(float) / (28 * 28) };
    struct fixture *f = *state;
    struct error err;
    double loss;
    struct memory_use use;
    for (int turn = 0; turn < 4; turn++) {
        bool training = turn % 2;
        if (turn == 2)
            compute_in_bf16(f);
        struct model *model = new_model_of(f, &mnist_default_shape);
        int64_t a_row = model->sample_count * (int64_t)dtype_bytes(tape_dtype(f->on.tape));
        device_memory_reset_peak(f->on.device);
        assert_ok(run_rows(f, model, training, LARGE_ROWS, &loss, &err), &err);
        device_memory_use(f->on.device, &use);
        assert_int_equal(use.peak_total_bytes, LARGE_ROWS * a_row * (training ? 2 : 1));
    }
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        ROW(a_new_network_guesses),
        ROW(dropout_is_for_training),
        ROW(every_parameter_gets_a_gradient_once),
        ROW(every_allocation_may_fail),
        ROW(a_pass_takes_what_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
