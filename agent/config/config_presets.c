/* Settings with a name: whole trainers (mnist, hyperpod, fabric) and public architectures. */
#include "agent/config/config_keys.h"

#define OVERRIDE(setting) "model.config_overrides." setting

/* The PyTorch FSDP tutorial, FSDP_mnist.py. */
#define MNIST                                                                                      \
    "model.type=mnist_cnn", "model.loss_reduction=sum", "data.root=../data",                       \
        "data.per_device_train_batch_size=64", "data.eval_batch_size=1000",                        \
        "optimizer.name=adadelta", "optimizer.lr=1.0", "schedule.type=step",                       \
        "schedule.step_size=1", "schedule.unit=epoch", "schedule.gamma=0.7",                       \
        "schedule.num_train_epochs=10", "parallel.auto_wrap_policy=NO_WRAP",                       \
        "parallel.min_num_params=20000", "precision.mixed_precision=no", "logging.style=mnist",    \
        "runtime.seed=1"

static const char *const mnist[] = {MNIST, "parallel.sharding_strategy=FULL_SHARD", NULL};
static const char *const mnist_ddp[] = {MNIST, "parallel.sharding_strategy=NO_SHARD", NULL};

/* The same network in the chapter on distributed data parallelism, mnist-ddp.py. */
static const char *const mnist_ddp_adam[] = {
    MNIST,
    "parallel.sharding_strategy=NO_SHARD",
    "model.loss_reduction=mean",
    "optimizer.name=adam",
    "optimizer.lr=1e-3",
    "schedule.type=constant",
    NULL,
};

/* train.py of AWS's FSDP sample: the defaults of its arguments. Its own default model, gpt_neox, is
 * not built: here it is Llama's layout with the same numbers. */
static const char *const hyperpod[] = {
    "model.type=llama",
    "model.architecture=",
    "model.init=random",
    OVERRIDE("vocab_size=50432"),
    OVERRIDE("hidden_size=768"),
    OVERRIDE("intermediate_size=11008"),
    OVERRIDE("num_hidden_layers=12"),
    OVERRIDE("num_attention_heads=12"),
    OVERRIDE("max_position_embeddings=2048"),
    OVERRIDE("rms_norm_eps=1e-5"),
    OVERRIDE("rope_theta=10000"),
    OVERRIDE("initializer_range=0.02"),
    OVERRIDE("tie_word_embeddings=false"),
    "data.dataset=allenai/c4",
    "data.dataset_config_name=en",
    "data.tokenizer=EleutherAI/gpt-neox-20b",
    "data.max_seq_length=2048",
    "data.add_eos=true",
    "data.per_device_train_batch_size=2",
    "data.eval_batch_size=4",
    "data.shuffle_buffer=1000",
    "data.num_workers=4",
    "data.prefetch_factor=4",
    "optimizer.name=adamw",
    "optimizer.lr=1e-4",
    "optimizer.beta2=0.95",
    "optimizer.weight_decay=0.2",
    "optimizer.grad_clip=1",
    "schedule.type=cosine",
    "schedule.max_steps=5000",
    "schedule.num_train_epochs=3",
    "schedule.warmup_ratio=0.0032",
    "schedule.min_lr=1e-5",
    "schedule.resume=checkpoint",
    "parallel.sharding_strategy=FULL_SHARD",
    "parallel.auto_wrap_policy=TRANSFORMER_BASED_WRAP",
    "precision.mixed_precision=bf16",
    "precision.reduce_dtype=fp32",
    "memory.activation_checkpointing=full",
    "checkpoint.save_steps=1000",
    "eval.eval_strategy=no",
    "eval.max_batches=10",
    "eval.reduction=rank_mean",
    "logging.logging_steps=1",
    "logging.style=adt",
    "logging.tensorboard_dir=./tensorboard_logs",
    "runtime.seed=12345",
    NULL,
};

/* The GPLSI scripts on Lightning Fabric. */
static const char *const fabric[] = {
    "model.name_or_path=meta-llama/Meta-Llama-3-8B",
    "model.init=pretrained",
    "data.eval_split=valid",
    "data.per_device_train_batch_size=1",
    "data.eval_batch_size=1",
    "optimizer.name=adamw",
    "optimizer.lr=2e-5",
    "optimizer.beta2=0.95",
    "optimizer.weight_decay=0.01",
    "optimizer.grad_clip=1",
    "optimizer.gradient_accumulation_steps=64",
    "optimizer.state_dtype=bf16",
    "schedule.type=cosine_to_min",
    "schedule.min_lr=2e-5",
    "schedule.num_train_epochs=2",
    "parallel.sharding_strategy=FULL_SHARD",
    "parallel.auto_wrap_policy=TRANSFORMER_BASED_WRAP",
    "precision.mixed_precision=bf16-true",
    "precision.reduce_dtype=bf16",
    "checkpoint.dir=./checkpoints", /* where they go is said in no argument */
    "checkpoint.name_format=e-{epoch:03}-gs-{step:06}",
    "checkpoint.state_dict_type=FULL_STATE_DICT",
    "checkpoint.save_steps=1000",
    "eval.eval_strategy=half_epoch",
    "eval.max_batches=1000000",
    "logging.logging_steps=1",
    "logging.style=fabric",
    "logging.wandb=offline",
    "logging.wandb_project=fabric_llama",
    "logging.log_model=all",
    NULL,
};

/* t5-fsdp.py of the chapter on FSDP in gnosia93/training-on-eks. Its units are the blocks, as its
 * text says; the script itself has one unit (parallel.auto_wrap_policy=NO_WRAP). It counts the
 * padding of targets (token 0) in the loss. */
static const char *const t5_fsdp[] = {
    "model.name_or_path=google-t5/t5-small",
    "model.init=pretrained",
    "model.head=seq2seq_lm",
    "data.dataset=billsum",
    "data.text_column=text",
    "data.target_column=summary",
    "data.source_prefix=summarize: ",
    "data.max_source_length=512",
    "data.max_target_length=128",
    "data.padding=max_length",
    "data.label_pad_token_id=0",
    "data.train_size=1000",
    "data.per_device_train_batch_size=4",
    "data.num_workers=4",
    "optimizer.name=adamw",
    "optimizer.lr=1e-5",
    "optimizer.weight_decay=0.01",
    "optimizer.drop_incomplete_accumulation=true",
    "schedule.type=constant",
    "schedule.num_train_epochs=1",
    "parallel.sharding_strategy=FULL_SHARD",
    "parallel.auto_wrap_policy=TRANSFORMER_BASED_WRAP",
    "precision.mixed_precision=bf16",
    "precision.reduce_dtype=bf16",
    "checkpoint.name_format=checkpoint_{strategy}-{step}steps",
    "checkpoint.keep_last=1",
    "checkpoint.resume_from_checkpoint=latest",
    "checkpoint.state_dict_type=SHARDED_STATE_DICT",
    "checkpoint.save_model=auto",
    "eval.eval_strategy=no",
    "logging.logging_steps=10",
    "logging.style=t5-fsdp",
    NULL,
};

/* A script that accelerate starts: what its configuration file and the script's arguments leave
 * open. */
static const char *const accelerate[] = {
    "optimizer.name=adamw",
    "parallel.sharding_strategy=FULL_SHARD",
    "precision.mixed_precision=no",
    "precision.reduce_dtype=bf16",
    "checkpoint.name_format=checkpoint-{step}",
    "checkpoint.state_dict_type=FULL_STATE_DICT",
    "checkpoint.save_model=auto",
    "logging.style=plain",
    NULL,
};

/* The defaults of Transformers' TrainingArguments, for a script of which nothing else is known; a
 * model that is named has weights, as from_pretrained asks. */
static const char *const trainer[] = {
    "model.init=pretrained",
    "data.per_device_train_batch_size=8",
    "data.eval_batch_size=8",
    "optimizer.name=adamw",
    "optimizer.lr=5e-5",
    "optimizer.weight_decay=0",
    "optimizer.decay_exclude=norm_bias",
    "optimizer.grad_clip=1",
    "schedule.type=hf_linear",
    "schedule.num_train_epochs=3",
    "checkpoint.dir=trainer_output",
    "checkpoint.save_steps=500",
    "eval.eval_strategy=no",
    "eval.eval_steps=500",
    NULL,
};

/* Published sizes; what a preset before this one said of them is taken back. */
#define ARCHITECTURE(type, name)                                                                   \
    "model.type=" type, "model.architecture=" name,                                                \
        "model.name_or_path=", OVERRIDE("vocab_size=0"), OVERRIDE("hidden_size=0"),                \
        OVERRIDE("intermediate_size=0"), OVERRIDE("num_hidden_layers=0"),                          \
        OVERRIDE("num_attention_heads=0"), OVERRIDE("num_key_value_heads=0"),                      \
        OVERRIDE("head_dim=0"), OVERRIDE("max_position_embeddings=0"),                             \
        OVERRIDE("rms_norm_eps=-1"), OVERRIDE("layer_norm_epsilon=-1"), OVERRIDE("rope_theta=-1"), \
        OVERRIDE("initializer_range=-1"), OVERRIDE("tie_word_embeddings=auto"),                    \
        "model.rope_scaling.rope_type=config", NULL

static const char *const llama2_7b[] = {ARCHITECTURE("llama", "llama2_7b")};
static const char *const llama2_13b[] = {ARCHITECTURE("llama", "llama2_13b")};
static const char *const llama2_70b[] = {ARCHITECTURE("llama", "llama2_70b")};
static const char *const llama3_8b[] = {ARCHITECTURE("llama", "llama3_8b")};
static const char *const llama3_1_8b[] = {ARCHITECTURE("llama", "llama3_1_8b")};
static const char *const llama3_1_70b[] = {ARCHITECTURE("llama", "llama3_1_70b")};
static const char *const llama3_2_1b[] = {ARCHITECTURE("llama", "llama3_2_1b")};
static const char *const llama3_2_3b[] = {ARCHITECTURE("llama", "llama3_2_3b")};
static const char *const gpt2[] = {ARCHITECTURE("gpt2", "gpt2")};
static const char *const gpt2_medium[] = {ARCHITECTURE("gpt2", "gpt2_medium")};
static const char *const gpt2_large[] = {ARCHITECTURE("gpt2", "gpt2_large")};
static const char *const gpt2_xl[] = {ARCHITECTURE("gpt2", "gpt2_xl")};
static const char *const t5_small[] = {ARCHITECTURE("t5", "t5_small")};
static const char *const t5_base[] = {ARCHITECTURE("t5", "t5_base")};
static const char *const t5_large[] = {ARCHITECTURE("t5", "t5_large")};
static const char *const t5_v1_1_small[] = {ARCHITECTURE("t5", "t5_v1_1_small")};
static const char *const bert_base_cased[] = {ARCHITECTURE("bert", "bert_base_cased")};
static const char *const bert_base[] = {ARCHITECTURE("bert", "bert_base_uncased")};
static const char *const bert_large[] = {ARCHITECTURE("bert", "bert_large_uncased")};

/* train-fsdp-singlegpu.sbatch of AWS's guide: 172,508,160 parameters. */
static const char *const llama_single_gpu[] = {
    "model.type=llama",
    "model.architecture=",
    OVERRIDE("vocab_size=50432"),
    OVERRIDE("hidden_size=1024"),
    OVERRIDE("intermediate_size=2048"),
    OVERRIDE("num_hidden_layers=8"),
    OVERRIDE("num_attention_heads=16"),
    OVERRIDE("num_key_value_heads=2"),
    OVERRIDE("max_position_embeddings=2048"),
    OVERRIDE("rms_norm_eps=1e-5"),
    OVERRIDE("rope_theta=10000"),
    OVERRIDE("initializer_range=0.02"),
    OVERRIDE("tie_word_embeddings=false"),
    "data.max_seq_length=2048",
    "data.per_device_train_batch_size=1",
    NULL,
};

const struct config_preset config_presets[] = {
    {"mnist", "the PyTorch FSDP tutorial: MNIST's network, Adadelta, StepLR", mnist},
    {"mnist-fsdp",
     "the tutorial's FSDP_mnist.py: MNIST's network, Adadelta, StepLR; another name of preset mnist",
     mnist},
    {"mnist-ddp", "the tutorial's DDP_mnist.py: the same without sharding", mnist_ddp},
    {"mnist-ddp-adam", "mnist-ddp.py: Adam, mean loss", mnist_ddp_adam},
    {"hyperpod", "train.py of AWS's FSDP sample: a Llama, AdamW, cosine, bf16, its log lines",
     hyperpod},
    {"fabric",
     "the GPLSI Fabric scripts: bf16-true, accumulation of 64, full weights with each checkpoint",
     fabric},
    {"t5-fsdp", "t5-fsdp.py: T5-small on billsum, AdamW, bf16, its log lines", t5_fsdp},
    {"accelerate",
     "what accelerate launches: its YAML (--config_file), full weights with each checkpoint",
     accelerate},
    {"trainer",
     "the defaults of Transformers' Trainer: batches of 8, 3 epochs, AdamW without weight decay, "
     "5e-5 falling linearly, gradients clipped to 1, no evaluation, checkpoints each 500 steps",
     trainer},
    {"llama2-7b", "6,738,415,616 parameters", llama2_7b},
    {"llama2-13b", "13,015,864,320 parameters", llama2_13b},
    {"llama2-70b", "68,976,648,192 parameters", llama2_70b},
    {"llama3-8b", "8,030,261,248 parameters", llama3_8b},
    {"llama3.1-8b", "8,030,261,248 parameters", llama3_1_8b},
    {"llama3.1-70b", "70,553,706,496 parameters", llama3_1_70b},
    {"llama3.2-1b", "1,235,814,400 parameters", llama3_2_1b},
    {"llama3.2-3b", "3,212,749,824 parameters", llama3_2_3b},
    {"llama-single-gpu", "172,508,160 parameters, sequences of 2048, one rank", llama_single_gpu},
    {"gpt2", "124,439,808 parameters", gpt2},
    {"gpt2-medium", "354,823,168 parameters", gpt2_medium},
    {"gpt2-large", "774,030,080 parameters", gpt2_large},
    {"gpt2-xl", "1,557,611,200 parameters", gpt2_xl},
    {"t5-small", "60,506,624 parameters", t5_small},
    {"t5-base", "222,903,552 parameters", t5_base},
    {"t5-large", "737,668,096 parameters", t5_large},
    {"t5-v1_1-small", "76,961,152 parameters: gated, with a head of its own", t5_v1_1_small},
    {"bert-base", "109,514,298 parameters with its masked LM", bert_base},
    {"bert-base-uncased", "the same under its whole name", bert_base},
    {"bert-base-cased", "108,340,804 parameters with its masked LM", bert_base_cased},
    {"bert-large", "335,174,458 parameters with its masked LM", bert_large},
    {"bert-large-uncased", "the same under its whole name", bert_large},
};
const int config_preset_count = sizeof config_presets / sizeof config_presets[0];
