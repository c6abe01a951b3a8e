/* What is given and has no effect: each time told, with what it needs. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config_keys.h"
#include "agent/config/config_model.h"
#include "agent/shard/optim_kind.h"
#include "base/mem.h"

static const struct {
    const char *line, *warning;
} unused[] = {
    {"--model_type gpt2 --target_column x",
     "data.target_column is ignored: it needs a sequence-to-sequence model"},
    {"--model_type bert --head masked_lm --label_names a,b --packing none",
     "data.label_names is ignored: it needs sequence classification"},
    {"--model_type t5 --max_seq_length 64",
     "data.max_seq_length is ignored: it needs another model (sequence to sequence: "
     "data.max_source_length and max_target_length)"},
    {"--text_column x", "data.text_column is ignored: it needs a language model"},
    {"--shard_group_size 2", "parallel.shard_group_size is ignored: it needs a HYBRID strategy"},
    {"--sharding_strategy NO_SHARD --backward_prefetch BACKWARD_POST --forward_prefetch=false "
     "--limit_all_gathers=false",
     "parallel.backward_prefetch is ignored: it needs another strategy than NO_SHARD; "
     "parallel.forward_prefetch is ignored: it needs another strategy than NO_SHARD; "
     "parallel.limit_all_gathers is ignored: it needs another strategy than NO_SHARD"},
    {"--sharding_strategy SHARD_GRAD_OP --forward_prefetch=false", ""},
    {"--project p", "logging.wandb_project is ignored: it needs logging.wandb=offline"},
    {"--hang_action report --hang_patience 5",
     "runtime.hang_patience is ignored: it needs runtime.hang_action=restart"},
    {"--optim sgd --momentum 0.9", ""},
    {"--momentum 0", ""},
    {"--step_size 3 --unit step",
     "schedule.step_size is ignored: it needs schedule.type=step; schedule.unit is ignored: it "
     "needs schedule.type=step"},
    {"--schedule.type step --step_size 3 --unit step", ""},
    {"--schedule.type step --min_lr 1e-6",
     "schedule.min_lr is ignored: it needs a schedule.type that falls, other than step"},
    {"--min_lr 1e-6 --lr_decay_iters 5",
     "schedule.decay_steps is ignored: it needs a schedule.type that falls until an end, or a "
     "schedule.warmup_ratio; "
     "schedule.min_lr is ignored: it needs a schedule.type that falls, other than step"},
    {"--lr_decay_iters 50 --warmup 0.1", ""},
    {"--schedule.type hf_inverse_sqrt --min_lr 1e-6 --lr_decay_iters 5",
     "schedule.decay_steps is ignored: it needs a schedule.type that falls until an end, or a "
     "schedule.warmup_ratio"},
    {"--schedule.type hf_linear --min_lr 1e-6 --lr_decay_iters 5", ""},
    {"--schedule.resume checkpoint", "schedule.resume is ignored: it needs checkpoint.dir or "
                                     "checkpoint.resume_from_checkpoint"},
    {"--lr_scheduler_type constant --warmup_steps 3",
     "schedule.warmup_steps is ignored: it needs another schedule.type than step or "
     "hf_constant"},
    {"--schedule.type cosine --num_cycles 2",
     "schedule.num_cycles is ignored: it needs schedule.type=hf_cosine, "
     "hf_cosine_with_restarts or wsd"},
    {"--model_type llama --rope_type none --factor 2",
     "model.rope_scaling.factor is ignored: it needs rope_type linear, dynamic or llama3"},
    {"--model_type llama_v3 --low_freq_factor 2",
     "model.rope_scaling.low_freq_factor is ignored: it needs rope_type=llama3"},
    {"--model_type llama --auto_wrap_policy NO_WRAP --transformer_layer_cls_to_wrap A",
     "parallel.transformer_layer_cls_to_wrap is ignored: it needs "
     "auto_wrap_policy=TRANSFORMER_BASED_WRAP"},
    {"--state_dict_type FULL_STATE_DICT",
     "checkpoint.state_dict_type is ignored: it needs checkpoint.dir"},
    {"--keep_last 2 --checkpoint_dir c --async", ""},
    {"--max_restarts 1 --monitor_interval 5", ""},
    {"--monitor_interval 5",
     "runtime.monitor_interval is ignored: it needs runtime.max_restarts, or "
     "runtime.nnodes=MIN:MAX"},
    {"--nnodes 1:2 --monitor_interval 5 --shrink_after 3", ""},
    {"--nnodes 2:2 --shrink_after 3",
     "runtime.shrink_after is ignored: it needs runtime.nnodes=MIN:MAX"},
    {"--nnodes 1:2 --hang_patience 5",
     "runtime.hang_patience is ignored: it needs runtime.max_restarts"},
    {"--max_restarts 1 --hang_patience 5", ""},
    {"--auto_resume=false", ""}, /* there are restarts in a PyTorchJob's pod */
    {"--auto_resume=false --max_restarts 0",
     "checkpoint.auto_resume is ignored: it needs checkpoint.dir or runtime.max_restarts"},
    {"--checkpoint.prefix a", "checkpoint.prefix is ignored: it needs checkpoint.dir"},
    {"--checkpoint_dir c --checkpoint.prefix a --name_format {step}",
     "checkpoint.prefix is ignored: it needs {prefix} in checkpoint.name_format"},
    {"--model_type mnist_cnn --hidden_size 5 --dataset other --tokenizer t --train_split foo",
     "model.config_overrides.hidden_size is ignored: it needs a language model; "
     "data.dataset is ignored: it needs a language model; "
     "data.tokenizer is ignored: it needs a language model; "
     "data.train_split is ignored: it needs a language model"},
    {"--model_type mnist_cnn --dropout 0.1 --same_seed", ""},
    {"--model_type llama --same_seed --dropout 0.5",
     "runtime.same_seed is ignored: it needs a model with dropout; "
     "dropout is ignored: the model has none"},
    {"--init random --init_weights w",
     "model.init=random is ignored: model.init_weights says where values are"},
    {"--max_shard_size 2GiB",
     "checkpoint.max_shard_size is ignored: it needs checkpoint.save_model of a language "
     "model, or FULL_STATE_DICT"},
    {"--log_dir d", "runtime.log_dir is ignored: it needs runtime.redirects or runtime.tee"},
    {"--no_cuda --share_gpus",
     "runtime.share_gpus is ignored: it needs another runtime.device than cpu"},
    {"--dump_path d --dump_on_timeout=false",
     "runtime.dump_path is ignored: it needs GPUs, and runtime.dump_on_timeout"},
    {"--activation_loading_horizon 3",
     "memory.activation_loading_horizon is ignored: it needs memory.offload_activations"},
    {"--activation_checkpointing full --offload_activations",
     "memory.activation_checkpointing is ignored: it needs a language model; "
     "memory.offload_activations is ignored: it needs a language model"},
    {"--model_type t5 --activation_checkpointing selective --offload_activations", ""},
    {"--model_type llama --num_workers 0 --prefetch_factor 9",
     "data.prefetch_factor is ignored: it needs data.num_workers above 0"},
    {"--no_cuda --collectives nccl",
     "runtime.collectives is ignored: it needs another runtime.device than cpu"},
    {"--no_cuda --exit_if_stuck 0 --heartbeat_timeout 9",
     "runtime.exit_if_stuck is ignored: it needs another runtime.device than cpu; "
     "runtime.heartbeat_timeout is ignored: it needs another runtime.device than cpu"},
    {"--collectives nccl", ""},
    {"--model_type llama --format text --text_column x",
     "data.text_column is ignored: it needs rows: data.format jsonl, hf_arrow, tsv or csv"},
    {"--model_type llama --format llmc_bin --add_bos",
     "data.add_bos is ignored: it needs documents: token files have their ids"},
    {"--eval_strategy no --eval_batch_size 3 --eval_split x",
     "data.eval_split is ignored: it needs an eval.eval_strategy; data.eval_batch_size is "
     "ignored: it needs an eval.eval_strategy"},
    {"--model_type llama --eval_strategy no --validation_file x",
     "data.eval_dataset is ignored: it needs an eval.eval_strategy"},
    {"--eval_strategy no --max_batches 3",
     "eval.max_batches is ignored: it needs an eval.eval_strategy"},
};

/* Keys that only other choices use are told. */
static void what_has_no_use_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(unused); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        assert_ok(config_line_parse(arena, unused[i].line, "", &config, &err), &err);
        assert_string_equal(config.warning, unused[i].warning);
    }
}

/* Whoever started this process may have said how often it does so. */
static void restarts_are_the_environments(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        bool has_use;
    } rows[] = {{"", false},
                {"SHOAL_RESTART_COUNT=0", true},
                {"PET_MAX_RESTARTS=2", true},
                {"PET_NNODES=1:2", true},
                {"PET_NNODES=2", false},
                {"TORCHELASTIC_MAX_RESTARTS=0", false},
                {"TORCHELASTIC_MAX_RESTARTS=3", true}};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        assert_ok(
            config_line_parse(arena, "--monitor_interval 5", rows[i].environment, &config, &err),
            &err);
        assert_int_equal(config.warning[0] == '\0', rows[i].has_use);
    }
}

/* The optimizers that have a use for it are those of the table. */
static void what_the_optimizer_has_no_use_for_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *line, *keys[2];
        enum optim_use use;
    } rows[] = {
        {"--momentum 0.9", {"momentum"}, OPTIM_USES_MOMENTUM},
        {"--momentum 0.9 --nesterov", {"momentum", "nesterov"}, OPTIM_USES_MOMENTUM},
        {"--optim sgd --beta1 0.8", {"beta1"}, OPTIM_USES_BETAS},
        {"--optim sgd --eps 1", {"eps"}, OPTIM_USES_EPS},
        {"--rho 0.8", {"rho"}, OPTIM_USES_RHO},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        auto_str struct str warning;
        struct config config;
        struct error err;
        str_init(&warning, 512);
        for (int k = 0; k < 2 && rows[i].keys[k]; k++) {
            str_printf(&warning,
                       "%soptimizer.%s is ignored: it needs optimizer.name=", k ? "; " : "",
                       rows[i].keys[k]);
            optim_users(rows[i].use, &warning);
        }
        assert_ok(config_line_parse(arena, rows[i].line, "", &config, &err), &err);
        assert_string_equal(config.warning, str_text(&warning));
    }
}

/* That a model has no use for a key may be known only when its config.json has been read. */
static void what_a_named_model_has_no_use_for_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const struct model_family *family;
        const char *before, *after;
    } rows[] = {
        {"--dropout 0.5", &family_llama, "", "dropout is ignored: the model has none"},
        {"--attn_pdrop 0.5", &family_mistral, "", "dropout is ignored: the model has none"},
        {"--dropout 0.5 --attn_pdrop 0.5", &family_gpt2, "", ""},
        {"--dropout 0", &family_llama, "", ""},
        {"--model_type llama --dropout 0.5", &family_llama,
         "dropout is ignored: the model has none", "dropout is ignored: the model has none"},
        {"--mlm_probability 0.3 --target_column t --max_source_length 9 --label_names a "
         "--label_column l",
         &family_gpt2, "",
         "data.target_column is ignored: it needs a sequence-to-sequence model; "
         "data.label_column is ignored: it needs sequence classification; "
         "data.label_names is ignored: it needs sequence classification; "
         "data.max_source_length is ignored: it needs a sequence-to-sequence model; "
         "data.mlm_probability is ignored: it needs masked words to be learned"},
        {"--shard_group_size 2 --mlm_probability 0.3", &family_llama,
         "parallel.shard_group_size is ignored: it needs a HYBRID strategy",
         "parallel.shard_group_size is ignored: it needs a HYBRID strategy; "
         "data.mlm_probability is ignored: it needs masked words to be learned"},
        {"--max_seq_length 9 --packing none --max_source_length 9", &family_t5, "",
         "data.max_seq_length is ignored: it needs another model (sequence to sequence: "
         "data.max_source_length and max_target_length); "
         "data.packing is ignored: it needs documents: causal or masked words"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        auto_str struct str line;
        struct config config;
        struct error err;
        struct architecture a = architecture_default(rows[i].family);
        str_init(&line, 512);
        str_printf(&line, "--model_name somewhere %s", rows[i].line);
        assert_ok(config_line_parse(arena, str_text(&line), "", &config, &err), &err);
        assert_string_equal(config.warning, rows[i].before);
        config_warn_architecture(&config, &a, arena);
        assert_string_equal(config.warning, rows[i].after);
    }
}

static void add_key(struct str *out, const struct config_key *key)
{
    str_printf(out, "%s%s.%s", out->length ? " " : "", key->group, key->name);
}

/* Whether some need of the key is unmet. */
static bool is_idle(const struct config_key *key, const struct agent_config *c)
{
    for (int k = 0; k < CONFIG_MAX_NEEDS; k++)
        if (!config_need_is_met(key->needs[k], c))
            return true;
    return false;
}

/* A key that acts under all settings, or tells itself when it does not, is on this list; any other
 * says in its row what it needs. */
static void every_key_has_needs_or_acts_always(void **state)
{
    (void)state;
    static const char always[] =
        "model.type model.init model.init_weights model.head model.dropout model.loss_reduction "
        "data.root data.per_device_train_batch_size data.train_size data.shuffle data.drop_last "
        "optimizer.name optimizer.lr optimizer.weight_decay optimizer.grad_clip "
        "optimizer.gradient_accumulation_steps optimizer.state_dtype schedule.type "
        "schedule.max_steps schedule.num_train_epochs eval.eval_strategy checkpoint.dir "
        "checkpoint.save_steps checkpoint.keep_last checkpoint.resume_from_checkpoint "
        "checkpoint.async checkpoint.allow_nonfinite checkpoint.save_model "
        "parallel.sharding_strategy parallel.auto_wrap_policy parallel.reduction_slots parallel.sync_module_states "
        "parallel.cpu_ram_efficient_loading precision.mixed_precision precision.reduce_dtype "
        "memory.cpu_offload memory.log_memory logging.logging_steps logging.style logging.lang "
        "logging.level logging.csv logging.jsonl logging.tensorboard_dir logging.wandb "
        "logging.prometheus_port profiler.enable runtime.seed runtime.device "
        "runtime.cpu_affinity runtime.cuda_graphs runtime.threads runtime.nproc_per_node "
        "runtime.num_processes runtime.nnodes runtime.node_rank runtime.master_addr "
        "runtime.master_port runtime.rdzv_backend runtime.rdzv_endpoint runtime.rdzv_id "
        "runtime.standalone runtime.max_restarts runtime.redirects runtime.tee runtime.timeout "
        "runtime.hang_action runtime.join_timeout runtime.nan_policy runtime.strict runtime.script runtime.dry_run";
    auto_str struct str keys;
    str_init(&keys, 8192);
    for (int i = 0; i < config_key_count(); i++)
        if (config_key(i)->needs[0] == NEED_NOTHING)
            add_key(&keys, config_key(i));
    assert_string_equal(str_text(&keys), always);
}

/* The keys that do nothing for a model, whatever else is set. */
static void every_model_ignores_what_it_has_no_use_for(void **state)
{
    (void)state;
    static const struct {
        const char *line, *keys;
    } rows[] = {
        {"--model_type mnist_cnn",
         "model.name_or_path model.architecture model.config_overrides.vocab_size "
         "model.config_overrides.hidden_size model.config_overrides.intermediate_size "
         "model.config_overrides.num_hidden_layers model.config_overrides.num_attention_heads "
         "model.config_overrides.num_key_value_heads model.config_overrides.head_dim "
         "model.config_overrides.max_position_embeddings model.config_overrides.rms_norm_eps "
         "model.config_overrides.layer_norm_epsilon model.config_overrides.rope_theta "
         "model.config_overrides.initializer_range model.config_overrides.tie_word_embeddings "
         "model.config_overrides.resid_pdrop model.config_overrides.embd_pdrop "
         "model.config_overrides.attn_pdrop model.config_overrides.bos_token_id "
         "model.config_overrides.eos_token_id model.config_overrides.pad_token_id "
         "model.config_overrides.num_labels model.rope_scaling.rope_type data.dataset "
         "data.dataset_config_name data.format data.text_column data.text_pair_column "
         "data.target_column data.source_prefix data.label_column data.label_names "
         "data.tokenizer data.max_seq_length data.max_source_length data.max_target_length "
         "data.padding data.pad_to_multiple_of data.label_pad_token_id data.mlm_probability "
         "data.packing data.add_bos data.add_eos data.train_split data.eval_split "
         "data.eval_dataset data.shuffle_buffer data.num_workers data.prefetch_factor data.loader_timeout "
         "precision.fp8 memory.activation_checkpointing memory.offload_activations runtime.deterministic "
         "runtime.tune"},
        {"--model_type llama",
         "data.text_pair_column data.target_column data.source_prefix data.label_column "
         "data.label_names data.max_source_length data.max_target_length data.padding "
         "data.pad_to_multiple_of data.label_pad_token_id data.mlm_probability runtime.same_seed"},
        {"--model_type gpt2",
         "data.text_pair_column data.target_column data.source_prefix data.label_column "
         "data.label_names data.max_source_length data.max_target_length data.padding "
         "data.pad_to_multiple_of data.label_pad_token_id data.mlm_probability"},
        {"--model_type t5",
         "data.text_pair_column data.label_column data.label_names data.max_seq_length "
         "data.mlm_probability data.packing data.shuffle_buffer data.prefetch_factor "
         "data.loader_timeout"},
        {"--model_type bert --head masked_lm",
         "data.text_pair_column data.target_column data.source_prefix data.label_column "
         "data.label_names data.max_source_length data.max_target_length data.label_pad_token_id "
         "data.add_bos data.add_eos data.shuffle_buffer data.prefetch_factor data.loader_timeout"},
        {"--model_type bert --head pretraining",
         "data.text_pair_column data.target_column data.source_prefix data.label_column "
         "data.label_names data.max_source_length data.max_target_length data.label_pad_token_id "
         "data.packing data.add_bos data.add_eos data.shuffle_buffer data.prefetch_factor "
         "data.loader_timeout"},
        {"--model_type bert --head sequence_classification",
         "data.target_column data.source_prefix data.max_source_length data.max_target_length "
         "data.label_pad_token_id data.mlm_probability data.packing data.add_bos data.add_eos "
         "data.shuffle_buffer data.prefetch_factor data.loader_timeout"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        auto_str struct str keys;
        struct config config;
        struct error err;
        str_init(&keys, 8192);
        assert_ok(config_line_parse(arena, rows[i].line, "", &config, &err), &err);
        struct agent_config any = config.value;
        any.model.type = MODEL_AUTO;
        any.model.head = HEAD_AUTO;
        for (int k = 0; k < config_key_count(); k++)
            if (is_idle(config_key(k), &config.value) && !is_idle(config_key(k), &any))
                add_key(&keys, config_key(k));
        assert_string_equal(str_text(&keys), rows[i].keys);
    }
}

static void what_lies_beyond_the_end_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *line, *headline;
    } rows[] = {
        {"--max_steps 4 --eval_steps 5",
         "eval.eval_steps=5 is beyond schedule.max_steps=4: the run is never evaluated\n"},
        {"--max_steps 4 --eval_steps 4", ""},
        {"--max_steps 4 --eval_steps 5 --eval_strategy epoch", ""},
        {"--epochs 1 --eval_steps 5", ""},
        {"--max_steps 4 --warmup_steps 4",
         "schedule.warmup_steps=4 is not below schedule.max_steps=4: the rate never reaches "
         "optimizer.lr\n"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        assert_ok(config_line_parse(arena, rows[i].line, "", &config, &err), &err);
        assert_string_equal(config.headline, rows[i].headline);
    }
}

static void variables_without_use_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *warning;
    } rows[] = {
        {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
         "PYTORCH_CUDA_ALLOC_CONF is ignored: it tunes PyTorch's allocator; this one keeps what a "
         "step needs and gives it out again"},
        {"HF_DATASETS_CACHE=/cache", "HF_DATASETS_CACHE is ignored: data sets are looked for at "
                                     "their paths, below data.root and in the hub's cache"},
        {"PYTORCH_CUDA_ALLOC_CONF=", ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        assert_ok(config_line_parse(arena, "", rows[i].variable, &config, &err), &err);
        assert_string_equal(config.warning, rows[i].warning);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_use_is_told),
        cmocka_unit_test(restarts_are_the_environments),
        cmocka_unit_test(what_the_optimizer_has_no_use_for_is_told),
        cmocka_unit_test(what_a_named_model_has_no_use_for_is_told),
        cmocka_unit_test(every_key_has_needs_or_acts_always),
        cmocka_unit_test(every_model_ignores_what_it_has_no_use_for),
        cmocka_unit_test(what_lies_beyond_the_end_is_told),
        cmocka_unit_test(variables_without_use_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
