/* The agent's configuration: one table of keys from which parsing, --help and the resolved
 * agent_config.yaml all come. A key is `group.name`. Sources, the stronger first: flag, environment
 * (AGENT_<GROUP>_<NAME>), --config file (a later one wins), preset, built-in default. Every key
 * remembers where its value came from.
 *
 * All wrong values are found here, before any file, device or network is touched. Pure but for
 * reading the files it is told to read. */
#ifndef SHOAL_AGENT_CONFIG_H
#define SHOAL_AGENT_CONFIG_H

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a value came from. */
enum config_source { SOURCE_DEFAULT, SOURCE_PRESET, SOURCE_FILE, SOURCE_ENVIRONMENT, SOURCE_FLAG };

/* Values in the order of their key's choices. Choices without an enum here are in the order of the
 * enum that their field's comment names. */
enum config_loss_reduction { LOSS_SUM, LOSS_MEAN };
enum config_accumulation { ACCUMULATE_NO_SYNC, ACCUMULATE_EVERY };
enum config_wrap { WRAP_NONE, WRAP_SIZE, WRAP_TRANSFORMER };
enum config_eval { EVAL_NO, EVAL_EPOCH };

/* The resolved configuration; the comment of each key is its help text in config_keys.c. Strings
 * live in the arena config_parse was given; a string that is not set is "". */
struct agent_config {
    struct {
        const char *type;
        double dropout; /* below 0: each layer's own */
        int64_t loss_reduction;
    } model;
    struct {
        const char *root;
        int64_t train_batch_size, eval_batch_size; /* samples per rank */
        int64_t train_size, eval_size;             /* 0: all */
        bool shuffle;
    } data;
    struct {
        int64_t name; /* enum optim_type */
        double lr, beta1, beta2, eps, momentum, rho, weight_decay;
        bool nesterov;
        int64_t gradient_accumulation_steps;
        int64_t accumulation_sync;
    } optimizer;
    struct {
        int64_t type;      /* enum schedule_type */
        int64_t max_steps; /* 0: by epochs */
        int64_t epochs;
        int64_t step_size; /* epochs */
        double gamma;
    } schedule;
    struct {
        int64_t strategy; /* enum shard_strategy - 1 */
        int64_t shard_group_size;
        int64_t wrap_policy;
        const char *wrap_classes; /* separated by commas */
        int64_t min_num_params;
        int64_t backward_prefetch; /* enum backward_prefetch */
        bool forward_prefetch, limit_all_gathers;
    } parallel;
    struct {
        bool cpu_offload;
    } memory;
    struct {
        const char *dir;    /* "": none */
        int64_t save_steps; /* 0: at the end of each epoch */
        int64_t keep_last;  /* 0: all */
        const char *resume; /* "", "latest" or a directory */
        bool auto_resume;
        bool save_on_signal;
        bool async;
        const char *save_model; /* "": none; else a file */
    } checkpoint;
    struct {
        int64_t strategy;
    } eval;
    struct {
        int64_t steps; /* 0: off */
    } logging;
    struct {
        int64_t seed;
        const char *device;
        int64_t threads; /* per rank; 0: cores / ranks on this machine */
        const char *nproc_per_node, *nnodes;
        int64_t node_rank; /* -1: from the environment */
        const char *master_addr;
        int64_t master_port; /* 0: from the environment */
        double timeout_s, join_timeout_s;
        bool strict, dry_run;
    } runtime;
};

enum { CONFIG_MAX_KEYS = 64 };

struct config {
    struct agent_config value;
    enum config_source source[CONFIG_MAX_KEYS]; /* per row of the table */
    const char *preset;                         /* "" if none */
    bool help;           /* --help was asked for: print config_help and leave */
    bool version;        /* --version was asked for */
    const char *warning; /* unknown flags under --strict=false, in one line; "" if none */
};

/* The environment, as getenv. */
typedef const char *(*config_getenv)(void *ctx, const char *name);

/* argv without the program's name. Memory from `arena`.
 * Errors: ERR_CONFIG, one line that names the flag, variable or key, its value and what is allowed.
 */
int config_parse(int argc, const char *const *argv, config_getenv lookup, void *lookup_ctx,
                 struct arena *arena, struct config *ret_config, struct error *err);

/* The table as text for people: every key with its default, what is allowed and its other names. */
void config_help(struct str *out);

/* The resolved configuration as YAML, with each value's source as a comment; config_parse reads it
 * back. */
void config_yaml(const struct config *config, struct str *out);

/* The keys that are not at their built-in default, as "group.name=value (source)", separated by ",
 * ". */
void config_summary(const struct config *config, struct str *out);

#ifdef __cplusplus
}
#endif
#endif
