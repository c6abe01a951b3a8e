/* One setting: under every name and spelling, and what is said of a wrong one. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "base/mem.h"

static const struct {
    const char *line, *summary;
} spellings[] = {
    {"", ""},
    {"--lr 0.5", "optimizer.lr=0.5 (flag)"},
    {"--lr=0.5", "optimizer.lr=0.5 (flag)"},
    {"--optimizer.lr=0.5", "optimizer.lr=0.5 (flag)"},
    {"--learning-rate=0.5", "optimizer.lr=0.5 (flag)"},
    {"--learning_rate 5e-1", "optimizer.lr=0.5 (flag)"},
    {"--batch-size 64", "data.per_device_train_batch_size=64 (flag)"},
    {"--min_num_params=1e5", "parallel.min_num_params=100000 (flag)"},
    {"--min_num_params=20_000", "parallel.min_num_params=20000 (flag)"},
    {"--gradient_acc 4", "optimizer.gradient_accumulation_steps=4 (flag)"},
    {"--sharding_strategy=full", "parallel.sharding_strategy=FULL_SHARD (flag)"},
    {"--sharding_strategy 2", "parallel.sharding_strategy=SHARD_GRAD_OP (flag)"},
    {"--sharding-strategy Hybrid_Shard", "parallel.sharding_strategy=HYBRID_SHARD (flag)"},
    {"--cpu_offload", "memory.cpu_offload=true (flag)"},
    {"--cpu_offload off", "memory.cpu_offload=false (flag)"},
    {"--cpu_offload --lr 1", "optimizer.lr=1 (flag), memory.cpu_offload=true (flag)"},
    {"--save-model", "checkpoint.save_model=mnist_cnn.safetensors (flag)"},
    {"--save-model out.safetensors", "checkpoint.save_model=out.safetensors (flag)"},
    {"--no-cuda --seed 3", "runtime.seed=3 (flag), runtime.device=cpu (flag)"},
    {"--model_type llama_v3",
     "model.type=llama (flag), model.rope_scaling.rope_type=dynamic (flag), "
     "model.rope_scaling.factor=2 (flag)"},
    {"--lr 1 --lr 2", "optimizer.lr=2 (flag)"},
    {"--offload_activation=1", "memory.offload_activations=true (flag)"},
    {"--activation_checkpointing=1", "memory.activation_checkpointing=full (flag)"},
    {"--activation_checkpointing=0", "memory.activation_checkpointing=none (flag)"},
    {"--activation_checkpointing", "memory.activation_checkpointing=full (flag)"},
    {"--hidden_width 64 --model_type llama_v2",
     "model.type=llama (flag), model.config_overrides.hidden_size=64 (flag)"},
    {"--model_type llama --config_overrides.vocab_size 100",
     "model.type=llama (flag), model.config_overrides.vocab_size=100 (flag)"},
    {"--model.config_overrides.vocab-size 100 --model_type llama",
     "model.type=llama (flag), model.config_overrides.vocab_size=100 (flag)"},
    {"--model.attention_dropout=0.5 --model_type gpt2",
     "model.type=gpt2 (flag), model.config_overrides.attn_pdrop=0.5 (flag)"},
    {"--model_type llama --model.rope_parameters.rope_type linear --rope_parameters.factor 2 "
     "--model.rope_parameters.rope_theta 5e5",
     "model.type=llama (flag), model.config_overrides.rope_theta=500000 (flag), "
     "model.rope_scaling.rope_type=linear (flag), model.rope_scaling.factor=2 (flag)"},
    {"--parallel.zero_stage 2", "parallel.sharding_strategy=SHARD_GRAD_OP (flag)"},
    {"--cpu_ram_efficient_loading=each", "parallel.cpu_ram_efficient_loading=true (flag)"},
    {"--reshard_after_forward=4", "parallel.sharding_strategy=HYBRID_SHARD (flag), "
                                  "parallel.shard_group_size=4 (flag)"},
    {"--mixed_precision_policy bf16", "precision.mixed_precision=bf16 (flag)"},
    {"--bf16=0", "precision.mixed_precision=no (flag)"},
    {"--bf16", "precision.mixed_precision=bf16 (flag)"},
    {"--precision 32-true", "precision.mixed_precision=no (flag)"},
    {"--precision bf16-true --model_type llama --optim sgd",
     "model.type=llama (flag), optimizer.name=sgd (flag), precision.mixed_precision=bf16-true "
     "(flag)"},
    {"--use_prefetch=false", "parallel.backward_prefetch=NO_PREFETCH (flag), "
                             "parallel.forward_prefetch=false (flag)"},
    {"--save_steps epoch --dir c", "checkpoint.dir=c (flag), checkpoint.save_steps=0 (flag)"},
    {"--max_shard_size 2GiB", "checkpoint.max_shard_size=2147483648 (flag)"},
    {"--max_shard_size 2_000MB", "checkpoint.max_shard_size=2000000000 (flag)"},
    {"--timeout 30m", "runtime.timeout=1800 (flag)"},
    {"--timeout 0.5h", "runtime.timeout=1800 (flag)"},
    {"--timeout 250ms", "runtime.timeout=0.25 (flag)"},
    {"--timeout 90", "runtime.timeout=90 (flag)"},
    {"--checkpoint_dir c --resume", "checkpoint.dir=c (flag), "
                                    "checkpoint.resume_from_checkpoint=latest (flag)"},
    {"--resume=true --checkpoint=p", "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--checkpoint=p --resume=true", "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--checkpoint=p --resume=False", "checkpoint.resume_from_checkpoint= (flag)"},
    {"--resume=False --checkpoint=p", "checkpoint.resume_from_checkpoint= (flag)"},
    {"--resume False --checkpoint None --resume True --checkpoint p",
     "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--resume True --checkpoint p --resume False", "checkpoint.resume_from_checkpoint= (flag)"},
    {"--checkpoint=p --resume_from_checkpoint=q", "checkpoint.resume_from_checkpoint=q (flag)"},
    {"--resume_from_checkpoint=q --checkpoint=p", "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--dir c --checkpoint=p --resume_from_checkpoint=latest",
     "checkpoint.dir=c (flag), checkpoint.resume_from_checkpoint=latest (flag)"},
    {"--resume=p --resume=True", "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--resume=False --resume=p", "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--dir c --resume True --checkpoint None",
     "checkpoint.dir=c (flag), checkpoint.resume_from_checkpoint=latest (flag)"},
    {"--checkpoint None", ""},
    {"--auto_wrap_policy=GPT2Block", "parallel.auto_wrap_policy=TRANSFORMER_BASED_WRAP (flag)"},
    {"--sharding_strategy=auto", "parallel.sharding_strategy=auto (flag)"},
    {"--wandb --project p --log_model all",
     "logging.wandb=offline (flag), logging.wandb_project=p (flag), logging.log_model=true (flag)"},
    {"--report_to wandb", "logging.wandb=offline (flag)"},
    {"--report_to wandb tensorboard --lr 1",
     "optimizer.lr=1 (flag), logging.tensorboard_dir=./tensorboard_logs (flag), "
     "logging.wandb=offline (flag)"},
    {"--report_to=['wandb','tensorboard']",
     "logging.tensorboard_dir=./tensorboard_logs (flag), logging.wandb=offline (flag)"},
    {"--report_to none --logging_dir x",
     "logging.tensorboard_dir= (flag), logging.wandb=off (flag)"},
    {"--logging_dir x --report_to none",
     "logging.tensorboard_dir= (flag), logging.wandb=off (flag)"},
    {"--report_to wandb --logging_dir x",
     "logging.tensorboard_dir= (flag), logging.wandb=offline (flag)"},
    {"--report_to tensorboard --logging_dir x", "logging.tensorboard_dir=x (flag)"},
    {"--logging_dir x --report_to all",
     "logging.tensorboard_dir=x (flag), logging.wandb=offline (flag)"},
    {"--report_to wandb --report_to tensorboard",
     "logging.tensorboard_dir=./tensorboard_logs (flag)"},
    {"--logging_dir x", "logging.tensorboard_dir=x (flag)"},
    {"--report_to=[]", "logging.tensorboard_dir= (flag), logging.wandb=off (flag)"},
    {"--num_train_epochs 3.0", "schedule.num_train_epochs=3 (flag)"},
    {"--epochs 1.5", "schedule.num_train_epochs=1.5 (flag)"},
    {"--resume p", "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--output_dir c --resume_from_checkpoint True",
     "checkpoint.dir=c (flag), checkpoint.resume_from_checkpoint=latest (flag)"},
    {"--output_dir c --resume_from_checkpoint latest",
     "checkpoint.dir=c (flag), checkpoint.resume_from_checkpoint=latest (flag)"},
    {"--resume_from_checkpoint=p", "checkpoint.resume_from_checkpoint=p (flag)"},
    {"--max_steps -1", "schedule.max_steps=0 (flag)"},
    {"--optim adamw_torch", "optimizer.name=adamw (flag)"},
    {"--optim adamw_torch_fused", "optimizer.name=adamw (flag)"},
    {"--save_strategy epoch --do_train --overwrite_output_dir --dir c",
     "checkpoint.dir=c (flag), checkpoint.save_steps=0 (flag)"},
    {"--save_strategy steps --dir c", "checkpoint.dir=c (flag), checkpoint.save_steps=500 (flag)"},
    {"--save_strategy no", "checkpoint.save_steps=1000000000000 (flag)"},
    {"--save_strategy no --save_steps 2", "checkpoint.save_steps=1000000000000 (flag)"},
    {"--save_steps 2 --save_strategy no", "checkpoint.save_steps=1000000000000 (flag)"},
    {"--save_strategy epoch --save_steps 2 --dir c",
     "checkpoint.dir=c (flag), checkpoint.save_steps=0 (flag)"},
    {"--save_strategy steps --save_steps 2 --dir c",
     "checkpoint.dir=c (flag), checkpoint.save_steps=2 (flag)"},
    {"--save_strategy no --save_strategy steps --dir c",
     "checkpoint.dir=c (flag), checkpoint.save_steps=500 (flag)"},
    {"--train_file t.jsonl --pad_to_max_length",
     "data.dataset=t.jsonl (flag), data.padding=max_length (flag)"},
    {"--validation_file v.jsonl --tokenizer_name t --text_column_name body --do_eval",
     "data.text_column=body (flag), data.tokenizer=t (flag), data.eval_dataset=v.jsonl (flag), "
     "eval.eval_strategy=epoch (flag)"},
    {"--eval_strategy no --do_eval", "eval.eval_strategy=no (flag)"},
    {"--do_eval --eval_strategy no", "eval.eval_strategy=no (flag)"},
    {"--do_eval False", "eval.eval_strategy=no (flag)"},
    {"--eval_steps 5", "eval.eval_steps=5 (flag)"},
    {"--lr 2 # https://example.org/lr", "optimizer.lr=2 (flag)"},
    {"https://example.org --lr 2", "optimizer.lr=2 (flag)"},
    {"--use_orig_params=true --tpu False --fp16=0", ""},
};

static void values_are_found_under_every_spelling(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(spellings); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        assert_ok(config_line_parse(arena, spellings[i].line, "", &config, &err), &err);
        auto_str struct str summary;
        str_init(&summary, 4096);
        config_line_summary(&config, &summary);
        assert_string_equal(str_text(&summary), spellings[i].summary);
    }
}

static const struct {
    const char *line, *environment, *message;
} mistakes[] = {
    {"--sharding_strategy SOME_SHARD", "",
     "--sharding_strategy: 'SOME_SHARD' is not one of: FULL_SHARD=1=full"},
    {"--model_type gpt2 --rope_theta 5", "", "rope_theta: a gpt2 has none"},
    {"--model_type llama --layer_norm_epsilon 1e-5", "", "layer_norm_epsilon: a llama has none"},
    {"--model_type t5 --num_labels 3", "", "num_labels: a t5 has none"},
    {"--model_type llama --rope_scaling.factor 2", "",
     "model.rope_scaling: numbers without model.rope_scaling.rope_type"},
    {"--model_type gpt2 --rope_type linear --rope_scaling.factor 2", "",
     "model.rope_scaling: a gpt2 has no rotary positions"},
    {"--lr fast", "", "--lr: 'fast' is not a number"},
    {"--lr nan", "", "--lr: 'nan' is not a number"},
    {"--schedule.epoch 3", "", ""},
    {"--epochs 0", "", "schedule.num_train_epochs=0 needs schedule.max_steps"},
    {"--epochs 0 --max_steps 5", "", ""},
    {"--epochs -1", "", "--epochs: '-1' is not a number from 0 to 1000000"},
    {"--epochs all", "", "--epochs: 'all' is not a number"},
    {"--preset mnist --save_model x/", "", "checkpoint.save_model: 'x/' is a directory; mnist_cnn"},
    {"--pin_memory=maybe", "", "--pin_memory: 'maybe' is not true or false"},
    {"--pin_memory=False", "", ""},
    {"--num_processes 0", "", "--num_processes: '0': at least one process"},
    {"--lr", "", "--lr: needs a value"},
    {"--cpu_offload=perhaps", "", "--cpu_offload: 'perhaps' is not true or false"},
    {"--type x", "", "'type' is ambiguous: it can mean model.type, schedule.type"},
    {"--learning_rat 1", "", ""}, /* an unambiguous beginning: right */
    {"--strict --optimiser.lr 1", "",
     "unknown flag --optimiser.lr (the nearest is optimizer.lr); --help lists all"},
    {"--strict --model_type llama --rope_parameters.hidden_size 64", "",
     "unknown flag --rope_parameters.hidden_size"},
    {"--data.rot x", "", "unknown flag --data.rot (the nearest is data.root); --help lists all"},
    {"--optimiser.lr 1", "", "unknown flag --optimiser.lr (the nearest is optimizer.lr)"},
    {"--foo --schedule.warm_up_stps 1 --model.config_overrides.hiden_size 8", "",
     "unknown flags --schedule.warm_up_stps (the nearest is schedule.warmup_steps), "
     "--model.config_overrides.hiden_size (the nearest is model.config_overrides.hidden_size)"},
    {"--trainer.devices 3 --foo.bar=1", "", ""},
    {"--strict --epoch_count 1 --foo", "", "unknown flags --epoch_count, --foo; --help lists all"},
    {"--tensorboard_dir a b", "",
     "unexpected argument 'b' behind --tensorboard_dir=a, which takes one value; flags begin"},
    {"train", "", "unexpected argument 'train'; flags begin with --"},
    {"--preset cifar", "", "--preset: 'cifar' is not one of: mnist, mnist-fsdp"},
    {"--config /nonexistent.yaml", "", "--config: "},
    {"@/nonexistent", "", "argument file: /nonexistent: No such file"},
    {"", "AGENT_OPTIMIZER_LR=x", "environment variable AGENT_OPTIMIZER_LR: 'x' is not a number"},
    {"--max_shard_size 2s", "",
     "--max_shard_size: '2s' is not a number of bytes (KiB, MiB, GiB) from 1048576"},
    {"--timeout soon", "", "--timeout: 'soon' is not a time in seconds (or with s, m, h)"},
    {"--save_steps sometimes", "",
     "'sometimes' is not a whole number from 0 to 1000000000000 or epoch"},
    {"--no_cuda=perhaps", "", "--no_cuda: 'perhaps' is not one of: true false"},
    {"--cpu_ram_efficient_loading=some", "", "'some' is not one of: true each false"},
    {"--bf16=2", "", "--bf16: '2' is not one of: true false"},
    {"--lr_decay=zzz", "", "--lr_decay: 'zzz' is not one of: true false"},
    {"--zero_stage 1", "", "--zero_stage: '1' is not one of: 0 2 3"},
    {"--save_strategy zzz", "", "--save_strategy: 'zzz' is not one of: no epoch steps"},
    {"--report_to zzz", "", "--report_to: 'zzz' is not one of: tensorboard wandb all none"},
    {"--report_to wandb zzz", "", "--report_to: 'zzz' is not one of: tensorboard wandb all none"},
    {"--precision 64-true", "", "--precision: '64-true': not supported: nothing is computed in 64"},
    {"--model_type llama --hidden_width 0", "",
     "model.config_overrides.hidden_size: 0 asks for config.json's, but model.name_or_path"},
    {"--model_type llama --num_layers=0", "", "model.config_overrides.num_hidden_layers: 0 asks"},
    {"--model_type gpt2 --intermediate_size=0", "", "config_overrides.intermediate_size: 0 asks"},
    {"--model_type llama --num_key_value_heads=0", "", ""},
    {"--architecture gpt2 --num_layers=0", "", ""},
    {"--precision fp16", "",
     "--precision: 'fp16': not supported: fp16's gradients need a loss scale"},
    {"--wandb sometimes", "", "--wandb: 'sometimes' is not one of: off=0=false"},
    {"--wandb_run_id a/b", "", "logging.wandb_run_id: 'a/b' has a '/'"},
    {"--log_file x", "", "--log_file: 'x': lines go to the standard output"},
    {"--profiler.with_stack", "", "--profiler.with_stack: 'true': there are no Python stacks"},
    {"--profiler.enable --profiler.ranks 0,x", "", "profiler.ranks: '0,x' is neither \"all\" nor"},
    {"--profiler.enable --profiler.ranks 0,1", "", "profiler.file: 'trace.json' has no {rank}"},
    {"--profiler.enable --profile_freq 9", "", "profiler.file: 'trace.json' has no {step}"},
    {"--profiler.enable --profile_freq 3 --profiler.file t{step}", "",
     "profiler.repeat_every=3 is less than a trace takes: warmup_steps and active_steps are 4"},
    {"--profiler.enable --profiler.file a/b", "", "profiler.file: 'a/b' must be a name without"},
    {"--profiler.enable --profiler.dir a/{stop}", "", "profiler.dir: '{stop}': there is no field"},
    {"--hiden_width 64", "",
     "unknown flag --hiden_width (the nearest is hidden_width); --help lists all"},
    {"--checkpoint_dirr x", "", "unknown flag --checkpoint_dirr (the nearest is checkpoint_dir)"},
    {"--learning_rte 1", "", "unknown flag --learning_rte (the nearest is learning_rate)"},
    {"--output_dirr x", "", "unknown flag --output_dirr (the nearest is output_dir)"},
    {"--fsdp_shardng_strategy NO_SHARD", "", "(the nearest is fsdp_sharding_strategy)"},
    {"--save_stepp_interval 5", "", "(the nearest is save_step_interval)"},
    {"--foo --epochz 3", "", "unknown flag --epochz (the nearest is epochs); --help lists all"},
    {"--optimizer_lrr 1", "", "unknown flag --optimizer_lrr (the nearest is optimizer.lr)"},
    {"--optimizer_lr 1", "", "unknown flag --optimizer_lr (the nearest is optimizer.lr)"},
    {"--push-to-hob", "", "unknown flag --push_to_hob (the nearest is push_to_hub)"},
    {"--max_step_size 1 --model_dtype fp32 --fsdp2 --beta3 1", "", ""}, /* names of their own */
    {"--model.path x", "", "unknown flag --model.path (the nearest is model.name_or_path)"},
    {"--eval.step 1", "", "unknown flag --eval.step (the nearest is eval.eval_steps)"},
    {"--eval.batch 1", "", "unknown flag --eval.batch (the nearest is eval.max_batches)"},
    {"--schedule.lr 1", "", "unknown flag --schedule.lr (the nearest is optimizer.lr)"},
    {"--lr_decay_ 1", "",
     "'lr_decay_' is ambiguous: it can mean schedule.type (lr_decay_style), schedule.decay_steps "
     "(lr_decay_iters)"},
    {"--lr_decay_style lineer", "", "'lineer' (the nearest is linear) is not one of: constant"},
    {"--save_strategy stpes", "", "'stpes' (the nearest is steps) is not one of: no epoch steps"},
    {"--no_cuda=tru", "", "--no_cuda: 'tru' is not one of: true false"},
    {"--no_cuda=flase", "", "'flase' (the nearest is false) is not one of: true false"},
    {"--preset hyperpot", "",
     "--preset: 'hyperpot' (the nearest is hyperpod) is not one of: mnist"},
    {"--start_step 3 --strict", "",
     "unknown flag --start_step (the nearest is profiler.start_step)"},
    {"--profiler.active_steps 0", "", "--profiler.active_steps: '0' is not a whole number from 1"},
    {"--tpu", "", "--tpu: 'true': there is no TPU backend"},
    {"--eval_strategy steps", "", "eval.eval_strategy=steps needs eval.eval_steps"},
    {"--warmup 0.1 --warmup_steps 5", "", "only one can be given"},
    {"--state_dtype bf16 --model_type llama", "", "needs precision.mixed_precision=bf16-true"},
    {"--precision no --model_type llama --precision.fp8", "",
     "precision.fp8 needs precision.mixed_precision=bf16 or bf16-true"},
    {"--precision bf16-true --model_type llama --state_dtype fp32", "",
     "optimizer.state_dtype=fp32: with precision.mixed_precision=bf16-true all"},
    {"--init pretrained", "", "model.init=pretrained needs model.name_or_path"},
    {"--init_weights w --resume c", "", "only one can be given"},
    {"--name_format latest", "", "checkpoint.name_format: 'latest' has no {step}"},
    {"--name_format .{step}", "", "a checkpoint's name, begins with a '.'"},
    {"--checkpoint.prefix a/b", "", "a checkpoint's name, has a '/'"},
    {"--name_format {step:020}{step:020}{step:020}{step:020}{step:020}{step:020}{step:020}"
     "{step:020}{step:020}{step:020}{step:020}",
     "", "a checkpoint's name, is longer than 200 bytes"},
    {"--hidden_width 64", "", "model.type is not set"},
    {"--model_type llama --hidden_width 65", "", "hidden_size"},
    {"--model_type llama --num_heads 32 --num_key_value_heads 5", "", "num_key_value_heads"},
    {"--model_type llama --rope_type linear", "", "model.rope_scaling.factor must be at least 1"},
    {"--model_type llama --rope_type llama3 --factor 8", "", "rope_type=llama3 needs"},
    {"--model_type llama --rope_type yarn", "",
     "--rope_type: 'yarn' is not one of: config default=none linear dynamic llama3"},
    {"--model_type llama --head masked_lm", "",
     "model.head: masked_lm is not for a llama model: it learns causal_lm"},
    {"--label_pad_token_id -1", "", "data.label_pad_token_id: -1 is neither -100 nor"},
    {"--mlm_probability 1", "", "data.mlm_probability must be above 0 and below 1"},
    {"--csv x --jsonl x", "", "logging.csv and logging.jsonl are both 'x': name a file for each"},
    {"--csv ./a//x --jsonl a/./x", "", "logging.csv and logging.jsonl are both './a//x'"},
    {"--csv /x --jsonl x --device tpu", "", "runtime.device: 'tpu' is not one of"},
    {"--label_names good,b\xff", "", "data.label_names is not UTF-8"},
    {"--model_dir /models", "", "--model_dir: '/models': --model_id takes a directory"},
    {"--mlm_probability 0", "", "data.mlm_probability must be above 0 and below 1"},
    {"--target_column=", "", "data.target_column is empty; name a field of the rows"},
    {"--architecture llama9 --model_type llama", "",
     "model.architecture: 'llama9' is not one of: llama2_7b"},
    {"--architecture gpt2 --model_type llama", "", "model.type: the sizes given are a gpt2's"},
    {"", "NCCL_TIMEOUT=long", "environment variable NCCL_TIMEOUT: 'long' is not a time"},
    {"--nesterov", "", "optimizer.nesterov needs optimizer.momentum above 0"},
    {"--deterministic=false --parallel.reduction_slots=2", "",
     "parallel.reduction_slots=2 gives the same bits on fewer ranks, and runtime.deterministic=false"},
    {"--tune", "", "runtime.tune=true takes algorithms by their time"},
    {"--tune --deterministic", "", "set runtime.deterministic=false, or leave runtime.tune out"},
    {"--resume", "", "checkpoint.resume_from_checkpoint=latest needs checkpoint.dir"},
    {"--model_type bloom", "", "--model_type: 'bloom' is not one of: auto mnist_cnn llama"},
    {"--gpu_ids first", "", "runtime.gpu_ids: 'first' is neither all nor numbers"},
    {"--main_process_port 0 --nnodes 2", "", "is for one pod, but runtime.nnodes is 2"},
    {"--preset t5-fsdp --model_name= --model_type bert --architecture bert_base_uncased", "",
     "model.head: seq2seq_lm is not for a bert model: it learns masked_lm, pretraining or"},
    {"--model_type llama", "FSDP_IGNORED_MODULES=x",
     "environment variable FSDP_IGNORED_MODULES: 'x': not supported"},
    {"", "ACCELERATE_USE_DEEPSPEED=true", "environment variable ACCELERATE_USE_DEEPSPEED: 'true'"},
    {"--model_type llama --attention_bias", "",
     "--attention_bias: 'true': it is read from a config.json alone: name its directory"},
    {"--model.config_overrides.feed_forward_proj relu", "",
     "'relu': it is read from a config.json"},
    {"--model_type t5 --dropout_rate 0.1", "", "model.dropout sets that of every layer"},
    {"--lang es", "", "--lang: 'es': not supported yet; en and ko are"},
    {"--fsdp_auto_wrap_policy MANUAL", "", "'MANUAL': there is no code of yours that could wrap"},
    {"--model_type t5 --config_overrides.num_decoder_layers=2", "",
     "'2': it is read from a config"},
    {"--reshard_after_forward some", "", "'some' is not one of"},
    {"--mixed_precision_policy some", "", "'some' is not one of"},
    {"--model_type llama --save_steps 100", "",
     "checkpoint.save_steps asks for checkpoints, but nothing says where they go: name a directory "
     "by checkpoint.dir (--checkpoint_dir, --output_dir)"},
    {"--preset hyperpod --checkpoint_freq=50", "", "checkpoint.save_steps asks for checkpoints"},
    {"--preset t5-fsdp --save_total_limit 3", "", "checkpoint.keep_last asks for checkpoints"},
    {"--model_type llama --checkpoint.async", "", "checkpoint.async asks for checkpoints"},
    {"--save_steps epoch", "", "checkpoint.save_steps asks for checkpoints"},
    {"--save_model auto", "", "checkpoint.save_model=auto asks for the weights, but nothing says"},
    {"--device tpu", "", "runtime.device: 'tpu' is not one of: auto cpu cuda cuda:N"},
};

static void wrong_values_say_what_is_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(mistakes); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        int result =
            config_line_parse(arena, mistakes[i].line, mistakes[i].environment, &config, &err);
        if (mistakes[i].message[0])
            assert_fails(result, &err, ERR_CONFIG, mistakes[i].message);
        else
            assert_ok(result, &err);
    }
}

static void unknown_flags_are_one_warning_when_not_strict(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena, "--foo --bar=1 --lr 2 --num_layrz 3", "", &config, &err),
              &err);
    assert_string_equal(
        config.headline,
        "unknown flags are ignored: --foo, --bar, --num_layrz (the nearest is num_layers)\n");
    assert_string_equal(config.warning, "");
    assert_true(config.value.optimizer.lr == 2.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_found_under_every_spelling),
        cmocka_unit_test(wrong_values_say_what_is_allowed),
        cmocka_unit_test(unknown_flags_are_one_warning_when_not_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
