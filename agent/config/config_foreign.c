/* Flags and values of other trainers: the keys that they set here, and those that are refused. */
#include "agent/config/config_keys.h"

/* With their groups, too: in files a key stands in one. */
#define BF16     "bf16 precision.bf16"
#define PREFETCH "use_prefetch parallel.use_prefetch"
#define ZERO     "zero_stage parallel.zero_stage"
#define LR_DECAY "lr_decay schedule.lr_decay"
#define LOADING                                                                                    \
    "cpu_ram_efficient_loading fsdp_cpu_ram_efficient_loading parallel.cpu_ram_efficient_loading"
#define RESHARD "fsdp_reshard_after_forward reshard_after_forward parallel.reshard_after_forward"
#define POLICY  "fsdp_mixed_precision_policy mixed_precision_policy precision.mixed_precision_policy"
#define RESUME  "resume resume_from_checkpoint checkpoint.resume_from_checkpoint"

const struct config_alias config_aliases[] = {
    {"no_cuda", "true", "runtime.device", "cpu", ALWAYS},
    {"no_cuda", "false", "runtime.device", "auto", ALWAYS},
    {"max_context_width", NULL, "model.config_overrides.max_position_embeddings", NULL, ALWAYS},
    {"max_context_width", NULL, "data.max_seq_length", NULL, ALWAYS},
    {BF16, "true", "precision.mixed_precision", "bf16", ALWAYS},
    {BF16, "false", "precision.mixed_precision", "no", ALWAYS},
    {PREFETCH, "true", "parallel.backward_prefetch", "BACKWARD_PRE", ALWAYS},
    {PREFETCH, "true", "parallel.forward_prefetch", "true", ALWAYS},
    {PREFETCH, "false", "parallel.backward_prefetch", "NO_PREFETCH", ALWAYS},
    {PREFETCH, "false", "parallel.forward_prefetch", "false", ALWAYS},
    {"use_cpu", "true", "runtime.device", "cpu", ALWAYS},
    {"use_cpu", "false", "runtime.device", "auto", UNLESS_GIVEN},
    /* "0 = pick a free one", which is a pod's alone. */
    {"main_process_port", "0", "runtime.standalone", "true", ALWAYS},
    {"main_process_port", "number", "runtime.master_port", NULL, ALWAYS},
    {"main_process_port", "word", "runtime.master_port", NULL, ALWAYS},
    {"debug", "true", "logging.level", "debug", ALWAYS},
    {"debug", "false", "logging.level", "info", UNLESS_GIVEN},
    /* Accelerate's second version: true, false, or how many ranks share a copy. */
    {RESHARD, "true", "parallel.sharding_strategy", "FULL_SHARD", ALWAYS},
    {RESHARD, "false", "parallel.sharding_strategy", "SHARD_GRAD_OP", ALWAYS},
    {RESHARD, "number", "parallel.sharding_strategy", "HYBRID_SHARD", ALWAYS},
    {RESHARD, "number", "parallel.shard_group_size", NULL, ALWAYS},
    {RESHARD, "word", "parallel.sharding_strategy", NULL, ALWAYS},
    {POLICY, NULL, "precision.mixed_precision", NULL, ALWAYS},
    {ZERO, "0", "parallel.sharding_strategy", "NO_SHARD", ALWAYS},
    {ZERO, "2", "parallel.sharding_strategy", "SHARD_GRAD_OP", ALWAYS},
    {ZERO, "3", "parallel.sharding_strategy", "FULL_SHARD", ALWAYS},
    {LOADING, "true", "parallel.cpu_ram_efficient_loading", "true", ALWAYS},
    {LOADING, "each", "parallel.cpu_ram_efficient_loading", "true", ALWAYS},
    {LOADING, "false", "parallel.cpu_ram_efficient_loading", "false", ALWAYS},
    {"xla_fsdp_grad_ckpt", "true", "memory.activation_checkpointing", "full", ALWAYS},
    {"xla_fsdp_grad_ckpt", "false", "memory.activation_checkpointing", "none", UNLESS_GIVEN},
    {LR_DECAY, "true", "schedule.type", "cosine_to_min", UNLESS_GIVEN},
    {LR_DECAY, "false", "schedule.type", "constant", ALWAYS},
    /* "--resume" alone, "--resume=DIR", and Fabric's "--resume=True --checkpoint=DIR", of which the
     * later --resume holds whatever --checkpoint says, before it or behind (config_finish.c), and
     * which names a checkpoint if the former does not.
     * Trainer has True and False for the key itself; elsewhere true is latest (config_finish.c). */
    {RESUME, "true", "checkpoint.resume_from_checkpoint", "true", UNLESS_SAID},
    {RESUME, "false", "checkpoint.resume_from_checkpoint", "no", ALWAYS},
    {RESUME, "text", "checkpoint.resume_from_checkpoint", NULL, ALWAYS},
    /* Transformers' Trainer and its examples; more of it is in config_trainer.c. */
    {"pad_to_max_length", "true", "data.padding", "max_length", ALWAYS},
    {"pad_to_max_length", "false", "data.padding", "longest", ALWAYS},
    /* The scripts evaluate behind the last step only, which is an epoch's end, too. */
    {"do_eval", "true", "eval.eval_strategy", "epoch", UNLESS_GIVEN},
    {"do_eval", "false", "eval.eval_strategy", "no", UNLESS_GIVEN},
};
const int config_alias_count = sizeof config_aliases / sizeof config_aliases[0];

/* Transformers' Trainer calls it the one, LMTK and many scripts the other. The words of
 * --lr_decay_style are those of AWS's sample, as are those of the key itself. */
#define SCHEDULER "lr_scheduler_type schedule.lr_scheduler_type scheduler schedule.scheduler"

const struct config_spelling config_spellings[] = {
    {SCHEDULER, "linear", "hf_linear"},
    {SCHEDULER, "cosine", "hf_cosine"},
    {SCHEDULER, "cosine_with_min_lr", "hf_cosine"},
    {"lr_scheduler_type schedule.lr_scheduler_type", "constant", "hf_constant"},
};
const int config_spelling_count = sizeof config_spellings / sizeof config_spellings[0];

#define PRECISIONS "no (32-true), bf16 (bf16-mixed) and bf16-true work"

/* Fields of config.json, each under the names that a setting of it can have. */
/* clang-format off */
#define FIELD(name) name " model." name " config_overrides." name " model.config_overrides." name " "
#define JSON_SIZES                                                                                 \
    FIELD("attention_bias") FIELD("mlp_bias") FIELD("hidden_act") FIELD("activation_function")     \
    FIELD("num_decoder_layers") FIELD("relative_attention_num_buckets")                            \
    FIELD("relative_attention_max_distance") FIELD("feed_forward_proj")                            \
    FIELD("initializer_factor") FIELD("type_vocab_size") FIELD("sliding_window")                   \
    FIELD("decoder_start_token_id")
#define JSON_DROPOUTS                                                                              \
    FIELD("hidden_dropout_prob") FIELD("attention_probs_dropout_prob") FIELD("dropout_rate")       \
    FIELD("classifier_dropout")
/* clang-format on */

const struct config_refusal config_refusals[] = {
    {"model_dir", NULL, NULL, REFUSED,
     "--model_id takes a directory, too; an id is looked up in HF_HOME and HF_HUB_CACHE"},
    {"precision.mixed_precision mixed_precision precision", "fp16 16-mixed 16-true", NULL, REFUSED,
     "not supported: fp16's gradients need a loss scale, which bf16 does without; " PRECISIONS},
    {"precision.mixed_precision mixed_precision precision", "64-true 64 fp64", NULL, REFUSED,
     "not supported: nothing is computed in 64 bits; " PRECISIONS},
    {"precision.mixed_precision mixed_precision precision", "fp8 transformer-engine", NULL, REFUSED,
     "fp8 is a setting beside it: mixed_precision=bf16 and precision.fp8=true; " PRECISIONS},
    {LOADING, "rank0", NULL, IGNORED,
     "each rank reads its own slices, and no rank more than those"},
    {"fp16 precision.fp16 precision.loss_scale loss_scale", NULL, "false 0", REFUSED,
     "there is no fp16, and bf16 needs no loss scale: use bf16"},
    {"precision.param_dtype param_dtype precision.buffer_dtype buffer_dtype", NULL, NULL, REFUSED,
     "it follows from precision.mixed_precision; what gradients are summed in is "
     "precision.reduce_dtype"},
    {"precision.tf32 tf32", NULL, "false 0", IGNORED_SWITCH, "fp32 is computed in fp32"},
    {"parallel.wrap_modules wrap_modules", NULL, NULL, REFUSED,
     "units are chosen by class (fsdp_transformer_layer_cls_to_wrap), by size or not at all, not by "
     "the names of modules"},
    {"parallel.ignored_modules ignored_modules fsdp_ignored_modules", NULL, NULL, REFUSED,
     "not supported: every parameter lies in a unit, and its gradient is summed over all ranks; "
     "choose units by fsdp_transformer_layer_cls_to_wrap, or NO_SHARD"},
    {"parallel.use_orig_params use_orig_params fsdp_use_orig_params", NULL, "true 1",
     IGNORED_SWITCH, "parameters keep their own names and shapes anyway"},
    {CONFIG_FSDP_VERSION, NULL, "1 2", REFUSED, "only 1 and 2 exist"},
    {"data.pin_memory pin_memory", NULL, NULL, IGNORED_SWITCH,
     "what goes to a GPU is always page-locked, nothing else ever"},
    {"num_processes", "0", NULL, REFUSED, "at least one process; -1: one for each GPU"},
    {"memory.max_reserved max_reserved", NULL, "0", REFUSED,
     "there is no such limit: what cannot fit into a GPU is refused before it trains, and the "
     "container's memory limit holds on the host"},
    {"eval.metrics eval_metrics", NULL, NULL, REFUSED,
     "there is no choice: loss and perplexity (mnist_cnn: loss and accuracy) are always reported"},
    {"logging.file log_file", NULL, NULL, REFUSED,
     "lines go to the standard output and the log to stderr: redirect them, or keep them by "
     "--log_dir with --tee or --redirects"},
    {"profiler.with_stack with_stack", NULL, "false 0", REFUSED,
     "there are no Python stacks to show"},
    {"torchrun.rdzv_conf torchrun.start_method torchrun.role torchrun.local_addr torchrun.run_path",
     NULL, NULL, IGNORED, "ranks start and meet in one way only"},
    {"tpu xla fsdp_xla xla_fsdp_v2 xla_fsdp_settings", NULL, "false 0", REFUSED,
     "there is no TPU backend: leave it out, and the ranks shard as fsdp_sharding_strategy says"},
    {"use_deepspeed use_megatron_lm", NULL, "false 0", REFUSED,
     "not supported: the ranks shard as FSDP does (--fsdp_sharding_strategy)"},
    {"dynamo_backend", NULL, "no false 0", REFUSED, "there is nothing like torch.compile here"},
    {"do_train overwrite_output_dir", NULL, "true 1", REFUSED,
     "it trains, evaluates as eval_strategy says and goes on from what is there"},
    {"do_predict predict_with_generate push_to_hub", NULL, "false 0", REFUSED,
     "not supported: it trains and evaluates by loss, and uploads nothing"},
    {"PYTORCH_CUDA_ALLOC_CONF", NULL, NULL, IGNORED,
     "it tunes PyTorch's allocator; this one keeps what a step needs and gives it out again"},
    {"HF_DATASETS_CACHE", NULL, NULL, IGNORED,
     "data sets are looked for at their paths, below data.root and in the hub's cache"},
    {"data.format format", "idx", NULL, IGNORED, "mnist_cnn reads IDX files, and no other model"},
    {JSON_SIZES, NULL, NULL, REFUSED,
     "it is read from a config.json alone: name its directory by model.name_or_path (without "
     "weights there the values are random)"},
    {JSON_DROPOUTS, NULL, NULL, REFUSED,
     "it is read from a config.json alone; model.dropout sets that of every layer"},
    {"parallel.auto_wrap_policy auto_wrap_policy fsdp_auto_wrap_policy fsdp_wrap_policy", "MANUAL",
     NULL, REFUSED,
     "there is no code of yours that could wrap modules: TRANSFORMER_BASED_WRAP by the class names "
     "of transformer_layer_cls_to_wrap, SIZE_BASED_WRAP by min_num_params, NO_WRAP"},
    {"logging.lang lang", "es", NULL, REFUSED, "not supported yet; en and ko are"},
    {SCHEDULER, "reduce_lr_on_plateau greedy", NULL, REFUSED,
     "not supported: the rate follows the step alone, not the loss; choose linear, cosine, "
     "polynomial, inverse_sqrt, constant_with_warmup or warmup_stable_decay"},
    {SCHEDULER, "cosine_warmup_with_min_lr", NULL, REFUSED,
     "not supported: its warm-up does not begin at 0; choose cosine_with_min_lr and --min_lr"},
    {"label_smoothing_factor", NULL, "0 0.0", REFUSED,
     "not supported: the loss takes the targets as they are; leave it out, or 0"},
    /* The rest of TrainingArguments: what would train otherwise is refused. */
    {"neftune_noise_alpha", NULL, "none 0 0.0", REFUSED,
     "not supported: nothing is added to embeddings; leave it out"},
    {"optim_args optim_target_modules", NULL, "none", REFUSED,
     "not supported: optimizer's keys say what it takes (--adam_beta1, --weight_decay, ...)"},
    {"average_tokens_across_devices", NULL, "true 1", REFUSED,
     "not supported: the loss is the mean over the tokens of all ranks; leave it out"},
    {"auto_find_batch_size", NULL, "false 0", REFUSED,
     "not supported: name a batch that fits (shoal plan shows which)"},
    {"load_best_model_at_end", NULL, "false 0", REFUSED,
     "not supported: the model at the end is the last; checkpoints have the others"},
    {"group_by_length", NULL, "false 0", REFUSED, "not supported: rows are drawn at random"},
    {"train_sampling_strategy", NULL, "random", REFUSED,
     "not supported: rows are drawn at random, or in their order with --shuffle false"},
    {"deepspeed parallelism_config", NULL, "none", REFUSED,
     "not supported: the ranks shard as FSDP does (--fsdp, --fsdp_sharding_strategy)"},
    {"save_safetensors", NULL, "true 1", REFUSED, "nothing else is written: leave it out"},
    {"use_mps_device", NULL, "false 0", REFUSED, "there is no such backend; --use_cpu is"},
    {"data_seed", NULL, "none", IGNORED, "the data's order follows runtime.seed"},
    {"ignore_data_skip", NULL, "false 0", IGNORED, "a run goes on in the data where it stopped"},
    {"save_only_model", NULL, "false 0", IGNORED, "a checkpoint has the optimizer's state, too"},
    {"metric_for_best_model greater_is_better eval_delay eval_on_start batch_eval_metrics "
     "include_for_metrics prediction_loss_only past_index eval_accumulation_steps "
     "eval_do_concat_batches eval_use_gather_object use_legacy_prediction_loop",
     NULL, NULL, IGNORED, "it is evaluated by its loss, when eval_strategy says"},
    {"bf16_full_eval fp16_full_eval", NULL, "false 0", IGNORED,
     "it is evaluated in the types it is trained in"},
    {"torch_compile torch_compile_backend torch_compile_mode torch_empty_cache_steps "
     "use_liger_kernel liger_kernel_config use_cache full_determinism accelerator_config "
     "activation_checkpointing_kwargs gradient_checkpointing_kwargs ddp_backend "
     "ddp_broadcast_buffers ddp_bucket_cap_mb ddp_find_unused_parameters ddp_static_graph local_rank "
     "dataloader_in_order dataloader_multiprocessing_context dataloader_persistent_workers "
     "dataloader_pin_memory remove_unused_columns length_column_name",
     NULL, NULL, IGNORED, "it is a setting of PyTorch that changes nothing that is trained here"},
    {"disable_tqdm log_level_replica log_on_each_node logging_first_step logging_strategy "
     "logging_nan_inf_filter include_num_input_tokens_seen skip_memory_metrics save_on_each_node "
     "enable_jit_checkpoint restore_callback_states_from_checkpoint",
     NULL, NULL, IGNORED, "lines and checkpoints are as logging's and checkpoint's keys say"},
    {"hub_always_push hub_model_id hub_private_repo hub_revision hub_strategy hub_token "
     "trackio_space_id trackio_bucket_id trackio_static_space_id",
     NULL, NULL, IGNORED, "nothing is uploaded"},
    {"token use_auth_token", NULL, NULL, IGNORED, "nothing is downloaded"},
    /* What Transformers' example scripts and TRL's have besides. */
    {"overwrite_cache preprocessing_num_workers dataset_num_proc use_fast_tokenizer "
     "low_cpu_mem_usage",
     NULL, NULL, IGNORED, "rows are tokenized while it trains, and weights read in slices"},
    {"cache_dir model_revision trust_remote_code", NULL, NULL, IGNORED,
     "models and data sets are read from the hub's cache or from their paths, without their code"},
    {"torch_dtype", NULL, "auto float32", REFUSED,
     "precision.mixed_precision says what it trains in: bf16, or bf16-true for weights in bf16"},
    {"config_name", NULL, NULL, REFUSED,
     "--model_name_or_path names the directory of a config.json, and --model.init=random draws the "
     "weights of a model that is trained from nothing"},
    {"use_peft", NULL, "false 0", REFUSED, "not supported: all parameters are trained"},
    {"rotary_pct", NULL, NULL, IGNORED, "only gpt_neox turns a part of a head"},
    {"summary_first_pdrop", NULL, NULL, IGNORED, "there is no summary head"},
    {"runtime.oom_policy oom_policy", NULL, NULL, REFUSED,
     "there is none to choose: what does not fit ends the run, and the message says what to do"},
    {"runtime.rdzv_conf rdzv_conf", NULL, NULL, REFUSED,
     "ranks meet in one way only; runtime.join_timeout says for how long they wait"},
};
const int config_refusal_count = sizeof config_refusals / sizeof config_refusals[0];
