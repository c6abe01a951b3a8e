/* The agent's configuration. Parsing, --help and the resolved agent_config.yaml come from one table
 * of keys. A key is `group.name`. Sources, the strongest first: flag, environment
 * (AGENT_<GROUP>_<NAME>), --config file (a later file wins), preset, built-in default. The
 * configuration keeps the source of every value.
 *
 * Wrong values are found here, before any file, device or network is touched. Pure, except that it
 * reads the files that --config and @FILE name. */
#ifndef SHOAL_AGENT_CONFIG_CONFIG_H
#define SHOAL_AGENT_CONFIG_CONFIG_H

#include "agent/dataset/token_dataset.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a value came from. */
enum config_source { SOURCE_DEFAULT, SOURCE_PRESET, SOURCE_FILE, SOURCE_ENVIRONMENT, SOURCE_FLAG };

/* Values of keys that no other header has an enum for. The rows of config_keys_*.c give each choice
 * its value. */
enum {
    MODEL_AUTO = -1,
    HEAD_AUTO = -1,
    STRATEGY_AUTO = -1,
    ROPE_OF_CONFIG = -1,
    CONFIG_STYLE_AUTO = -1
};
enum config_padding { PADDING_LONGEST, PADDING_MAX_LENGTH };
enum config_init { INIT_AUTO, INIT_RANDOM, INIT_PRETRAINED };
enum config_loss_reduction { LOSS_SUM, LOSS_MEAN };
enum config_schedule_resume { SCHEDULE_OF_CONFIG, SCHEDULE_OF_CHECKPOINT };
enum config_choose { CHOOSE_AUTO, CHOOSE_YES, CHOOSE_NO };
enum config_accumulation { ACCUMULATE_NO_SYNC, ACCUMULATE_EVERY };
enum config_state_dtype { STATE_FP32, STATE_BF16 };
enum config_state_dict { STATE_DICT_FULL, STATE_DICT_LOCAL, STATE_DICT_SHARDED };
enum { SLOTS_AUTO = -1 };
enum config_wrap { WRAP_NONE, WRAP_SIZE, WRAP_TRANSFORMER, WRAP_AUTO };
enum config_precision { PRECISION_AUTO, PRECISION_FP32, PRECISION_BF16_MIXED, PRECISION_BF16_TRUE };
enum config_recompute { RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_SELECTIVE };
enum config_eval { EVAL_NO, EVAL_EPOCH, EVAL_STEPS, EVAL_HALF_EPOCH };
enum config_eval_reduction { EVAL_TOKEN_MEAN, EVAL_RANK_MEAN };
enum config_nan { NAN_WARN, NAN_SKIP, NAN_ABORT };
enum config_register { REGISTER_NOTHING, REGISTER_BUFFERS, REGISTER_SYMMETRIC };
enum config_debug { DEBUG_OFF, DEBUG_DETAIL };

/* The resolved configuration; the comment of each key is its help text in config_keys_*.c. Strings
 * live in the arena config_parse was given; a string that is not set is "". What is marked AUTO or
 * "own" and depends on nothing but the configuration is filled in by config_parse; the rest (what
 * config.json or the tokenizer says) is the reader's to decide. */
struct agent_config {
    struct {
        const char *name_or_path; /* "": none; a Hugging Face id or a directory */
        int64_t type;             /* MODEL_AUTO: only with a name_or_path; else config_family() */
        int64_t init;             /* enum config_init */
        const char *init_weights; /* "": none */
        const char *architecture; /* "": none; a name of models/architecture.h */
        int64_t head;             /* HEAD_AUTO; else enum model_task */
        double dropout;           /* below 0: each layer's own */
        int64_t loss_reduction;   /* enum config_loss_reduction */
    } model;
    /* Fields of config.json, by its names for Llama. 0 (counts), below 0 (others) or CHOOSE_AUTO:
     * not given. */
    struct {
        int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads;
        int64_t num_key_value_heads, head_dim, max_position_embeddings;
        double rms_norm_eps, layer_norm_epsilon, rope_theta, initializer_range;
        int64_t tie_word_embeddings; /* enum config_choose */
        double resid_pdrop, embd_pdrop, attn_pdrop;
        int64_t bos_token_id, eos_token_id, pad_token_id;
        int64_t num_labels;
    } overrides;
    struct {
        int64_t type; /* enum rope_type, or ROPE_OF_CONFIG: not given */
        double factor, low_freq_factor, high_freq_factor; /* 0: not given */
        int64_t original_max_position_embeddings;         /* 0: not given */
    } rope;
    struct {
        struct token_dataset source;
        const char *tokenizer;                        /* "": the model's directory */
        int64_t max_seq_length;                       /* tokens; 0: the model's positions */
        int64_t max_source_length, max_target_length; /* tokens */
        int64_t padding;                              /* enum config_padding */
        int64_t pad_to_multiple_of;                   /* tokens */
        int64_t label_pad_token_id; /* -100: padding of targets does not count, else a token */
        double mlm_probability;
        const char *train_split, *eval_split;
        const char *eval_dataset; /* "": evaluation reads a split of source.dataset */
        int64_t train_batch_size, eval_batch_size; /* samples per rank */
        int64_t train_size, eval_size;             /* 0: all */
        bool shuffle;
        bool drop_last;
        int64_t num_workers;     /* loader threads per rank */
        int64_t prefetch_factor; /* batches ahead, per loader thread */
        double loader_timeout_s; /* 0: none */
    } data;
    struct {
        int64_t name; /* the row of optim_kind() */
        double lr, beta1, beta2, eps, momentum, rho, weight_decay;
        bool nesterov;
        const char *decay_exclude; /* "": none; regexes over parameter names, separated by commas;
                                      "norm_bias": every parameter of one dimension */
        double grad_clip;          /* L2 norm over all gradients; 0: off */
        int64_t gradient_accumulation_steps;
        int64_t accumulation_sync; /* enum config_accumulation */
        bool drop_incomplete;      /* an epoch's last group of fewer micro-batches is not stepped */
        int64_t state_dtype;       /* enum config_state_dtype */
    } optimizer;
    struct {
        int64_t type;         /* enum schedule_type */
        int64_t max_steps;    /* 0: by epochs */
        double epochs;        /* 0: as many as max_steps takes; Transformers counts parts, too */
        int64_t warmup_steps; /* at most one of the two is above 0 */
        double warmup_ratio;  /* of decay_steps; not rounded */
        int64_t decay_steps;  /* 0: the steps of the run */
        double min_lr, plateau_ratio;
        int64_t step_size;
        int64_t unit; /* enum schedule_unit: what step_size counts */
        double gamma;
        double num_cycles;      /* 0: half a wave, or one restart */
        int64_t cooldown_steps; /* wsd */
        double power;           /* hf_polynomial */
        int64_t resume;         /* enum config_schedule_resume: whose values a resumed run takes */
    } schedule;
    struct {
        int64_t strategy; /* enum shard_strategy, or STRATEGY_AUTO: by the model's size */
        int64_t shard_group_size;
        int64_t wrap_policy;      /* enum config_wrap, never AUTO */
        const char *wrap_classes; /* separated by commas; "": the model's blocks */
        int64_t min_num_params;
        int64_t backward_prefetch; /* enum backward_prefetch */
        bool forward_prefetch, limit_all_gathers;
        int64_t reduction_slots;                            /* 0: none; SLOTS_AUTO */
        bool sync_module_states, cpu_ram_efficient_loading; /* what is so anyway */
    } parallel;
    struct {
        int64_t mixed;        /* enum config_precision, never AUTO */
        int64_t reduce_dtype; /* enum config_state_dtype: FP32 or BF16 */
        bool fp8;             /* linear layers of blocks; needs bf16 */
    } precision;
    struct {
        int64_t activation_checkpointing; /* enum config_recompute */
        bool offload_activations;
        int64_t activation_loading_horizon; /* blocks brought back ahead */
        bool cpu_offload;
        bool log_memory; /* after each epoch, in accelerate's words */
    } memory;
    struct {
        const char *dir;         /* "": none */
        const char *prefix;      /* for name_format; never "" */
        const char *name_format; /* with {prefix}, {step}, {epoch} and {strategy} */
        int64_t save_steps;      /* 0: at the end of each epoch */
        int64_t keep_last;       /* 0: all */
        int64_t state_dict_type; /* enum config_state_dict */
        const char
            *resume; /* "", "latest", "true" (as latest, and there must be one) or a directory */
        bool auto_resume;
        int64_t memory_every_steps; /* 0: never; -1: as often as costs little */
        bool memory_buddies;
        bool async;
        bool save_on_signal;
        bool allow_nonfinite;
        const char *save_model;  /* "": none; else a file or, for a language model, a directory;
                                    never "auto" */
        int64_t max_shard_bytes; /* of a file of save_model's directory */
    } checkpoint;
    struct {
        int64_t strategy;    /* enum config_eval */
        int64_t steps;       /* above 0 where strategy is STEPS */
        int64_t max_batches; /* per rank and evaluation; 0: all */
        int64_t reduction;   /* enum config_eval_reduction */
    } eval;
    struct {
        int64_t steps;                             /* 0: off */
        int64_t style;                             /* enum log_style */
        int64_t lang;                              /* enum log_language */
        int64_t level;                             /* enum log_level */
        const char *csv, *jsonl, *tensorboard_dir; /* "": none */
        int64_t wandb;                             /* 0: off, 1: offline */
        const char *wandb_dir, *wandb_entity, *wandb_project, *wandb_run_name; /* "": none */
        const char *wandb_run_id, *wandb_group, *wandb_job_type, *wandb_tags, *wandb_notes;
        int64_t log_model; /* 0 or 1 */
        const char *http_addr;
        int64_t http_port; /* 0: no server */
        bool gpu_metrics;
        int64_t metric_names; /* enum gpu_names */
        double gpu_interval_s;
    } logging;
    struct {
        bool enable;
        const char *dir, *file; /* with {step} and {rank} */
        int64_t start_step, warmup_steps, active_steps;
        int64_t repeat_every; /* steps; 0: one window */
        const char *ranks;    /* "all", or numbers separated by commas */
        bool memory, gzip;
    } profiler;
    struct {
        int64_t seed;
        bool same_seed; /* dropout: the same numbers on all ranks */
        const char *device;
        bool share_gpus;
        const char *gpu_ids; /* "all", or as CUDA_VISIBLE_DEVICES */
        bool cpu_affinity;
        int64_t collectives; /* enum comm_device_how */
        bool concurrent_collectives;
        int64_t register_buffers; /* enum config_register */
        bool cuda_graphs;
        bool overlap_optimizer; /* on GPUs: a unit's update beside the next forward pass */
        bool deterministic;     /* false: a faster backward of attention, whose bits vary */
        bool tune;              /* cuBLASLt's algorithms are timed; not if deterministic */
        int64_t threads;        /* per rank; 0: cores / ranks on this machine */
        const char *nproc_per_node, *nnodes;
        int64_t num_processes; /* of all pods; 0: as nproc_per_node says, which follows from it */
        int64_t node_rank;     /* -1: from the environment */
        const char *master_addr;
        int64_t master_port; /* 0: from the environment */
        const char *rdzv_backend, *rdzv_endpoint, *rdzv_id;
        bool standalone;
        int64_t max_restarts;
        bool restarts_by_default; /* what -1 means here: no key, but the environment's */
        bool is_elastic;          /* no key: nnodes, here or in the environment, is a range */
        int64_t hang_action;      /* enum hang_action */
        double hang_patience_s;   /* from a hang's name to the kill; 0: as its phase has it */
        bool leave_bad_hardware;
        double monitor_interval_s, shrink_after_s;
        const char *log_dir, *redirects, *tee; /* "": none */
        double timeout_s, heartbeat_timeout_s, join_timeout_s;
        int64_t debug;             /* enum config_debug */
        int64_t abort_collectives; /* 0 or 1 */
        bool exit_if_stuck, dump_on_timeout;
        int64_t flight_recorder_size;
        const char *dump_path; /* "": none */
        int64_t nan_policy;    /* enum config_nan */
        bool strict, dry_run;
        const char *script; /* "": none was named */
    } runtime;
};

enum { CONFIG_MAX_KEYS = 240 };

struct config {
    struct agent_config value;
    enum config_source source[CONFIG_MAX_KEYS]; /* per row of the table */
    bool is_resolved[CONFIG_MAX_KEYS];          /* read from a file that config_yaml() wrote */
    const char *preset;        /* the applied presets, separated by ","; "": none */
    bool help;                 /* --help: print config_help() and exit */
    bool help_markdown;        /* --help=markdown: print config_markdown() and exit */
    bool version;              /* --version: print it and exit */
    const char *script_notice; /* which preset replaces the script (compat/script.h); "": none */
    const char *headline;      /* warnings that change what is trained or kept, '\n' after each */
    const char *warning;       /* the other warnings in one line; "": none */
    const char *no_tokenizer; /* why the preset's tokenizer is not used (model_path.h); "": it is */
};

/* Parses argv, which begins after the program's name. Memory from `arena`. Errors: ERR_CONFIG, one
 * line that names the flag, variable or key, its value and the allowed values. *ret_config then
 * holds the settings that were read before the error. */
int config_parse(int argc, const char *const *argv, getenv_fn *lookup, void *lookup_ctx,
                 struct arena *arena, struct config *ret_config, struct error *err);

/* Warns of variables ("NAME=VALUE", NULL-terminated) that begin with AGENT_<GROUP>_ and name no
 * key. Other variables that begin with AGENT_ are not ours: Kubernetes sets some for a Service
 * named agent. Warns also of a variable that only a slip of the keys parts from one that is read: a
 * key's other one, or one of `others` (separated by spaces). Errors: with runtime.strict,
 * ERR_CONFIG in place of the warning. */
int config_check_variables(char *const *variables, const char *others, struct arena *arena,
                           struct config *config, struct error *err);

/* Adds a line to the headline. */
void config_add_headline(struct config *config, struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Calls report() for each line of the headline, then for the warning. */
void config_notices(const struct config *config, void (*report)(void *ctx, const char *line),
                    void *ctx);

/* Where the value of a field of config->value came from. */
enum config_source config_source_of(const struct config *config, const void *field);
/* Whether the user gave the value. A preset's value and a resolved configuration's
 * are not given. */
bool config_is_given(const struct config *config, const void *field);

/* Every key with its default, its allowed values and its other names, as --help prints it. */
void config_help(struct str *out);
/* The same as a page of docs/. */
void config_markdown(struct str *out);

/* The resolved configuration as YAML, with the source of each value as a comment. config_parse()
 * reads it back. */
void config_yaml(const struct config *config, struct str *out);

/* Every key with its value as text; memory from `arena`. Returns how many there are. */
struct config_entry {
    const char *key; /* "optimizer.lr" */
    const char *value;
    bool is_number;   /* or true or false: JSON writes it without quotes */
    bool is_path;     /* or derived from a path: ranks may have different ones */
    bool ranks_match; /* all ranks must have this value; of paths: all must have one, or none */
};
int config_entries(const struct config *config, struct arena *arena,
                   struct config_entry **ret_entries);

/* The keys that are not at their built-in default, as "group.name=value (source)", joined by ", ".
 * Lines have up to `columns` columns and begin with `prefix`. Each top group begins a line. Nothing
 * if all keys are at their default. */
void config_summary_lines(const struct config *config, const char *prefix, size_t columns,
                          struct str *out);

/* Whether a language model is trained; false: mnist_cnn. */
bool config_is_language(const struct agent_config *config);
#endif
