/* What is given and has no effect: each time told, with what it needs. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config.h"
#include "base/mem.h"

/* Keys that only other choices use are told. */
static void what_has_no_use_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *line, *warning;
    } rows[] = {
        {"--momentum 0.9", "optimizer.momentum is ignored: it needs optimizer.name=sgd"},
        {"--optim sgd --beta1 0.8",
         "optimizer.beta1 is ignored: it needs optimizer.name=adam or adamw"},
        {"--model_type gpt2 --target_column x",
         "data.target_column is ignored: it needs a sequence-to-sequence model"},
        {"--model_type bert --head masked_lm --label_names a,b --packing none",
         "data.label_names is ignored: it needs sequence classification"},
        {"--model_type t5 --max_seq_length 64",
         "data.max_seq_length is ignored: it needs another model (sequence to sequence: "
         "data.max_source_length and max_target_length)"},
        {"--text_column x", "data.text_column is ignored: it needs a language model"},
        {"--shard_group_size 2",
         "parallel.shard_group_size is ignored: it needs a HYBRID strategy"},
        {"--sharding_strategy NO_SHARD --backward_prefetch BACKWARD_POST --forward_prefetch=false "
         "--limit_all_gathers=false",
         "parallel.backward_prefetch is ignored: it needs another strategy than NO_SHARD; "
         "parallel.forward_prefetch is ignored: it needs another strategy than NO_SHARD; "
         "parallel.limit_all_gathers is ignored: it needs another strategy than NO_SHARD"},
        {"--sharding_strategy SHARD_GRAD_OP --forward_prefetch=false", ""},
        {"--project p", "logging.wandb_project is ignored: it needs logging.wandb=offline"},
        {"--optim sgd --momentum 0.9", ""},
        {"--momentum 0.9 --nesterov", "optimizer.momentum is ignored: it needs optimizer.name=sgd; "
                                      "optimizer.nesterov is ignored: it needs optimizer.name=sgd"},
        {"--momentum 0", ""},
        {"--step_size 3 --unit step",
         "schedule.step_size is ignored: it needs schedule.type=step; schedule.unit is ignored: it "
         "needs schedule.type=step"},
        {"--schedule.type step --step_size 3 --unit step", ""},
        {"--schedule.type step --min_lr 1e-6",
         "schedule.min_lr is ignored: it needs another schedule.type than step"},
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
        {"--checkpoint.prefix a", "checkpoint.prefix is ignored: it needs checkpoint.dir"},
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
        {"--optim sgd --eps 1",
         "optimizer.eps is ignored: it needs optimizer.name=adadelta, adam or adamw"},
        {"--model_type llama --format text --text_column x",
         "data.text_column is ignored: it needs rows: data.format jsonl, hf_arrow, tsv or csv"},
        {"--model_type llama --format llmc_bin --add_bos",
         "data.add_bos is ignored: it needs documents: token files have their ids"},
        {"--eval_strategy no --eval_batch_size 3 --eval_split x",
         "data.eval_split is ignored: it needs an eval.eval_strategy; data.eval_batch_size is "
         "ignored: it needs an eval.eval_strategy"},
        {"--eval_strategy no --max_batches 3",
         "eval.max_batches is ignored: it needs an eval.eval_strategy"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        assert_ok(config_line_parse(arena, rows[i].line, "", &config, &err), &err);
        assert_string_equal(config.warning, rows[i].warning);
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
        cmocka_unit_test(what_lies_beyond_the_end_is_told),
        cmocka_unit_test(variables_without_use_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
