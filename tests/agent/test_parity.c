/* The engine against PyTorch. Expected figures and tolerances: tests/data/parity/README.md. */
#include "base/mem.h"
#include "tests/agent/fixture.h"
#include "tests/agent/world.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PARAMS = 8 };
static const char *const params[PARAMS] = {
    "conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
    "fc1.weight",   "fc1.bias",   "fc2.weight",   "fc2.bias",
};

/* Four ranks, eight samples each, no dropout; gradients are the mean of the ranks' sums. */
static struct world parity_world(struct mnist_shape shape, int64_t rows)
{
    shape.dropout1 = shape.dropout2 = 0;
    return (struct world){
        .ranks = 4,
        .config = {.strategy = FULL_SHARD,
                   .backward_prefetch = BACKWARD_PRE,
                   .limit_all_gathers = true},
        .shape = shape,
        .optim = optim_defaults(&optim_sgd),
        .steps = 1,
        .rows = rows,
        .dealt_to = 4,
        .loss_scale = 1,
    };
}

/* Of the small network in several units, with 8 rows for each rank. */
static struct world wrapped_world(int ranks)
{
    struct world w = parity_world(world_small_shape(), 8 * ranks);
    w.ranks = ranks;
    w.min_num_params = 500;
    return w;
}

static void run(const struct world *world, struct world_result *result)
{
    struct error err;
    assert_ok(world_run(world, result, &err), &err);
}

static void compare_losses(const char *what, const struct world_result *result,
                           const float *expected, double absolute)
{
    float losses[WORLD_MAX_STEPS];
    for (int i = 0; i < WORLD_MAX_STEPS; i++)
        losses[i] = (float)result->losses[i];
    fixture_compare(what, losses, expected, WORLD_MAX_STEPS, absolute, 0);
}

/* The loss of each rank, and every gradient at 1 to 4 ranks: 2e-6 is 16 times PyTorch's own
 * distance in float32. */
static void losses_and_gradients_are_pytorchs(void **state)
{
    (void)state;
    struct fixture_file *file = fixture_open("mnist_small.safetensors");
    for (int ranks = 1; ranks <= 4; ranks++) {
        struct world w = wrapped_world(ranks);
        struct world_result result;
        run(&w, &result);
        for (int r = 0; r < ranks; r++) {
            int64_t count;
            const float *loss = fixture_get(file, &count, "rank%d/loss", r);
            float got = (float)result.rank_losses[r];
            fixture_compare("loss", &got, loss, 1, 1e-5, 0);
        }
        for (int p = 0; p < PARAMS; p++) {
            int64_t count;
            const float *gradient = fixture_get(file, &count, "world%d/grad/%s", ranks, params[p]);
            assert_int_equal(count, result.offsets[p + 1] - result.offsets[p]);
            fixture_compare(params[p], result.gradients + result.offsets[p], gradient, count, 2e-6,
                            0);
        }
        world_result_free(&result);
    }
    fixture_close(file);
}

static struct optim_config with(struct optim_config config, float momentum, bool nesterov,
                                float weight_decay)
{
    config.momentum = momentum;
    config.nesterov = nesterov;
    config.weight_decay = weight_decay;
    return config;
}

/* Ten steps of each optimizer. Adam's quotient makes rounding of gradients near 0 visible. */
static void ten_steps_of_each_optimizer_are_pytorchs(void **state)
{
    (void)state;
    const struct {
        const char *name;
        struct optim_config config;
        float lr;
        double weights_absolute;
        double bf16_loss; /* twice the largest distance of PyTorch's own autocast, of its kind */
    } rows[] = {
        {"adadelta", optim_defaults(&optim_adadelta), 1.0f, 1e-6, 6.7e-3},
        {"sgd", optim_defaults(&optim_sgd), 0.01f, 1e-6, 4e-4},
        {"sgd_momentum", with(optim_defaults(&optim_sgd), 0.9f, false, 0), 0.01f, 1e-6, 4e-4},
        {"sgd_nesterov", with(optim_defaults(&optim_sgd), 0.9f, true, 0), 0.01f, 1e-6, 4e-4},
        {"sgd_weight_decay", with(optim_defaults(&optim_sgd), 0.9f, false, 0.1f), 0.01f, 1e-6,
         4e-4},
        {"adam", optim_defaults(&optim_adam), 0.01f, 1e-5, 1.6e-2},
        {"adamw", optim_defaults(&optim_adamw), 0.01f, 1e-5, 1.6e-2},
    };
    struct fixture_file *file = fixture_open("mnist_small_train.safetensors");
    for (size_t i = 0; i < array_length(rows); i++) {
        struct world w = parity_world(world_small_shape(), 32);
        struct world_result result;
        w.steps = 10;
        w.same_batch = true;
        w.optim = rows[i].config;
        w.lr = rows[i].lr;
        run(&w, &result);
        int64_t count;
        compare_losses(rows[i].name, &result, fixture_get(file, &count, "%s/loss", rows[i].name),
                       2e-6);
        for (int p = 0; p < PARAMS; p++)
            fixture_compare(params[p], result.weights + result.offsets[p],
                            fixture_get(file, &count, "%s/final/%s", rows[i].name, params[p]),
                            result.offsets[p + 1] - result.offsets[p], rows[i].weights_absolute, 0);
        world_result_free(&result);
        w.config.param_dtype = DTYPE_BF16;
        run(&w, &result);
        compare_losses(rows[i].name, &result, fixture_get(file, &count, "%s/loss", rows[i].name),
                       rows[i].bf16_loss);
        world_result_free(&result);
    }
    fixture_close(file);
}

/* AdamW with decay groups, clipping and a cosine schedule with warm-up, in every layout: the norm
 * is the same number on every rank. */
static void the_recipe_of_language_models_is_pytorchs(void **state)
{
    (void)state;
    static const struct {
        enum shard_strategy strategy;
        int ranks, group;
        int64_t min_num_params;
        bool offload;
    } rows[] = {
        {FULL_SHARD, 1, 1, 0, false},   {FULL_SHARD, 4, 4, 500, false},
        {FULL_SHARD, 4, 4, 50, true},   {NO_SHARD, 4, 1, 50, false},
        {NO_SHARD, 2, 1, 0, true},      {HYBRID_SHARD, 4, 2, 50, true},
        {HYBRID_SHARD, 4, 2, 0, false}, {SHARD_GRAD_OP, 4, 4, 0, false},
    };
    const struct schedule schedule = {
        .type = SCHEDULE_HF_COSINE, .lr = 0.01, .decay_steps = 10, .warmup_steps = 2};
    struct fixture_file *file = fixture_open("mnist_recipe.safetensors");
    for (size_t i = 0; i < array_length(rows); i++) {
        struct world w = parity_world(world_small_shape(), 32);
        struct world_result result;
        w.ranks = w.dealt_to = rows[i].ranks;
        w.config.strategy = rows[i].strategy;
        w.config.shard_group_size = rows[i].group;
        w.min_num_params = rows[i].min_num_params;
        w.offload = rows[i].offload;
        w.steps = 10;
        w.same_batch = true;
        w.loss_scale = (float)w.ranks / 4; /* gradients are the mean over ranks of 4 ranks' sums */
        w.optim = optim_defaults(&optim_adamw);
        w.optim.beta2 = 0.95f;
        w.optim.weight_decay = 0.1f;
        w.optim.decays = optim_decays_matrices;
        w.optim.grad_clip = 2;
        w.schedule = &schedule;
        run(&w, &result);
        int64_t count;
        compare_losses("loss", &result, fixture_get(file, &count, "loss"), 2e-6);
        const float *norms = fixture_get(file, &count, "norm");
        for (int step = 0; step < w.steps; step++)
            for (int r = 0; r < w.ranks; r++) {
                float norm = (float)result.norms[step][r];
                fixture_compare("norm", &norm, &norms[step], 1, 5e-6, 0);
                assert_true(result.norms[step][r] == result.norms[step][0]);
            }
        for (int p = 0; p < PARAMS; p++)
            fixture_compare(params[p], result.weights + result.offsets[p],
                            fixture_get(file, &count, "final/%s", params[p]),
                            result.offsets[p + 1] - result.offsets[p], 1e-5, 0);
        world_result_free(&result);
    }
    fixture_close(file);
}

/* Mixed precision, against the same figures: twice the largest distance of PyTorch's own autocast.
 * That of a convolution's gradient is large: rounding makes near-ties of the pool's windows equal,
 * and the gradient goes to another place. */
static void bf16_is_as_close_as_pytorch(void **state)
{
    (void)state;
    static const double loss = 2.7e-3;
    static const double gradients[PARAMS] = {0.18, 0.37, 0.30, 0.61, 0.013, 0.0052, 0.011, 0.0046};
    struct fixture_file *file = fixture_open("mnist_small.safetensors");
    for (int ranks = 1; ranks <= 4; ranks++) {
        struct world w = wrapped_world(ranks);
        struct world_result result;
        w.config.param_dtype = DTYPE_BF16;
        run(&w, &result);
        for (int r = 0; r < ranks; r++) {
            int64_t count;
            float got = (float)result.rank_losses[r];
            fixture_compare("loss", &got, fixture_get(file, &count, "rank%d/loss", r), 1, loss, 0);
        }
        for (int p = 0; p < PARAMS; p++) {
            int64_t count;
            const float *gradient = fixture_get(file, &count, "world%d/grad/%s", ranks, params[p]);
            double distance =
                fixture_distance(result.gradients + result.offsets[p], gradient, count);
            if (!(distance <= gradients[p]))
                fail_msg("%d ranks: the gradient of %s is off by %.2g", ranks, params[p], distance);
        }
        world_result_free(&result);
    }
    fixture_close(file);
}

struct tolerance {
    double weight, norm, loss; /* absolute, relative, absolute */
};

/* Compares the elements that the file has of each parameter, and the norm of all. */
static void compare_sampled(struct fixture_file *file, const struct world_result *result,
                            const float *values, const char *prefix, const char *kind,
                            struct tolerance allowed)
{
    for (int p = 0; p < PARAMS; p++) {
        char what[64];
        snprintf(what, sizeof what, "%s%s/%s", prefix, kind, params[p]);
        int64_t count;
        const float *index = fixture_get(file, &count, "index/%s", params[p]);
        const float *expected = fixture_get(file, &count, "%s%s/%s", prefix, kind, params[p]);
        const float *own = values + result->offsets[p];
        for (int64_t i = 0; i < count; i++)
            fixture_compare(what, &own[(int64_t)index[i]], &expected[i], 1, allowed.weight, 0);
        double squares = 0;
        for (int64_t i = 0; i < result->offsets[p + 1] - result->offsets[p]; i++)
            squares += (double)own[i] * own[i];
        float norm = (float)sqrt(squares);
        expected = fixture_get(file, &count, "%s%s_norm/%s", prefix, kind, params[p]);
        fixture_compare(what, &norm, expected, 1, 0, allowed.norm);
    }
}

/* The wide row: Adadelta's steps are large and hardly depend on the size of a gradient, so once
 * rounding (convolutions sum in another order) decides one near-tie of a relu or max_pool the other
 * way, all that follows moves. Its arithmetic is held to 1e-6 on the small network. */
static void the_tutorials_network_trains_as_in_pytorch(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const struct optim_kind *kind;
        float lr;
        struct tolerance allowed;
    } rows[] = {
        {"sgd", &optim_sgd, 0.01f, {2e-6, 1e-6, 1e-5}},
        {"adadelta", &optim_adadelta, 1.0f, {1e-2, 1e-2, 1e-2}},
    };
    struct fixture_file *file = fixture_open("mnist_full.safetensors");
    for (size_t i = 0; i < array_length(rows); i++) {
        struct world w = parity_world(mnist_default_shape, 64);
        struct world_result result;
        w.min_num_params = 20000;
        w.steps = 10;
        w.optim = optim_defaults(rows[i].kind);
        w.lr = rows[i].lr;
        run(&w, &result);
        compare_sampled(file, &result, result.gradients, "", "grad", rows[0].allowed);
        char prefix[32];
        snprintf(prefix, sizeof prefix, "%s/", rows[i].name);
        compare_sampled(file, &result, result.weights, prefix, "final", rows[i].allowed);
        int64_t count;
        compare_losses(rows[i].name, &result, fixture_get(file, &count, "%s/loss", rows[i].name),
                       rows[i].allowed.loss);
        world_result_free(&result);
    }
    fixture_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_gradients_are_pytorchs),
        cmocka_unit_test(bf16_is_as_close_as_pytorch),
        cmocka_unit_test(ten_steps_of_each_optimizer_are_pytorchs),
        cmocka_unit_test(the_recipe_of_language_models_is_pytorchs),
        cmocka_unit_test(the_tutorials_network_trains_as_in_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
