/* Where settings come from: flags, argument files, variables, files; and which of them wins. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config.h"
#include "agent/config/config_model.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes `text` to a new file in `directory`. The arena owns the path. */
static const char *write_file(struct arena *arena, const char *directory, const char *text)
{
    const char *path = arena_printf(arena, "%s/file", directory);
    auto_fclose FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    return path;
}

static void mistaken_variables_are_told(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    char foo[] = "AGENT_OPTIMIZER_FOO=3", lr[] = "AGENT_OPTIMIZER_LR=1",
         map[] = "AGENT_MODEL_CONFIG_OVERRIDES_HEAD_DIM=4", preset[] = "AGENT_PRESET=mnist",
         port[] = "AGENT_PORT=tcp://10.0.0.1", size[] = "AGENT_DATA_SIZE",
         british[] = "AGENT_OPTIMISER_LR=1", service[] = "AGENT_SERVICE_PORT=1",
         pods[] = "PET_NPROC_PER_NOD=2", right[] = "PET_NNODES=1", other[] = "PET_NUMA_BINDING=x",
         fsdp[] = "FSDP_SHARDNG_STRATEGY=NO_SHARD", cache[] = "HF_HUB_CACHE=/cache",
         former[] = "AGENT_RUNTIME_COLLECTIVE_NOTES=20", path[] = "DATAPATH=/x",
         nccl[] = "NCCL_TIMEOUTS=1";
    char *variables[] = {foo,   lr,    map,  preset, port,   size, british, service, pods,
                         right, other, fsdp, cache,  former, path, nccl,    NULL};
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena, "--foo", "", &config, &err), &err);
    assert_ok(
        config_check_variables(variables, " PET_NNODES PET_NPROC_PER_NODE", arena, &config, &err),
        &err);
    assert_string_equal(config.headline,
                        "unknown flags are ignored: --foo\nunknown variables are ignored: "
                        "AGENT_OPTIMIZER_FOO, AGENT_DATA_SIZE, AGENT_OPTIMISER_LR (the nearest is "
                        "AGENT_OPTIMIZER_LR), PET_NPROC_PER_NOD (the nearest is "
                        "PET_NPROC_PER_NODE), FSDP_SHARDNG_STRATEGY (the nearest is "
                        "FSDP_SHARDING_STRATEGY)\n");
    assert_ok(config_line_parse(arena, "--strict", "", &config, &err), &err);
    assert_fails(config_check_variables(variables, "", arena, &config, &err), &err, ERR_CONFIG,
                 "environment: unknown variables AGENT_OPTIMIZER_FOO, AGENT_DATA_SIZE, "
                 "AGENT_OPTIMISER_LR (the nearest is AGENT_OPTIMIZER_LR), FSDP_SHARDNG_STRATEGY "
                 "(the nearest is FSDP_SHARDING_STRATEGY); --help lists all");
}

static void stronger_sources_win(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *directory = support_temp_dir();
    const char *path = write_file(arena, directory,
                                  "optimizer:\n  lr: 0.25\n  rho: 0.5\n"
                                  "schedule: {gamma: 0.3, epochs: 7}\n");
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena,
                                arena_printf(arena, "--epochs 9 --config %s --preset mnist", path),
                                "AGENT_OPTIMIZER_RHO=0.75", &config, &err),
              &err);
    const struct agent_config *c = &config.value;
    assert_int_equal(c->schedule.epochs, 9);        /* flag over file over preset */
    assert_true(c->optimizer.rho == 0.75);          /* environment over file */
    assert_true(c->optimizer.lr == 0.25);           /* file over preset */
    assert_int_equal(c->data.train_batch_size, 64); /* preset over default */
    assert_true(c->parallel.limit_all_gathers);     /* default */
    assert_int_equal(c->parallel.strategy, 1);
    support_remove_tree(directory);
}

/* ... of a map within a group, of another trainer, and of a file's own presets. */
static void sources_reach_every_kind_of_key(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *directory = support_temp_dir();
    const char *path = write_file(arena, directory,
                                  "preset: [hyperpod, llama3.2-1b]\n"
                                  "model: {config_overrides: {num_layers: 3, rope_theta: 5.0e+5},\n"
                                  "        rope_scaling: {rope_type: linear, factor: 2}}\n"
                                  "parallel: {transformer_layer_cls_to_wrap: [A, B]}\n"
                                  "data: {packing: none}\n"
                                  "logging: {report_to: [wandb, tensorboard]}\n"
                                  "schedule: {lr_decay: false}\n");
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena, arena_printf(arena, "--config %s", path),
                                "AGENT_MODEL_CONFIG_OVERRIDES_VOCAB_SIZE=77", &config, &err),
              &err);
    const struct agent_config *c = &config.value;
    assert_string_equal(config.preset, "hyperpod,llama3.2-1b");
    assert_ptr_equal(config_family(c), &family_llama);
    assert_int_equal(c->overrides.num_hidden_layers, 3);
    assert_true(c->overrides.rope_theta == 5e5);
    assert_int_equal(c->overrides.vocab_size, 77);
    assert_true(c->rope.factor == 2);
    assert_string_equal(c->parallel.wrap_classes, "A,B");
    assert_int_equal(c->logging.wandb, 1);
    assert_string_equal(c->logging.tensorboard_dir, "./tensorboard_logs");
    assert_ok(config_line_parse(arena, "", "NCCL_TIMEOUT=60", &config, &err), &err);
    assert_true(c->runtime.timeout_s == 60);
    assert_ok(config_line_parse(arena, "", "DATA_PATH=/d", &config, &err), &err);
    assert_string_equal(c->data.source.root, "/d");
    assert_ok(config_line_parse(arena, "", "AGENT_PRESET=gpt2", &config, &err), &err);
    assert_string_equal(c->model.architecture, "gpt2");
    support_remove_tree(directory);
}

static void variables_of_torchs_watch_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *summary;
    } rows[] = {
        {"NCCL_ASYNC_ERROR_HANDLING=0", "runtime.abort_collectives=false (environment)"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING=0", "runtime.abort_collectives=false (environment)"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING=3", "runtime.abort_collectives=true (environment)"},
        {"TORCH_NCCL_ENABLE_MONITORING=0", "runtime.exit_if_stuck=false (environment)"},
        {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=60", "runtime.heartbeat_timeout=60 (environment)"},
        {"TORCH_NCCL_TRACE_BUFFER_SIZE=20", "runtime.flight_recorder_size=20 (environment)"},
        {"AGENT_RUNTIME_COLLECTIVE_NOTES=20", "runtime.flight_recorder_size=20 (environment)"},
        {"TORCH_NCCL_DUMP_ON_TIMEOUT=0", "runtime.dump_on_timeout=false (environment)"},
        {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/t/rank_", "runtime.dump_path=/t/rank_ (environment)"},
        {"TORCH_DISTRIBUTED_DEBUG=DETAIL", "runtime.debug=detail (environment)"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        auto_str struct str summary;
        struct config config;
        struct error err;
        str_init(&summary, 1024);
        assert_ok(config_line_parse(arena, "", rows[i].variable, &config, &err), &err);
        config_line_summary(&config, &summary);
        assert_string_equal(str_text(&summary), rows[i].summary);
    }
}

static const char *two_variables(void *ctx, const char *name)
{
    (void)ctx;
    if (strcmp(name, "AGENT_RUNTIME_COLLECTIVE_NOTES") == 0)
        return "7";
    return strcmp(name, "TORCH_NCCL_TRACE_BUFFER_SIZE") == 0 ? "9" : NULL;
}

static void a_former_name_is_as_strong_as_ours(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    assert_ok(config_parse(0, NULL, two_variables, NULL, arena, &config, &err), &err);
    assert_int_equal(config.value.runtime.flight_recorder_size, 7);
}

static void files_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"optimizer: {lrr: 1}\n", "unknown key 'optimizer.lrr'; the nearest is optimizer.lr"},
        {"optimizer: {lr: x}\n", "optimizer.lr: 'x' is not a number"},
        {"optimizer: 3\n", "optimizer: must be a mapping of keys"},
        {"optimizer: {lr: {a: 1}}\n", "unknown key 'optimizer.lr.a'"},
        {"model: {config_overrides: {sizes: {a: 1}}}\n",
         "model.config_overrides.sizes: must be a single value"},
        {"profiler: {with_stack: true}\n", "profiler.with_stack: 'true': there are no Python"},
        {"preset: {a: 1}\n", "preset: must be a name or a list"},
        {"preset: cifar\n", "'cifar' is not one of: mnist"},
        {"fsdp_config: {}\n", "A `distributed_type` must be specified in"},
        {"- 1\n", "must be one mapping"},
    };
    auto_free char *directory = support_temp_dir();
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        const char *path = write_file(arena, directory, rows[i].text);
        int result =
            config_line_parse(arena, arena_printf(arena, "--config %s", path), "", &config, &err);
        assert_fails(result, &err, ERR_CONFIG, path);
        assert_fails(result, &err, ERR_CONFIG, rows[i].message);
    }
    support_remove_tree(directory);
}

static void argument_files_expand_in_place(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *directory = support_temp_dir();
    const char *path =
        write_file(arena, directory, "--lr 3 # comment --lr 4\n# all comment\n--epochs=2\n");
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena, arena_printf(arena, "--lr 1 @%s --epochs 5", path), "",
                                &config, &err),
              &err);
    assert_true(config.value.optimizer.lr == 3);
    assert_int_equal(config.value.schedule.epochs, 5);
    const char *self = write_file(arena, directory, arena_printf(arena, "@%s/file", directory));
    assert_fails(config_line_parse(arena, arena_printf(arena, "@%s", self), "", &config, &err),
                 &err, ERR_CONFIG, "nested more than");
    support_remove_tree(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistaken_variables_are_told),
        cmocka_unit_test(stronger_sources_win),
        cmocka_unit_test(sources_reach_every_kind_of_key),
        cmocka_unit_test(variables_of_torchs_watch_are_read),
        cmocka_unit_test(a_former_name_is_as_strong_as_ours),
        cmocka_unit_test(files_are_refused_with_their_place),
        cmocka_unit_test(argument_files_expand_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
