/* The keys of the optimizer, the schedule, evaluation and checkpoints. */
#include "agent/config/config_keys.h"

#include "agent/shard/optim_kind.h"
#include "agent/shard/schedule.h"

/* Values of optimizer.name: places in the table of optimizers. */
#define COMMA                        ,
#define OPTIM_VALUE(name, spellings) OPTIM_##name
#define OPTIM_CHOICE(name, spellings)                                                              \
    {                                                                                              \
        spellings, OPTIM_##name                                                                    \
    }
enum { OPTIM_KINDS(OPTIM_VALUE, COMMA) };

static const struct config_key keys[] = {
    KEY_CHOICE("optimizer", "name", optimizer.name, "adamw",
               CHOICES(OPTIM_KINDS(OPTIM_CHOICE, COMMA)), "optim optimizer",
               "update rule, as in torch.optim"),
    KEY_FLOAT("optimizer", "lr", optimizer.lr, "1e-4", 0, 1e6, "learning_rate",
              "learning rate; with a schedule, its highest"),
    KEY_FLOAT("optimizer", "beta1", optimizer.beta1, "0.9", 0, 1, "adam_beta1",
              "first of torch.optim's betas, the coefficients of running averages",
              .needs = {NEED_BETAS}),
    KEY_FLOAT("optimizer", "beta2", optimizer.beta2, "0.999", 0, 1, "adam_beta2",
              "second of torch.optim's betas", .needs = {NEED_BETAS}),
    KEY_FLOAT("optimizer", "eps", optimizer.eps, "-1", -1, 1, "adam_epsilon",
              "added to the denominator; below 0: torch.optim's default", .needs = {NEED_EPS}),
    KEY_FLOAT("optimizer", "momentum", optimizer.momentum, "0", 0, 1, NULL,
              "share of the last update that goes on", .needs = {NEED_MOMENTUM}),
    KEY_BOOL("optimizer", "nesterov", optimizer.nesterov, "false", NULL,
             "Nesterov's momentum; momentum must be above 0", .needs = {NEED_MOMENTUM}),
    KEY_FLOAT("optimizer", "rho", optimizer.rho, "0.9", 0, 1, NULL,
              "decay of the squares' averages", .needs = {NEED_RHO}),
    KEY_FLOAT("optimizer", "weight_decay", optimizer.weight_decay, "-1", -1, 1e3, NULL,
              "L2 penalty", .more_help = optim_describe_weight_decay),
    KEY_TEXT(
        "optimizer", "decay_exclude", optimizer.decay_exclude, "", NULL,
        "parameters without weight decay: regular expressions, separated by commas; norm_bias: "
        "all of one dimension, and what is called bias",
        .needs = {NEED_WEIGHT_DECAY}),
    KEY_FLOAT("optimizer", "grad_clip", optimizer.grad_clip, "0", 0, 1e6, "max_grad_norm",
              "largest L2 norm of all gradients together; 0: any"),
    KEY_INT("optimizer", "gradient_accumulation_steps", optimizer.gradient_accumulation_steps, "1",
            1, 1e6, "grad_acc_steps", "micro-batches per optimizer step",
            .environment = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"),
    KEY_CHOICE(
        "optimizer", "accumulation_sync", optimizer.accumulation_sync, "no_sync",
        CHOICES({"no_sync", ACCUMULATE_NO_SYNC}, {"every", ACCUMULATE_EVERY}), NULL,
        "no_sync: keep full gradients until the last micro-batch; every: reduce-scatter each "
        "(less memory)",
        .needs = {NEED_ACCUMULATION}),
    KEY_BOOL("optimizer", "drop_incomplete_accumulation", optimizer.drop_incomplete, "false", NULL,
             "leave out an epoch's last step where it has fewer micro-batches",
             .needs = {NEED_ACCUMULATION}),
    KEY_CHOICE("optimizer", "state_dtype", optimizer.state_dtype, "fp32",
               CHOICES({"fp32", STATE_FP32}, {"bf16", STATE_BF16}), NULL,
               "of the optimizer's state: bf16 with mixed_precision bf16-true, else fp32"),

    KEY_CHOICE(
        "schedule", "type", schedule.type, "constant",
        CHOICES({"constant=fixed", SCHEDULE_CONSTANT}, {"step", SCHEDULE_STEP_LR},
                {"linear", SCHEDULE_LINEAR}, {"cosine", SCHEDULE_COSINE},
                {"exponential", SCHEDULE_EXPONENTIAL}, {"plateau", SCHEDULE_PLATEAU},
                {"hf_constant", SCHEDULE_HF_CONSTANT},
                {"hf_constant_with_warmup=constant_with_warmup=warmup_constant",
                 SCHEDULE_HF_CONSTANT_WITH_WARMUP},
                {"hf_linear=warmup_linear", SCHEDULE_HF_LINEAR},
                {"hf_cosine=warmup_cosine", SCHEDULE_HF_COSINE},
                {"hf_cosine_with_restarts=cosine_with_restarts=warmup_cosine_restart",
                 SCHEDULE_HF_COSINE_WITH_RESTARTS},
                {"hf_polynomial=polynomial", SCHEDULE_HF_POLYNOMIAL},
                {"hf_inverse_sqrt=inverse_sqrt", SCHEDULE_HF_INVERSE_SQRT},
                {"cosine_to_min", SCHEDULE_COSINE_TO_MIN},
                {"wsd=warmup_stable_decay", SCHEDULE_WSD}),
        "lr_scheduler_type lr_decay_style scheduler",
        "learning rate over the run. linear, cosine, exponential, plateau: Megatron's "
        "AnnealingLR; hf_*: Transformers', down to min_lr; cosine_to_min: hf_cosine, always half a wave; step: StepLR; wsd: constant, then "
        "down over cooldown_steps. Under the names lr_scheduler_type and scheduler linear, cosine "
        "and constant are Transformers'"),
    KEY_INT("schedule", "max_steps", schedule.max_steps, "0", 0, 1e12,
            "max_training_steps max_step max_train_steps",
            "stop after this many optimizer steps; 0 or -1: by epochs", .low_words = "-1"),
    KEY_FLOAT(
        "schedule", "num_train_epochs", schedule.epochs, "1", 0, 1e6, "epochs number_epochs",
        "passes over the training data, or a part of one (0.5, 2.5) where its length is known; "
        "max_steps ends the run within one; 0: as many as max_steps takes"),
    KEY_INT("schedule", "warmup_steps", schedule.warmup_steps, "0", 0, 1e12, NULL,
            "optimizer steps of linear growth at the start", .needs = {NEED_WARMUP}),
    KEY_FLOAT("schedule", "warmup_ratio", schedule.warmup_ratio, "0", 0, 1,
              "warmup warmup_proportion", "the same as a part of decay_steps",
              .needs = {NEED_WARMUP}),
    KEY_INT("schedule", "decay_steps", schedule.decay_steps, "0", 0, 1e12, "lr_decay_iters",
            "optimizer steps the schedule spans; 0: the run's", .needs = {NEED_SPAN}),
    KEY_FLOAT("schedule", "min_lr", schedule.min_lr, "0", 0, 1e6, NULL,
              "never less after the start; hf_polynomial: 1e-7 unless given", .needs = {NEED_FALL}),
    KEY_FLOAT("schedule", "plateau_ratio", schedule.plateau_ratio, "0", 0, 1, "plateau",
              "plateau: part of decay_steps at the highest rate", .needs = {NEED_PLATEAU}),
    KEY_INT("schedule", "step_size", schedule.step_size, "1", 1, 1e12, NULL,
            "step: how much between two decays", .needs = {NEED_STEP_LR}),
    KEY_CHOICE("schedule", "unit", schedule.unit, "epoch",
               CHOICES({"epoch", SCHEDULE_PER_EPOCH}, {"step", SCHEDULE_PER_STEP}), NULL,
               "step: what step_size counts", .needs = {NEED_STEP_LR}),
    KEY_FLOAT("schedule", "gamma", schedule.gamma, "0.1", 0, 1, NULL, "step: factor of a decay",
              .needs = {NEED_STEP_LR}),
    KEY_FLOAT(
        "schedule", "num_cycles", schedule.num_cycles, "0", 0, 1e6, NULL,
        "hf_cosine, and wsd in its falling part: waves; hf_cosine_with_restarts: how often from the top; 0: half a wave, and once",
        .needs = {NEED_WAVES}),
    KEY_INT("schedule", "cooldown_steps", schedule.cooldown_steps, "0", 0, 1e12, NULL,
            "wsd: optimizer steps of the last, falling part", .needs = {NEED_WSD}),
    KEY_FLOAT("schedule", "power", schedule.power, "1", 0, 1e3, NULL,
              "hf_polynomial: of the part of the run that is left", .needs = {NEED_POLYNOMIAL}),
    KEY_CHOICE(
        "schedule", "resume", schedule.resume, "config",
        CHOICES({"config", SCHEDULE_OF_CONFIG}, {"checkpoint", SCHEDULE_OF_CHECKPOINT}), NULL,
        "whose type, rates, warm-up and decay_steps a resumed run takes; checkpoint: those of "
        "the run that saved it, each logged",
        .needs = {NEED_RESUME}),

    KEY_CHOICE("eval", "eval_strategy", eval.strategy, "epoch",
               CHOICES({"no", EVAL_NO}, {"epoch", EVAL_EPOCH}, {"steps", EVAL_STEPS},
                       {"half_epoch", EVAL_HALF_EPOCH}),
               "evaluation_strategy",
               "when to evaluate; eval_steps alone says steps. Where the ranks do not divide the "
               "number of images, some are counted twice, as PyTorch's DistributedSampler does"),
    KEY_INT("eval", "eval_steps", eval.steps, "0", 0, 1e12, "validation_freq eval_step_interval",
            "optimizer steps between evaluations", .needs = {NEED_EVAL_STEPS}),
    KEY_INT("eval", "max_batches", eval.max_batches, "0", 0, 1e12, "validation_batches eval_iters",
            "batches per rank in an evaluation; 0: all", .low_words = "all",
            .needs = {NEED_EVALUATION}),
    KEY_CHOICE(
        "eval", "reduction", eval.reduction, "token_mean",
        CHOICES({"token_mean", EVAL_TOKEN_MEAN}, {"rank_mean", EVAL_RANK_MEAN}), NULL,
        "token_mean: over all tokens; rank_mean: of the ranks' means of their batches' means",
        .needs = {NEED_EVALUATION}),

    KEY_TEXT("checkpoint", "dir", checkpoint.dir, "", "checkpoint_dir save_path output_dir",
             "where checkpoints go; empty: none are written", .is_path = true),
    KEY_TEXT("checkpoint", "prefix", checkpoint.prefix, "", NULL,
             "{prefix} of name_format; empty: the model's type, as it was written",
             .needs = {NEED_CHECKPOINTS, NEED_PREFIX}, .is_path = true),
    KEY_TEXT(
        "checkpoint", "name_format", checkpoint.name_format, "{prefix}-{step}steps",
        "checkpoint_name_format",
        "name of a checkpoint, with {prefix}, {step}, {epoch} (from 1) and {strategy}; {step:06} is of six digits",
        .needs = {NEED_CHECKPOINTS}),
    KEY_INT(
        "checkpoint", "save_steps", checkpoint.save_steps, "0", 0, 1e12,
        "checkpoint_freq save_step_interval checkpointing_steps",
        "optimizer steps between checkpoints; epoch or 0: each epoch's end. There is one at the "
        "run's end in any case: 1e12 is that alone",
        .low_words = "epoch"),
    KEY_INT("checkpoint", "keep_last", checkpoint.keep_last, "0", 0, 1e6, "save_total_limit",
            "remove older checkpoints; 0: keep all", .low_words = "all"),
    KEY_CHOICE(
        "checkpoint", "state_dict_type", checkpoint.state_dict_type, "SHARDED_STATE_DICT",
        CHOICES({"FULL_STATE_DICT=1=full", STATE_DICT_FULL},
                {"LOCAL_STATE_DICT=2=local", STATE_DICT_LOCAL},
                {"SHARDED_STATE_DICT=3=sharded", STATE_DICT_SHARDED}),
        "fsdp_state_dict_type",
        "what a checkpoint holds. Always a file of slices per rank, from which any number of "
        "ranks goes on; FULL adds the whole weights in its folder full",
        .environment = "FSDP_STATE_DICT_TYPE", .needs = {NEED_CHECKPOINTS}),
    KEY_TEXT("checkpoint", "resume_from_checkpoint", checkpoint.resume, "", NULL,
             "a checkpoint, a directory of checkpoints, latest or true (in checkpoint.dir), or no",
             .implied = "latest", .is_path = true),
    KEY_BOOL("checkpoint", "auto_resume", checkpoint.auto_resume, "true", NULL,
             "after a restart, go on from the latest of the run in checkpoint.dir or in memory",
             .needs = {NEED_SOMETHING_KEPT}),
    KEY_INT("checkpoint", "memory_every_steps", checkpoint.memory_every_steps, "auto", -1, 1e12,
            NULL,
            "optimizer steps between checkpoints in memory that the launcher keeps for its ranks' "
            "next start; 0: none; auto: so often that they cost at most 1 % of the steps' time",
            .low_words = "auto", .needs = {NEED_AUTO_RESUME}),
    KEY_BOOL(
        "checkpoint", "memory_buddies", checkpoint.memory_buddies, "false", NULL,
        "each rank keeps the snapshots of a rank of another pod, too: twice the memory, and all "
        "of them cross the network, but a pod that is lost and made again goes on from memory",
        .needs = {NEED_MEMORY}),
    KEY_BOOL("checkpoint", "async", checkpoint.async, "false", NULL,
             "write checkpoints in a thread while training goes on"),
    KEY_BOOL("checkpoint", "save_on_signal", checkpoint.save_on_signal, "true", NULL,
             "SIGTERM: write a checkpoint, then leave with code 143", .needs = {NEED_CHECKPOINTS}),
    KEY_BOOL("checkpoint", "allow_nonfinite", checkpoint.allow_nonfinite, "false", NULL,
             "save and load weights and optimizer state that have NaN or infinity; false: such a "
             "save ends the run, and such a load fails, with the tensor's name"),
    KEY_TEXT("checkpoint", "save_model", checkpoint.save_model, "", NULL,
             "at the end, write the whole model: a safetensors file, or for a language model a "
             "Hugging Face directory; auto: checkpoint.dir/model, where there is a checkpoint.dir",
             .implied = "mnist_cnn.safetensors", .is_path = true),
    KEY_SIZE("checkpoint", "max_shard_size", checkpoint.max_shard_bytes, "5GiB", 1 << 20, 1e15,
             NULL, "largest file of save_model's directory", .needs = {NEED_WHOLE_WEIGHTS}),
};

const struct config_table config_table_train = {keys, sizeof keys / sizeof keys[0], RANKS_MATCH};
