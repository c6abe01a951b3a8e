#include "agent/shard/optim.h"
#include "agent/shard/wrap.h"
#include "base/mem.h"
#include "kernels/ops.h"
#include "kernels/random.h"
#include "tests/agent/fixture.h"
#include "tests/agent/ranks.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 33, STEPS = 10 };

/* One rank with one parameter of SIZE elements. */
struct fixture {
    struct arena *arena;
    struct device *device;
    struct stream *stream;
    struct comm *comm;
    struct module *root;
    struct shard *shard;
    struct optim *optim;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    struct error err;
    struct shard_config config = {.strategy = FULL_SHARD};
    f->arena = arena_open();
    f->root = module_new(f->arena, "", "Net", NULL);
    module_add_param(f->arena, f->root, "w", 0, 1, (int64_t[]){SIZE},
                     (struct param_init){INIT_UNIFORM, 0, 0});
    wrap_none(f->root);
    assert_ok(device_open("cpu", 1, &f->device, &err), &err);
    assert_ok(stream_open(f->device, "compute", &f->stream, &err), &err);
    assert_ok(comm_self_open(&f->comm, &err), &err);
    assert_ok(shard_open(&config, f->stream, f->device, f->comm, f->root, &f->shard, &err), &err);
    shard_init_values(f->shard, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    struct memory_use use;
    optim_close(f->optim);
    shard_close(f->shard);
    device_memory_use(f->device, &use);
    assert_int_equal(use.current_total_bytes, 0);
    comm_close(f->comm);
    stream_close(f->stream);
    device_close(f->device);
    arena_close(f->arena);
    free(f);
    return 0;
}

static void open_optim(struct fixture *f, const struct optim_config *config)
{
    struct error err;
    optim_close(f->optim);
    f->optim = NULL;
    assert_ok(optim_open(config, f->shard, &f->optim, &err), &err);
}

static void copy(struct fixture *f, float *to, const float *from)
{
    stream_copy(shard_update_stream(f->shard), to, from, SIZE * sizeof(float));
    struct error err;
    assert_ok(shard_sync(f->shard, &err), &err);
}

static struct optim_config with(struct optim_config config, float momentum, bool nesterov,
                                float weight_decay)
{
    config.momentum = momentum;
    config.nesterov = nesterov;
    config.weight_decay = weight_decay;
    return config;
}

/* Gradients from 1e-6 to 1e2; half of the steps are taken after the state was saved and loaded.
 * Tolerance: as PyTorch's own float32 (tests/data/parity/README.md). */
static void every_step_is_pytorchs(void **state)
{
    struct fixture *f = *state;
    const struct {
        const char *name;
        struct optim_config config;
        float lr;
    } rows[] = {
        {"adadelta", optim_defaults(&optim_adadelta), 1.0f},
        {"sgd", optim_defaults(&optim_sgd), 0.01f},
        {"sgd_momentum", with(optim_defaults(&optim_sgd), 0.9f, false, 0), 0.01f},
        {"sgd_nesterov", with(optim_defaults(&optim_sgd), 0.9f, true, 0), 0.01f},
        {"sgd_weight_decay", with(optim_defaults(&optim_sgd), 0.9f, false, 0.1f), 0.01f},
        {"adam", optim_defaults(&optim_adam), 0.01f},
        {"adamw", optim_defaults(&optim_adamw), 0.01f},
    };
    struct fixture_file *file = fixture_open("optimizers.safetensors");
    int64_t count;
    const float *init = fixture_get(file, &count, "init");
    const float *gradients = fixture_get(file, &count, "grad");
    assert_int_equal(count, STEPS * SIZE);
    const struct shard_unit *unit = shard_get_unit(f->shard, 0);
    for (size_t i = 0; i < array_length(rows); i++) {
        const float *expected = fixture_get(file, &count, "%s/weight", rows[i].name);
        open_optim(f, &rows[i].config);
        copy(f, unit->value, init);
        for (int step = 0; step < STEPS; step++) {
            if (step == STEPS / 2) {
                float saved[2][SIZE];
                int states = optim_state_count(f->optim);
                int64_t steps = optim_steps(f->optim);
                assert_int_equal(steps, step);
                for (int s = 0; s < states; s++)
                    copy(f, saved[s], optim_state(f->optim, 0, s));
                open_optim(f, &rows[i].config);
                for (int s = 0; s < states; s++)
                    copy(f, optim_state(f->optim, 0, s), saved[s]);
                optim_set_steps(f->optim, steps);
            }
            float weight[SIZE];
            copy(f, unit->gradient, gradients + step * SIZE);
            optim_step(f->optim, rows[i].lr);
            copy(f, weight, unit->value);
            fixture_compare(rows[i].name, weight, expected + step * SIZE, SIZE, 2e-6, 2e-6);
        }
    }
    fixture_close(file);
}

static void the_state_has_pytorchs_names(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const struct optim_kind *kind;
        float momentum;
        int count;
        const char *names[2];
    } rows[] = {
        {&optim_adadelta, 0, 2, {"square_avg", "acc_delta"}},
        {&optim_sgd, 0, 0, {NULL}},
        {&optim_sgd, 0.9f, 1, {"momentum_buffer"}},
        {&optim_adam, 0, 2, {"exp_avg", "exp_avg_sq"}},
        {&optim_adamw, 0, 2, {"exp_avg", "exp_avg_sq"}},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct optim_config config = optim_defaults(rows[i].kind);
        config.momentum = rows[i].momentum;
        open_optim(f, &config);
        assert_int_equal(optim_state_count(f->optim), rows[i].count);
        for (int s = 0; s < rows[i].count; s++)
            assert_string_equal(optim_state_name(f->optim, s), rows[i].names[s]);
        struct memory_use use;
        device_memory_use(f->device, &use);
        assert_int_equal(use.current_bytes[MEMORY_OPTIMIZER],
                         rows[i].count * 40 * (int64_t)sizeof(float)); /* 33, padded */
    }
}

static void no_memory_for_the_state_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct optim_config config = optim_defaults(&optim_adam);
    struct memory_use use;
    struct error err;
    device_memory_use(f->device, &use);
    device_memory_set_limit(f->device, use.current_total_bytes + 200);
    assert_fails(optim_open(&config, f->shard, &f->optim, &err), &err, ERR_MEMORY,
                 "optimizer state exp_avg_sq");
    assert_null(f->optim);
}

/* Of a NaN everything becomes one. Of an infinite gradient its own element does, as the others are
 * multiplied by 0. */
static void assert_clipped_as_in_torch(struct fixture *f, float no_number)
{
    float weights[SIZE];
    optim_step(f->optim, 0.1f);
    copy(f, weights, shard_get_unit(f->shard, 0)->value);
    for (int j = 0; j < SIZE; j++)
        assert_int_equal(isnan(weights[j]) != 0, isnan(no_number) || (isinf(no_number) && j == 7));
}

/* The norm says what is wrong before anything is changed, with reduction slots as without. */
static void a_gradient_that_is_no_number_shows_in_the_norm(void **state)
{
    struct fixture *f = *state;
    static const struct {
        float gradient;
        double norm;
    } rows[] = {
        {3, 5}, {INFINITY, (double)INFINITY}, {-INFINITY, (double)INFINITY}, {NAN, (double)NAN}};
    struct optim_config config = optim_defaults(&optim_adamw);
    config.grad_clip = 1;
    for (size_t i = 0; i < 2 * array_length(rows); i++) {
        float value = rows[i / 2].gradient, gradient[SIZE] = {[7] = value, [SIZE - 1] = 4};
        struct shard_config sharded = {.strategy = FULL_SHARD, .slots = (int)(i % 2)};
        struct error err;
        optim_close(f->optim), f->optim = NULL;
        shard_close(f->shard);
        assert_ok(shard_open(&sharded, f->stream, f->device, f->comm, f->root, &f->shard, &err),
                  &err);
        shard_init_values(f->shard, 1);
        open_optim(f, &config);
        const struct shard_unit *unit = shard_get_unit(f->shard, 0);
        device_ops(f->device)->fill(f->stream, unit->gradient, 0, unit->shard_count); /* padding */
        copy(f, unit->gradient, gradient);
        optim_measure(f->optim);
        assert_ok(shard_sync(f->shard, &err), &err);
        double norm = optim_norm(f->optim);
        if (norm != rows[i / 2].norm && !(isnan(norm) && isnan(value)))
            fail_msg("%d slots: of %g the norm is %g", sharded.slots, (double)value, norm);
        assert_int_equal(optim_steps(f->optim), 0);
        assert_clipped_as_in_torch(f, value);
    }
}

/* bf16-true: what checkpoints keep comes back as it was. */
static void slices_in_bf16_are_read_and_written(void **state)
{
    struct fixture *f = *state;
    struct shard_config config = {
        .strategy = FULL_SHARD, .param_dtype = DTYPE_BF16, .slice_dtype = DTYPE_BF16};
    struct optim_config adam = optim_defaults(&optim_adam);
    struct error err;
    struct shard *shard;
    struct optim *optim = NULL;
    bf16 written[SIZE], got[SIZE], state_got[SIZE];
    float gathered[SIZE];
    assert_ok(shard_open(&config, f->stream, f->device, f->comm, f->root, &shard, &err), &err);
    assert_ok(optim_open(&adam, shard, &optim, &err), &err);
    for (int i = 0; i < SIZE; i++)
        written[i] = (bf16)(0x3c00 + i * 37); /* about 0.01 to 1 */
    const struct shard_unit *unit = shard_get_unit(shard, 0);
    shard_write(shard, unit->value, written, SIZE);
    shard_values_changed(shard);
    shard_read(shard, got, unit->value, SIZE);
    shard_read(shard, state_got, optim_state(optim, 0, 1), SIZE);
    assert_ok(shard_sync(shard, &err), &err);
    assert_memory_equal(got, written, sizeof got);
    for (int i = 0; i < SIZE; i++)
        assert_true(state_got[i] == 0);
    assert_ok(shard_gather_param(shard, f->root->params[0], gathered, &err), &err);
    for (int i = 0; i < SIZE; i++)
        assert_true(gathered[i] == bf16_to_float(written[i]));
    optim_close(optim);
    shard_close(shard);
}

/* ---- bf16-true in worlds of several sizes ---- */

enum { NARROW = 9, ROUNDED = SIZE + SIZE * NARROW, WORLDS = 4, ROUNDED_STEPS = 3 };

struct rounded {
    struct optim_config config;
    float weights[ROUNDED]; /* after the last step */
};

/* The gradients of this rank's slices in a step: each element's own, wherever it lies. */
static void write_gradients(const struct shard *shard, int step)
{
    int count;
    const struct param_range *ranges = shard_ranges(shard, &count);
    for (int i = 0; i < count; i++) {
        const struct param_range *p = &ranges[i];
        float values[ROUNDED];
        uint64_t key = random_key(5, (uint64_t)p->param->index, (uint64_t)step, 0);
        for (int64_t j = 0; j < p->count; j++)
            values[j] = random_uniform(key, (uint64_t)(p->param_offset + j)) - 0.5f;
        memcpy(shard_get_unit(shard, p->unit)->gradient + p->shard_offset, values,
               (size_t)p->count * sizeof *values);
    }
}

static int train_rounded(struct rank *r, struct shard *shard, struct module *root,
                         struct error *err)
{
    struct rounded *out = r->arg;
    struct optim *optim;
    if (optim_open(&out->config, shard, &optim, err) < 0)
        return -1;
    shard_init_values(shard, 1);
    int failed = shard_sync(shard, err);
    for (int step = 0; step < ROUNDED_STEPS && !failed; step++) {
        write_gradients(shard, step); /* nothing that uses them is queued */
        optim_step(optim, 1e-3f);
        failed = shard_sync(shard, err);
    }
    if (!failed)
        failed = shard_gather_param(shard, root->params[0], out->weights, err) ||
                 shard_gather_param(shard, root->params[1], out->weights + SIZE, err);
    optim_close(optim);
    return failed ? -1 : 0;
}

static int rounded_rank(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct shard_config config = {
        .strategy = FULL_SHARD, .param_dtype = DTYPE_BF16, .slice_dtype = DTYPE_BF16};
    struct arena *arena = arena_open();
    struct module *root = module_new(arena, "", "Net", NULL);
    const struct param_init init = {INIT_UNIFORM, -1, 1};
    module_add_param(arena, root, "a", 0, 1, (int64_t[]){SIZE}, init);
    module_add_param(arena, root, "b", 1, 2, (int64_t[]){SIZE, NARROW}, init);
    wrap_none(root);
    struct shard *shard;
    int result = shard_open(&config, s, stream_device(s), c, root, &shard, err);
    if (result == 0) {
        result = train_rounded(r, shard, root, err);
        shard_close(shard);
    }
    arena_close(arena);
    return result;
}

/* Each element is rounded by its own number, wherever it lies. */
static void rounding_does_not_depend_on_the_world_size(void **state)
{
    (void)state;
    const struct optim_config configs[] = {
        with(optim_defaults(&optim_adadelta), 0, false, 0.1f),
        with(optim_defaults(&optim_sgd), 0, false, 0.1f),
        with(optim_defaults(&optim_sgd), 0.9f, true, 0),
        optim_defaults(&optim_adamw),
    };
    static struct rounded results[WORLDS][WORLDS]; /* of each size, its ranks */
    for (size_t i = 0; i < array_length(configs); i++)
        for (int size = 1; size <= WORLDS; size++) {
            struct rank ranks[WORLDS] = {{0}};
            for (int r = 0; r < size; r++) {
                results[size - 1][r] = (struct rounded){.config = configs[i]};
                ranks[r].arg = &results[size - 1][r];
            }
            ranks_run(ranks, size, RANKS_TIMEOUT_MS, rounded_rank);
            for (int r = 0; r < size; r++) {
                assert_ok(ranks[r].result, &ranks[r].err);
                assert_memory_equal(results[size - 1][r].weights, results[0][0].weights,
                                    sizeof results[0][0].weights);
            }
        }
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        ROW(every_step_is_pytorchs),
        ROW(the_state_has_pytorchs_names),
        ROW(no_memory_for_the_state_is_an_error),
        ROW(a_gradient_that_is_no_number_shows_in_the_norm),
        ROW(slices_in_bf16_are_read_and_written),
        cmocka_unit_test(rounding_does_not_depend_on_the_world_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
