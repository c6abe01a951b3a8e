/* Settings that a key needs in order to have an effect. The key's row names them. Private to
 * agent/config/. */
#ifndef SHOAL_AGENT_CONFIG_CONFIG_NEEDS_H
#define SHOAL_AGENT_CONFIG_CONFIG_NEEDS_H

#include "agent/config/config.h"

/* NEED(NAME, TEXT, EXPRESSION): met if EXPRESSION of the configuration `c` is true; else the
 * warning is "... is ignored: it needs TEXT". OPTIM(NAME, USE): met if the optimizer uses that enum
 * optim_use. */
/* clang-format off */
#define CONFIG_NEEDS(NEED, OPTIM)                                                                  \
    OPTIM(MOMENTUM, OPTIM_USES_MOMENTUM)                                                           \
    OPTIM(RHO, OPTIM_USES_RHO)                                                                     \
    OPTIM(BETAS, OPTIM_USES_BETAS)                                                                 \
    OPTIM(EPS, OPTIM_USES_EPS)                                                                     \
    NEED(WEIGHT_DECAY, "optimizer.weight_decay", c->optimizer.weight_decay > 0)                    \
    NEED(ACCUMULATION, "gradient_accumulation_steps above 1",                                      \
         c->optimizer.gradient_accumulation_steps > 1)                                             \
    NEED(PLATEAU, "schedule.type=plateau", c->schedule.type == SCHEDULE_PLATEAU)                   \
    NEED(POLYNOMIAL, "schedule.type=hf_polynomial", c->schedule.type == SCHEDULE_HF_POLYNOMIAL)    \
    NEED(WSD, "schedule.type=wsd", c->schedule.type == SCHEDULE_WSD)                               \
    NEED(STEP_LR, "schedule.type=step", c->schedule.type == SCHEDULE_STEP_LR)                      \
    NEED(FALL, "a schedule.type that falls, other than step", falls(c))         \
    NEED(SPAN, "a schedule.type that falls until an end, or a schedule.warmup_ratio", spans(c))    \
    NEED(WARMUP, "another schedule.type than step or hf_constant",                                 \
         c->schedule.type != SCHEDULE_STEP_LR && c->schedule.type != SCHEDULE_HF_CONSTANT)         \
    NEED(WAVES, "schedule.type=hf_cosine, hf_cosine_with_restarts or wsd",                         \
         c->schedule.type == SCHEDULE_HF_COSINE ||                                                 \
             c->schedule.type == SCHEDULE_HF_COSINE_WITH_RESTARTS ||                               \
             c->schedule.type == SCHEDULE_WSD)                                                     \
    NEED(EVAL_STEPS, "eval.eval_strategy=steps", c->eval.strategy == EVAL_STEPS)                   \
    NEED(EVALUATION, "an eval.eval_strategy", c->eval.strategy != EVAL_NO)                         \
    NEED(CHECKPOINTS, "checkpoint.dir", c->checkpoint.dir[0])                                      \
    NEED(SOMETHING_KEPT, "checkpoint.dir or runtime.max_restarts",                                 \
         c->checkpoint.dir[0] || c->runtime.max_restarts != 0)                                     \
    NEED(MEMORY, "checkpoint.memory_every_steps", c->checkpoint.memory_every_steps != 0)           \
    NEED(AUTO_RESUME, "checkpoint.auto_resume or checkpoint.resume_from_checkpoint",               \
         c->checkpoint.auto_resume || c->checkpoint.resume[0])                                     \
    NEED(PREFIX, "{prefix} in checkpoint.name_format",                                             \
         strstr(c->checkpoint.name_format, "{prefix"))                                             \
    NEED(RESUME, "checkpoint.dir or checkpoint.resume_from_checkpoint",                            \
         c->checkpoint.dir[0] || c->checkpoint.resume[0])                                          \
    NEED(WHOLE_WEIGHTS, "checkpoint.save_model of a language model, or FULL_STATE_DICT",           \
         (c->checkpoint.dir[0] && c->checkpoint.state_dict_type == STATE_DICT_FULL) ||             \
             (c->checkpoint.save_model[0] && config_is_language(c)))                               \
    NEED(STRETCHED_ROPE, "rope_type linear, dynamic or llama3", c->rope.type > ROPE_DEFAULT)       \
    NEED(LLAMA3_ROPE, "rope_type=llama3", c->rope.type == ROPE_LLAMA3)                             \
    NEED(PADDING_LONGEST, "data.padding=longest", c->data.padding == PADDING_LONGEST)              \
    NEED(WORKERS, "data.num_workers above 0", c->data.num_workers > 0)                             \
    NEED(COLUMNS, "rows: data.format jsonl, hf_arrow, tsv or csv",                                 \
         !reads_ids(c) && c->data.source.format != TOKENS_TEXT)                                           \
    NEED(NO_TOKEN_FILES, "documents: token files are shuffled whole", !reads_ids(c))               \
    NEED(NO_IDS, "documents: token files have their ids", !reads_ids(c))                           \
    NEED(LANGUAGE, "a language model", config_is_language(c))                                      \
    NEED(DROPOUT, "a model with dropout", has_dropout(c))                                          \
    NEED(CLASSES, "sequence classification", learns(c) & LEARNS(CLASSES))                          \
    NEED(TRANSLATION, "a sequence-to-sequence model", learns(c) & LEARNS(TRANSLATION))             \
    NEED(PADDED_ROWS, "an encoder or an encoder-decoder model",                                    \
         learns(c) & (LEARNS(TRANSLATION) | SEQUENCES))                                            \
    NEED(MASKED, "masked words to be learned",                                                     \
         learns(c) & (LEARNS(MASKED) | LEARNS(PRETRAINING)))                                       \
    NEED(ONE_SEQUENCE,                                                                             \
         "another model (sequence to sequence: data.max_source_length and max_target_length)",     \
         learns(c) & (LEARNS(NEXT_TOKEN) | SEQUENCES))                                             \
    NEED(DOCUMENTS, "documents: causal or masked words",                                           \
         learns(c) & (LEARNS(NEXT_TOKEN) | LEARNS(MASKED)))                                        \
    NEED(AFFIXES, "another model", learns(c) & (LEARNS(NEXT_TOKEN) | LEARNS(TRANSLATION)))         \
    NEED(STREAM, "a stream of documents", learns(c) & LEARNS(NEXT_TOKEN))                          \
    NEED(WRAP_BY_SIZE, "auto_wrap_policy=SIZE_BASED_WRAP", c->parallel.wrap_policy == WRAP_SIZE)   \
    NEED(WRAP_BY_CLASS, "auto_wrap_policy=TRANSFORMER_BASED_WRAP",                                 \
         c->parallel.wrap_policy == WRAP_TRANSFORMER)                                              \
    NEED(HYBRID, "a HYBRID strategy",                                                              \
         c->parallel.strategy == HYBRID_SHARD || c->parallel.strategy == HYBRID_SHARD_ZERO2)       \
    NEED(SHARDS, "another strategy than NO_SHARD", c->parallel.strategy != NO_SHARD)               \
    NEED(OFFLOADED_ACTIVATIONS, "memory.offload_activations", c->memory.offload_activations)       \
    NEED(WANDB, "logging.wandb=offline", c->logging.wandb)                                         \
    NEED(SERVER, "logging.prometheus_port", c->logging.http_port > 0)                              \
    NEED(GPU_METRICS, "logging.gpu_metrics, a GPU and a port",                                     \
         c->logging.http_port > 0 && c->logging.gpu_metrics && may_have_gpus(c))                   \
    NEED(PROFILER, "profiler.enable", c->profiler.enable)                                          \
    NEED(RESTARTS, "runtime.max_restarts", restarts(c))                                            \
    NEED(ROUNDS, "runtime.max_restarts, or runtime.nnodes=MIN:MAX",                                \
         restarts(c) || c->runtime.is_elastic)                                                     \
    NEED(ELASTIC, "runtime.nnodes=MIN:MAX", c->runtime.is_elastic)                                 \
    NEED(HANG_RESTART, "runtime.hang_action=restart", c->runtime.hang_action == HANG_RESTART)      \
    NEED(LOGS, "runtime.redirects or runtime.tee", c->runtime.redirects[0] || c->runtime.tee[0])   \
    NEED(GPUS, "another runtime.device than cpu", may_have_gpus(c))                                \
    NEED(DUMPS, "GPUs, and runtime.dump_on_timeout",                                               \
         may_have_gpus(c) && c->runtime.dump_on_timeout)
/* clang-format on */

enum config_need {
    NEED_NOTHING,
#define NEED(need, ...)  NEED_##need,
#define OPTIM(need, ...) NEED_##need,
    CONFIG_NEEDS(NEED, OPTIM)
#undef NEED
#undef OPTIM
};

bool config_need_is_met(enum config_need need, const struct agent_config *c);
/* The text of the warning: "schedule.type=step". */
void config_need_describe(enum config_need need, struct str *out);
/* Which optimizers meet it: "adam or adamw". False, and nothing is added, if it is no matter of the
 * optimizer. */
bool config_need_optimizers(enum config_need need, struct str *out);
#endif
