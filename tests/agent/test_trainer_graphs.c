/* Training with CUDA's graphs ends with the same bits as without: models, micro-batches, short last
 * batches, recomputation, offload, several ranks. On the CPU, that they are refused. */
#include "tests/agent/runs.h"
#include "tests/support.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL "--num_hidden_layers=2 --batch_size=2 --max_steps=4 "
#define T5                                                                                         \
    SMALL "--model.type=t5 --vocab_size=550 --tokenizer=tests/data/tokenizers/unigram_t5 "         \
          "--num_key_value_heads=0 --max_source_length=24 --max_target_length=12 "

static const struct runs_case cases[] = {
    /* an epoch is a batch of two images and one of one */
    {"MNIST", runs_make_images, runs_do, 1, NULL,
     "--dropout=0.25 --batch_size=2 --train_size=3 --eval_size=1"},
    {"Llama, recomputed, in micro-batches", runs_make_tokens, runs_do_language, 1, NULL,
     SMALL "--activation_checkpointing=full --gradient_accumulation_steps=2 --train_size=7"},
    {"Llama in bf16, norms recomputed", runs_make_tokens, runs_do_language, 1, NULL,
     SMALL "--activation_checkpointing=selective --mixed_precision=bf16"},
    {"Llama, offloaded", runs_make_tokens, runs_do_language, 1, NULL,
     SMALL "--offload_activations --cpu_offload --activation_checkpointing=full"},
    {"Llama over two ranks", runs_make_tokens, runs_do_language, 2, NULL,
     SMALL "--sharding_strategy=FULL_SHARD --nan_policy=skip"},
    {"T5 with dropout", runs_make_rows, runs_do_language, 1, "rows", T5 "--dropout=0.1"},
};

/* What a run ends with: the model's file. */
static char *train(const struct runs_case *c, struct run *run, struct arena *arena, const char *dir,
                   const char *graphs, size_t *ret_bytes)
{
    struct error err;
    char *model = NULL;
    const char *path = arena_printf(arena, "%s/model_%s", dir, graphs);
    runs_do_case(c, run, arena, dir,
                 arena_printf(arena, "--save_model=%s --cuda_graphs=%s", path, graphs));
    const char *file =
        c->train == runs_do ? path : arena_printf(arena, "%s/model.safetensors", path);
    assert_ok(file_read(file, 16 << 20, &model, ret_bytes, &err), &err);
    return model;
}

static void graphs_change_no_bit(void **state)
{
    (void)state;
    if (strcmp(support_device(), "cpu") == 0)
        return;
    for (size_t i = 0; i < array_length(cases); i++) {
        auto_arena struct arena *arena = arena_open();
        struct run without = {0}, with = {0};
        void *dir;
        cases[i].make_data(&dir);
        size_t bytes, bytes_with;
        auto_free char *model = train(&cases[i], &without, arena, dir, "off", &bytes);
        auto_free char *model_with = train(&cases[i], &with, arena, dir, "on", &bytes_with);
        assert_true(with.seen[0].last_step > 2);
        assert_int_equal(with.seen[0].last_step, without.seen[0].last_step);
        for (int s = 0; s < with.seen[0].last_step; s++)
            if (with.seen[0].loss[s] != without.seen[0].loss[s])
                fail_msg("%s: step %d: %.17g, without graphs %.17g", cases[i].name, s + 1,
                         with.seen[0].loss[s], without.seen[0].loss[s]);
        assert_true(with.seen[0].test_loss == without.seen[0].test_loss);
        if (bytes != bytes_with || memcmp(model, model_with, bytes) != 0)
            fail_msg("%s: graphs change the model", cases[i].name);
        assert_null(strstr(with.seen[0].notice, "cuda_graphs"));
        runs_remove(&dir);
    }
}

static void the_cpu_has_none(void **state)
{
    auto_arena struct arena *arena = arena_open();
    struct config *config = arena_new(arena, struct config);
    struct run run = {.config = &config->value, .size = 1};
    runs_configure(config, arena, *state, 1, "--device=cpu --cuda_graphs");
    runs_start(&run);
    assert_fails(run.result[0], &run.err[0], ERR_CONFIG, "the model runs on the CPU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_change_no_bit),
        cmocka_unit_test_setup_teardown(the_cpu_has_none, runs_make_images, runs_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
