/* Flags of other trainers that are no key's name: what they stand for here, and what is refused. */
#include "agent/config/config_keys.h"

const struct config_shorthand config_shorthands[] = {
    {"no_cuda", "true", "runtime.device", "cpu", false},
    {"no_cuda", "false", "runtime.device", "auto", false},
    {"max_context_width", NULL, "model.config_overrides.max_position_embeddings", NULL, false},
    {"max_context_width", NULL, "data.max_seq_length", NULL, false},
    {"bf16", "true", "precision.mixed_precision", "bf16", false},
    {"bf16", "false", "precision.mixed_precision", "no", false},
    {"use_prefetch", "true", "parallel.backward_prefetch", "BACKWARD_PRE", false},
    {"use_prefetch", "true", "parallel.forward_prefetch", "true", false},
    {"use_prefetch", "false", "parallel.backward_prefetch", "NO_PREFETCH", false},
    {"use_prefetch", "false", "parallel.forward_prefetch", "false", false},
    {"use_cpu", "true", "runtime.device", "cpu", false},
    {"use_cpu", "false", "runtime.device", "auto", true},
    {"debug", "true", "logging.level", "debug", false},
    {"debug", "false", "logging.level", "info", true},
    /* Accelerate's second version: true, false, or how many ranks share a copy. */
    {"fsdp_reshard_after_forward", "true", "parallel.sharding_strategy", "FULL_SHARD", false},
    {"fsdp_reshard_after_forward", "false", "parallel.sharding_strategy", "SHARD_GRAD_OP", false},
    {"fsdp_reshard_after_forward", "number", "parallel.sharding_strategy", "HYBRID_SHARD", false},
    {"fsdp_reshard_after_forward", "number", "parallel.shard_group_size", NULL, false},
    {"fsdp_reshard_after_forward", "word", "parallel.sharding_strategy", NULL, false},
    {"fsdp_mixed_precision_policy", NULL, "precision.mixed_precision", NULL, false},
    {"zero_stage", "0", "parallel.sharding_strategy", "NO_SHARD", false},
    {"zero_stage", "2", "parallel.sharding_strategy", "SHARD_GRAD_OP", false},
    {"zero_stage", "3", "parallel.sharding_strategy", "FULL_SHARD", false},
    {"xla_fsdp_grad_ckpt", "true", "memory.activation_checkpointing", "full", false},
    {"xla_fsdp_grad_ckpt", "false", "memory.activation_checkpointing", "none", true},
    {"lr_decay", "true", "schedule.type", "cosine_to_min", true},
    {"lr_decay", "false", "schedule.type", "constant", false},
    /* "--resume" alone, "--resume=DIR", and Fabric's "--resume=True --checkpoint=DIR". */
    {"resume", "true", "checkpoint.resume_from_checkpoint", "latest", true},
    {"resume", "false", "checkpoint.resume_from_checkpoint", "", false},
    {"resume", "text", "checkpoint.resume_from_checkpoint", NULL, false},
    /* Transformers' Trainer and its examples. */
    {"save_strategy", "epoch", "checkpoint.save_steps", "epoch", false},
    {"save_strategy", "steps", "checkpoint.save_steps", "500", true},
    {"pad_to_max_length", "true", "data.padding", "max_length", false},
    {"pad_to_max_length", "false", "data.padding", "longest", false},
    {"report_to", "tensorboard", "logging.tensorboard_dir", "./tensorboard_logs", true},
    {"report_to", "none", "logging.tensorboard_dir", "", false},
    {"checkpoint", NULL, "checkpoint.resume_from_checkpoint", NULL, false},
};
const int config_shorthand_count = sizeof config_shorthands / sizeof config_shorthands[0];

#define LATER "not supported yet"

const struct config_refusal config_refusals[] = {
    {"model.type model_type", "gpt_neox mixtral bloom flash_gptneox", NULL, true,
     LATER "; mnist_cnn, llama (llama_v2, llama_v3, mistral), gpt2, t5 and bert are"},
    {"precision.mixed_precision mixed_precision precision", "fp16 16-mixed 16-true 64-true fp8",
     NULL, true, LATER "; no (32-true), bf16 (bf16-mixed) and bf16-true are"},
    {"fp16 precision.loss_scale loss_scale", NULL, "false 0", true,
     LATER ": there is no fp16; use bf16"},
    {"precision.param_dtype param_dtype precision.buffer_dtype buffer_dtype", NULL, NULL, true,
     LATER ": both follow from precision.mixed_precision"},
    {"precision.tf32 tf32", NULL, "false 0", false, "fp32 is computed in fp32"},
    {"precision.deterministic deterministic", NULL, "true 1", false, "every run is deterministic"},
    {"parallel.wrap_modules wrap_modules parallel.ignored_modules ignored_modules "
     "fsdp_ignored_modules",
     NULL, NULL, true, LATER},
    {"parallel.sharding_strategy sharding_strategy", "auto", NULL, true,
     LATER "; see the advice in --help"},
    {"parallel.use_orig_params use_orig_params fsdp_use_orig_params", NULL, "true 1", false,
     "parameters keep their own names and shapes anyway"},
    {"parallel.fsdp_version fsdp_version", NULL, "1 2", true, "only 1 and 2 exist"},
    {"data.pin_memory pin_memory", NULL, NULL, false,
     "what goes to a GPU is always page-locked, nothing else ever"},
    {"memory.max_reserved max_reserved", NULL, "0", true, LATER},
    {"eval.metrics eval_metrics", NULL, NULL, true,
     LATER ": loss and perplexity (mnist_cnn: loss and accuracy) are always told"},
    {"logging.file log_file", NULL, NULL, true, LATER "; send the output to a file, or use --tee"},
    {"report_to", "wandb all", NULL, true, LATER "; only none and tensorboard"},
    {"wandb logging.wandb logging.wandb_project wandb_project logging.wandb_entity wandb_entity "
     "logging.wandb_run_name wandb_run_name",
     NULL, "false 0 off", true, LATER},
    {"entity project log_model", NULL, NULL, false, "there is no Weights & Biases logger yet"},
    {"profiler.enable profiler.dir profiler.file profiler.start_step profiler.warmup_steps "
     "profiler.active_steps profiler.repeat_every profiler.ranks profiler.memory profiler.gzip "
     "profiler.with_stack profile_freq",
     NULL, "false 0", true, LATER ": there is no profiler"},
    {"torchrun.rdzv_conf torchrun.start_method torchrun.role torchrun.local_addr torchrun.run_path",
     NULL, NULL, false, "ranks start and meet in one way only"},
    {"tpu xla fsdp_xla xla_fsdp_v2 xla_fsdp_settings", NULL, "false 0", true,
     "there is no TPU backend: leave it out, and the ranks shard as fsdp_sharding_strategy says"},
    {"do_train do_eval overwrite_output_dir", NULL, "true 1", true,
     "it trains, evaluates as eval_strategy says and goes on from what is there"},
    {"do_predict predict_with_generate push_to_hub", NULL, "false 0", true,
     "not supported: it trains and evaluates by loss, and uploads nothing"},
    {"rotary_pct", NULL, NULL, false, "only gpt_neox turns a part of a head"},
    {"summary_first_pdrop", NULL, NULL, false, "there is no summary head"},
    {"runtime.cpu_affinity cpu_affinity runtime.oom_policy oom_policy runtime.rdzv_conf rdzv_conf",
     NULL, NULL, true, LATER},
};
const int config_refusal_count = sizeof config_refusals / sizeof config_refusals[0];
