/* Accelerate's YAML: the fourth document's file, each key of it, and what is refused in which
 * words. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config.h"
#include "agent/shard/shard.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* Writes what a row has, and what every file must have; returns the path. */
static const char *write_file(struct arena *arena, const char *directory, const char *text)
{
    const char *path = arena_printf(arena, "%s/fsdp.yaml", directory);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

#define FILE_OF_THE_DOCUMENT "tests/data/accelerate/default_config.yaml"

static void the_document_is_understood(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena,
                                "--config_file " FILE_OF_THE_DOCUMENT
                                " --model_name_or_path bert --output_dir out",
                                "", &config, &err),
              &err);
    const struct agent_config *c = &config.value;
    assert_string_equal(config.preset, "accelerate");
    assert_string_equal(
        config.warning,
        "tpu_env, tpu_use_cluster, tpu_use_sudo: passed over, there is no TPU "
        "backend; memory.cpu_offload slows training a lot: use it where nothing else fits");
    assert_int_equal(c->parallel.strategy, FULL_SHARD);
    assert_int_equal(c->parallel.wrap_policy, WRAP_TRANSFORMER);
    assert_string_equal(c->parallel.wrap_classes, "BertLayer");
    assert_int_equal(c->parallel.backward_prefetch, BACKWARD_PRE);
    assert_false(c->parallel.forward_prefetch);
    assert_true(c->memory.cpu_offload);
    assert_int_equal(c->checkpoint.state_dict_type, STATE_DICT_SHARDED);
    assert_int_equal(c->precision.mixed, PRECISION_BF16_MIXED);
    assert_int_equal(c->precision.reduce_dtype, STATE_BF16);
    assert_string_equal(c->runtime.nproc_per_node, "2");
    assert_string_equal(c->runtime.nnodes, "1");
    assert_int_equal(c->runtime.node_rank, 0);
    assert_string_equal(c->checkpoint.save_model, "out/model");
}

/* The resolved configuration without the quotes of its texts. */
static const char *plain_yaml(struct arena *arena, const char *line, const char *environment)
{
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena, line, environment, &config, &err), &err);
    auto_str struct str yaml;
    str_init(&yaml, 64 * 1024);
    config_yaml(&config, &yaml);
    char *text = arena_strdup(arena, str_text(&yaml)), *end = text;
    for (const char *c = text; *c; c++)
        if (!strchr("\"'", *c))
            *end++ = *c;
    *end = '\0';
    return text;
}

static void expect_in_yaml(struct arena *arena, const char *line, const char *environment,
                           const char *expected)
{
    const char *yaml = plain_yaml(arena, line, environment);
    if (!strstr(yaml, expected))
        print_error("%s: no %s\n", line, expected);
    assert_non_null(strstr(yaml, expected));
}

static void each_key_of_fsdp_config_has_its_meaning(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"{fsdp_sharding_strategy: 2}", "sharding_strategy: SHARD_GRAD_OP"},
        {"{sharding_strategy: no_shard}", "sharding_strategy: NO_SHARD"},
        {"{fsdp_sharding_strategy: 4}", "sharding_strategy: HYBRID_SHARD"},
        {"{fsdp_sharding_strategy: _HYBRID_SHARD_ZERO2}", "sharding_strategy: HYBRID_SHARD_ZERO2"},
        {"{fsdp_version: 2, fsdp_reshard_after_forward: true}", "sharding_strategy: FULL_SHARD"},
        {"{fsdp_version: 2, fsdp_reshard_after_forward: false}",
         "sharding_strategy: SHARD_GRAD_OP"},
        {"{fsdp_version: 2, fsdp_reshard_after_forward: 4}", "shard_group_size: 4"},
        {"{fsdp_reshard_after_forward: NO_SHARD}", "sharding_strategy: NO_SHARD"},
        {"{fsdp_version: 2}", "state_dict_type: SHARDED_STATE_DICT"},
        {"{fsdp_version: 1}", "state_dict_type: FULL_STATE_DICT"},
        {"{fsdp_state_dict_type: 2}", "state_dict_type: LOCAL_STATE_DICT"},
        {"{state_dict_type: sharded_state_dict}", "state_dict_type: SHARDED_STATE_DICT"},
        {"{fsdp_offload_params: true}", "cpu_offload: true"},
        {"{cpu_offload: true}", "cpu_offload: true"},
        {"{fsdp_wrap_policy: SIZE_BASED_WRAP, min_num_param: 2000}", "min_num_params: 2000"},
        {"{fsdp_auto_wrap_policy: SIZE_BASED_WRAP, fsdp_min_num_params: 0}",
         "auto_wrap_policy: NO_WRAP"},
        {"{fsdp_auto_wrap_policy: 2, fsdp_min_num_params: 1e6}",
         "auto_wrap_policy: SIZE_BASED_WRAP"},
        {"{transformer_layer_cls_to_wrap: [BertLayer, BertEmbeddings]}",
         "transformer_layer_cls_to_wrap: BertLayer,BertEmbeddings"},
        {"{fsdp_backward_prefetch: BACKWARD_POST}", "backward_prefetch: BACKWARD_POST"},
        {"{backward_prefetch_policy: 3}", "backward_prefetch: NO_PREFETCH"},
        {"{fsdp_forward_prefetch: true}", "forward_prefetch: true"},
        {"{fsdp_activation_checkpointing: true}", "activation_checkpointing: full"},
        {"{xla_fsdp_grad_ckpt: True}", "activation_checkpointing: full"},
        {"{xla: False, xla_fsdp_settings: {}}", "activation_checkpointing: none"},
        {"{limit_all_gathers: false}", "limit_all_gathers: false"},
        {"{fsdp_use_orig_params: true}", "limit_all_gathers: true"},
        {"{fsdp_mixed_precision_policy: bf16}", "mixed_precision: bf16"},
        {"{mixed_precision_policy: {param_dtype: torch.bfloat16, reduce_dtype: float32}}",
         "reduce_dtype: fp32"},
        {"{fsdp_mixed_precision_policy: {param_dtype: bfloat16, buffer_dtype: float32}}",
         "mixed_precision: bf16"},
        {"{fsdp_cpu_ram_efficient_loading: true}", "cpu_ram_efficient_loading: true"},
    };
    auto_free char *directory = support_temp_dir();
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        const char *text =
            arena_printf(arena, "distributed_type: FSDP\nfsdp_config: %s\n", rows[i].text);
        const char *path = write_file(arena, directory, text);
        expect_in_yaml(arena, arena_printf(arena, "--config_file %s --model_name m", path), "",
                       rows[i].expected);
        /* the file of --fsdp_config has the same keys */
        write_file(arena, directory, rows[i].text);
        expect_in_yaml(
            arena, arena_printf(arena, "--preset accelerate --model_name m --fsdp_config %s", path),
            "", rows[i].expected);
    }
    support_remove_tree(directory);
}

static void each_key_at_the_top_has_its_meaning(void **state)
{
    (void)state;
    static const struct {
        const char *text, *environment, *expected;
    } rows[] = {
        {"distributed_type: MULTI_GPU", "", "sharding_strategy: NO_SHARD"},
        {"distributed_type: MULTI_CPU", "", "sharding_strategy: NO_SHARD"},
        {"distributed_type: NO", "", "num_processes: 1"},
        {"distributed_type: 'NO'", "", "nproc_per_node: 1"},
        {"distributed_type: 'NO'\nnum_processes: 2", "", "nproc_per_node: 1"},
        {"distributed_type: FSDP\nnum_processes: 8\nnum_machines: 2", "", "nproc_per_node: 4"},
        {"distributed_type: FSDP\nnum_processes: 8\nnum_machines: 2", "", "nnodes: 2"},
        {"distributed_type: FSDP\nnum_processes: -1", "", "nproc_per_node: auto"},
        {"distributed_type: FSDP\nnum_machines: 1", "PET_NNODES=4", "nnodes:  # default"},
        {"distributed_type: FSDP\nmachine_rank: 1", "", "node_rank: 1"},
        {"distributed_type: FSDP\nmachine_rank: 0", "PET_NODE_RANK=3", "node_rank: -1"},
        {"distributed_type: FSDP\nmain_process_ip: 10.0.0.1", "", "master_addr: 10.0.0.1"},
        {"distributed_type: FSDP\nmain_process_port: 29501", "", "master_port: 29501"},
        {"distributed_type: FSDP\nmain_process_port: null", "", "master_port: 0"},
        {"distributed_type: FSDP\nmain_process_port: 0", "", "standalone: true"},
        {"distributed_type: FSDP\nmain_process_port: 0", "PET_MASTER_PORT=1", "standalone: false"},
        {"distributed_type: FSDP\ngpu_ids: 0,1", "", "gpu_ids: 0,1"},
        {"distributed_type: FSDP\ngpu_ids: 2", "", "gpu_ids: 2"},
        {"distributed_type: FSDP\nenable_cpu_affinity: true", "", "cpu_affinity: true"},
        {"distributed_type: FSDP\nrdzv_backend: static", "", "rdzv_backend: static"},
        {"distributed_type: FSDP\nmixed_precision: no", "", "mixed_precision: no"},
        {"distributed_type: FSDP\nmixed_precision: bf16", "", "reduce_dtype: bf16"},
        {"distributed_type: FSDP\nuse_cpu: true", "", "device: cpu"},
        {"distributed_type: FSDP\ndebug: true", "", "level: debug"},
        {"distributed_type: FSDP\nxla_fsdp_grad_ckpt: True", "", "activation_checkpointing: full"},
        {"distributed_type: FSDP\ndynamo_config: {dynamo_backend: 'NO'}", "", "device: auto"},
        {"distributed_type: FSDP\ngpu_ids: all\nenable_cpu_affinity: false\ntpu_env: []\n"
         "deepspeed_config: {}\nmain_training_function: main\ndowncast_bf16: 'no'",
         "", "device: auto"},
    };
    auto_free char *directory = support_temp_dir();
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        const char *path = write_file(arena, directory, rows[i].text);
        expect_in_yaml(arena, arena_printf(arena, "--config_file %s --model_name m", path),
                       rows[i].environment, rows[i].expected);
    }
    support_remove_tree(directory);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"distributed_type: FSDP\nzero: 1\nnum_gpus: 2\n",
         "had unknown keys (['num_gpus', 'zero']), please try upgrading your `accelerate` version "
         "or fix (and potentially remove) these keys from your config file."},
        {"distributed_type: FSDP\nnum_process: 2\nzero: 1\n",
         "these keys from your config file. The nearest to 'num_process' is num_processes."},
        {"distributed_type: FSPD\n", "distributed_type: 'FSPD' (the nearest is FSDP) is not"},
        {"compute_environment: LOCAL_MACHINE\n", "A `distributed_type` must be specified in"},
        {"distributed_type: DEEPSPEED\n", "distributed_type: 'DEEPSPEED' is not supported"},
        {"distributed_type: FSDP\ncompute_environment: AMAZON_SAGEMAKER\n",
         "compute_environment: 'AMAZON_SAGEMAKER': only LOCAL_MACHINE is supported"},
        {"distributed_type: FSDP\nmixed_precision: fp8\n", "mixed_precision: 'fp8'"},
        {"distributed_type: FSDP\nmixed_precision: fp16\n", "mixed_precision: 'fp16'"},
        {"distributed_type: FSDP\ntpu_use_cluster: true\n", "tpu_use_cluster: 'true': there is no"},
        {"distributed_type: FSDP\ndeepspeed_config: {zero_stage: 3}\n",
         "deepspeed_config: not supported: leave it empty"},
        {"distributed_type: FSDP\ndynamo_config: {dynamo_backend: INDUCTOR}\n",
         "dynamo_config: there is nothing like torch.compile here"},
        {"distributed_type: FSDP\nxla: True\n", "xla: 'true': there is no TPU backend"},
        {"distributed_type: FSDP\nnum_processes: 0\n", "num_processes: '0': at least one process"},
        {"distributed_type: FSDP\ntpu_env: [A=1]\n", "tpu_env: 'A=1': there is no TPU backend"},
        {"distributed_type: FSDP\nfp8_config: {a: 1}\n", "fp8_config: not supported: leave it"},
        {"distributed_type: FSDP\nfsdp_config: {mixed_precision_policy: {param_dtype: float16}}\n",
         "mixed_precision_policy.param_dtype: 'fp16': not supported: fp16's gradients"},
        {"distributed_type: FSDP\nfsdp_config: {mixed_precision_policy: {param: bf16}}\n",
         "mixed_precision_policy.param: it has param_dtype and reduce_dtype"},
        {"distributed_type: FSDP\nnum_processes: 3\nnum_machines: 2\n",
         "3 processes cannot be divided among 2 pods"},
        {"distributed_type: FSDP\nfsdp_config: 3\n", "fsdp_config: must be a mapping"},
        {"distributed_type: FSDP\nfsdp_config: {xla: true}\n",
         "xla: 'true': there is no TPU backend"},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: 6}\n",
         "fsdp_config: fsdp_sharding_strategy: '6' is not one of"},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_backward_prefetchh: 1}\n",
         "unknown key 'fsdp_backward_prefetchh'; the nearest is fsdp_backward_prefetch"},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_shading_strategy: 1}\n",
         "unknown key 'fsdp_shading_strategy'; the nearest is fsdp_sharding_strategy"},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 3}\n",
         "fsdp_version: '3': only 1 and 2 exist"},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_state_dict_type: LOCAL_STATE_DICT}\n",
         "fsdp_version 2 has no LOCAL_STATE_DICT"},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_forward_prefetch: true}\n",
         "fsdp_version 2 has none"},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_ignored_modules: x}\n",
         "fsdp_ignored_modules: 'x': not supported: every parameter lies in a unit"},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_cpu_ram_efficient_loading: true, "
         "fsdp_sync_module_states: false}\n",
         "When using --fsdp_cpu_ram_efficient_loading set --fsdp_sync_module_states to True"},
    };
    auto_free char *directory = support_temp_dir();
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        const char *path = write_file(arena, directory, rows[i].text);
        const char *line = arena_printf(arena, "--config_file %s --model_name m", path);
        assert_fails(config_line_parse(arena, line, "", &config, &err), &err, ERR_CONFIG,
                     rows[i].message);
    }
    support_remove_tree(directory);
}

static void what_changes_nothing_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *warning;
    } rows[] = {
        {"distributed_type: FSDP\nmain_training_function: train\n",
         "main_training_function is ignored: it changes nothing here"},
        {"distributed_type: NO\nfsdp_config: {fsdp_version: 1}\n",
         "fsdp_config is ignored: distributed_type is false"},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_sync_module_states: false}\n",
         "parallel.sync_module_states=false is ignored: all ranks begin with the same values "
         "anyway"},
        {"distributed_type: FSDP\nsame_network: false\ndowncast_bf16: 'no'\n", ""},
        {"distributed_type: FSDP\nxla_fsdp_grad_ckpt: true\n",
         "xla_fsdp_grad_ckpt stands for memory.activation_checkpointing"},
        {"distributed_type: FSDP\nxla_fsdp_grad_ckpt: false\n", ""},
        {"distributed_type: FSDP\ntpu_use_sudo: true\n",
         "tpu_use_sudo: passed over, there is no TPU backend"},
        {"distributed_type: FSDP\nfsdp_config: {mixed_precision_policy: {buffer_dtype: bf16}}\n",
         "mixed_precision_policy.buffer_dtype is ignored: there is nothing that it could change"},
        {"distributed_type: FSDP\ntpu_env: []\ntpu_use_sudo: false\ncommands: null\n",
         "tpu_env, tpu_use_sudo, commands: passed over, there is no TPU backend"},
    };
    auto_free char *directory = support_temp_dir();
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        const char *path = write_file(arena, directory, rows[i].text);
        const char *line = arena_printf(arena, "--config_file %s --model_name m", path);
        assert_ok(config_line_parse(arena, line, "", &config, &err), &err);
        assert_string_equal(config.warning, rows[i].warning);
    }
    support_remove_tree(directory);
}

static const char *summary_of(struct arena *arena, const char *line, const char *environment)
{
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena, line, environment, &config, &err), &err);
    struct str text;
    str_init(&text, 16 * 1024);
    config_line_summary(&config, &text);
    const char *copy = arena_strdup(arena, str_text(&text));
    str_free(&text);
    return copy;
}

static const struct {
    const char *line, *environment, *expected;
} meanings[] = {
    {"--fsdp=full_shard,auto_wrap,offload", "", "memory.cpu_offload=true (flag)"},
    {"--fsdp full_shard_auto_wrap", "", "parallel.auto_wrap_policy=TRANSFORMER_BASED_WRAP (flag)"},
    {"--fsdp shard-grad-op", "", "parallel.sharding_strategy=SHARD_GRAD_OP (flag)"},
    {"--fsdp hybrid_shard_zero2", "", "parallel.sharding_strategy=HYBRID_SHARD_ZERO2 (flag)"},
    {"--fsdp_min_num_params 2000 --fsdp full_shard,auto_wrap", "",
     "parallel.auto_wrap_policy=SIZE_BASED_WRAP (flag)"},
    {"--fsdp full_shard,auto_wrap --fsdp_min_num_params 0", "",
     "parallel.auto_wrap_policy=TRANSFORMER_BASED_WRAP (flag)"},
    {"--fsdp=auto_wrap --fsdp_config={\"min_num_params\":2000}", "",
     "parallel.auto_wrap_policy=SIZE_BASED_WRAP (flag)"},
    {"--fsdp=auto_wrap --auto_wrap_policy TRANSFORMER_BASED_WRAP --min_num_params 9", "",
     "parallel.auto_wrap_policy=TRANSFORMER_BASED_WRAP (flag)"},
    {"--preset accelerate --model_name m --max_steps 500", "",
     "schedule.num_train_epochs=0 (flag)"},
    {"--preset accelerate --model_name m --max_train_steps 500 --num_train_epochs 2", "",
     "schedule.num_train_epochs=0 (flag)"},
    {"--preset accelerate,bert-base --max_steps 500", "", "schedule.num_train_epochs=0 (flag)"},
    {"--preset bert-base,accelerate --max_steps 500", "", "schedule.num_train_epochs=0 (flag)"},
    {"--preset accelerate,hyperpod --max_steps 500", "", "schedule.num_train_epochs=3 (preset)"},
    {"--fsdp --fsdp_config={\"reshard_after_forward\":false}", "",
     "parallel.sharding_strategy=SHARD_GRAD_OP (file)"},
    {"--fsdp true --fsdp_sharding_strategy 2", "",
     "parallel.sharding_strategy=SHARD_GRAD_OP (flag)"},
    {"--fsdp false", "", "parallel.sharding_strategy=NO_SHARD (flag)"},
    {"--preset accelerate,bert-base --fsdp_version 2 --checkpoint_dir d", "",
     "checkpoint.state_dict_type=SHARDED_STATE_DICT (flag)"},
    {"--preset accelerate,bert-base --checkpoint_dir d", "FSDP_VERSION=2",
     "checkpoint.state_dict_type=SHARDED_STATE_DICT (environment)"},
    {"--preset accelerate,bert-base --checkpoint_dir d --fsdp_version 1", "FSDP_VERSION=2",
     "checkpoint.state_dict_type=FULL_STATE_DICT (preset)"},
    {"--preset accelerate,bert-base --checkpoint_dir d --fsdp_version 2",
     "FSDP_STATE_DICT_TYPE=FULL_STATE_DICT",
     "checkpoint.state_dict_type=FULL_STATE_DICT (environment)"},
    {"--zero_stage 2", "", "parallel.sharding_strategy=SHARD_GRAD_OP (flag)"},
    {"--zero_stage 0", "", "parallel.sharding_strategy=NO_SHARD (flag)"},
    {"--num_processes 4", "", "runtime.num_processes=4 (flag)"},
    {"--model_name m", "FSDP_SHARDING_STRATEGY=3",
     "parallel.sharding_strategy=NO_SHARD (environment)"},
    {"--model_name m", "FSDP_RESHARD_AFTER_FORWARD=false",
     "parallel.sharding_strategy=SHARD_GRAD_OP (environment)"},
    {"--model_name m", "ACCELERATE_USE_FSDP=true",
     "checkpoint.name_format=checkpoint-{step} (preset)"},
    {"--model_name m", "ACCELERATE_USE_CPU=true", "runtime.device=cpu (environment)"},
    {"--model_name m", "ACCELERATE_CPU_AFFINITY=1", "runtime.cpu_affinity=true (environment)"},
    {"--model_name m", "ACCELERATE_MIXED_PRECISION=no",
     "precision.mixed_precision=no (environment)"},
    {"--config_file " FILE_OF_THE_DOCUMENT " --model_name m --fsdp_sharding_strategy 2", "",
     "parallel.sharding_strategy=SHARD_GRAD_OP (flag)"},
    {"--config_file " FILE_OF_THE_DOCUMENT " --model_name m --mixed_precision no", "",
     "precision.mixed_precision=no (flag)"},
};

/* Trainer's --fsdp, what accelerate's launcher tells its processes, and who wins. */
static void flags_and_variables_have_their_meaning(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(meanings); i++) {
        auto_arena struct arena *arena = arena_open();
        const char *summary = summary_of(arena, meanings[i].line, meanings[i].environment);
        if (!strstr(summary, meanings[i].expected))
            print_error("%s: %s\n", meanings[i].line, summary);
        assert_non_null(strstr(summary, meanings[i].expected));
    }
}

static void wrong_flags_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *environment, *message;
    } rows[] = {
        {"--fsdp fullshard", "", "--fsdp: 'fullshard': it knows full_shard, shard_grad_op"},
        {"--fsdp_version 2 --fsdp_state_dict_type 2", "", "fsdp_version 2 has no LOCAL_STATE_DICT"},
        {"--forward_prefetch", "FSDP_VERSION=2", "fsdp_forward_prefetch: fsdp_version 2 has none"},
        {"--fsdp_version 3", "", "--fsdp_version: '3': only 1 and 2 exist"},
        {"--zero_stage 1", "", "--zero_stage: '1' is not one of: 0 2 3"},
        {"--preset accelerate --lr 1", "", "model.name_or_path is not set"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        assert_fails(config_line_parse(arena, rows[i].line, rows[i].environment, &config, &err),
                     &err, ERR_CONFIG, rows[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document_is_understood),
        cmocka_unit_test(each_key_of_fsdp_config_has_its_meaning),
        cmocka_unit_test(each_key_at_the_top_has_its_meaning),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(what_changes_nothing_is_told),
        cmocka_unit_test(flags_and_variables_have_their_meaning),
        cmocka_unit_test(wrong_flags_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
