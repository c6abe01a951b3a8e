/* The parts of config_parse. Private to agent/config/. */
#ifndef SHOAL_AGENT_CONFIG_CONFIG_PARSER_H
#define SHOAL_AGENT_CONFIG_CONFIG_PARSER_H

#include "agent/config/config_keys.h"

enum {
    CONFIG_MAX_ARGUMENTS = 512,
    CONFIG_MAX_FILE_BYTES = 64 * 1024, /* of an argument file */
    CONFIG_MAX_FILE_DEPTH = 4,
    CONFIG_MAX_FILES = 16, /* --config */
    CONFIG_MAX_WARNING_BYTES = 8192,
};

/* One flag of the command line. */
struct config_flag {
    const char *name;  /* without the dashes, '_' for '-' */
    const char *value; /* NULL: none was given */
};

struct json;

/* A file that was opened, and whose keys it has. */
enum config_file_kind {
    CONFIG_OWN,        /* --config: groups of keys */
    CONFIG_ACCELERATE, /* --config or --config_file: accelerate's */
    CONFIG_FSDP,       /* --fsdp_config: the keys of fsdp_config there */
};
struct config_file {
    const char *flag; /* as it was typed, without the dashes */
    const char *name;
    struct json *root; /* a mapping; owned */
    enum config_file_kind kind;
};

struct config_parser {
    struct arena *arena;
    struct config *config;
    const char *words[CONFIG_MAX_ARGUMENTS]; /* the command line with argument files expanded */
    int word_count;
    struct config_flag flags[CONFIG_MAX_ARGUMENTS];
    int flag_count;
    struct config_file files[CONFIG_MAX_FILES];
    int file_count;
    getenv_fn *lookup;
    void *lookup_ctx;
    const char *model_type;  /* the spelling that was given last; NULL: none was given */
    const char *wrap_policy; /* likewise */
    const char *scheduler;   /* likewise, under any name of schedule.type */
    double min_lr_rate;      /* of optimizer.lr; below 0: not given, or min_lr replaced it */
    enum config_source min_lr_rate_source;
    bool auto_wrap;         /* wrap_policy came from --fsdp's auto_wrap */
    const char *checkpoint; /* --checkpoint's directory; NULL: none, or a later --resume
                               names another */
    enum config_source checkpoint_source;
    int save_strategy; /* Trainer's (config_trainer.c); below 0: not given */
    enum config_source save_strategy_source;
    bool has_reports; /* report_to is given */
    unsigned reports; /* the bits of the names in it */
    enum config_source reports_source;
    const char *trainer;      /* the last preset that was of a whole trainer; NULL: none */
    int64_t preset_optimizer; /* optimizer.name as the presets set it */
    bool is_fsdp2;            /* fsdp_version is 2 */
    enum config_source fsdp2_source;
    struct str unknown;  /* unknown flags, which are warnings unless runtime.strict */
    struct str mistaken; /* unknown flags that are errors in any case */
    struct str warnings; /* config->warning as it is built */
};

/* Splits the command line into flags, argument files expanded. */
int config_read_words(struct config_parser *p, int argc, const char *const *argv,
                      struct error *err);

/* Flags that take several values, in as many words or one. */
#define CONFIG_LISTS "report_to logging.report_to"

/* Applies one setting, under any name that a flag can have. value: NULL if there is none. Errors:
 * ERR_CONFIG without the setting's name; ERR_NOT_FOUND if the name is unknown. */
int config_apply(struct config_parser *p, const char *name, const char *value,
                 enum config_source source, struct error *err);
/* Applies presets by name, separated by commas. */
int config_apply_presets(struct config_parser *p, const char *names, struct error *err);

/* Opens the file of --config, --config_file or --fsdp_config (which may also be JSON itself).
 * config_apply_files() applies the files in the order in which they were opened. */
int config_open_file(struct config_parser *p, const char *flag, const char *path,
                     struct error *err);
/* Applies the presets that the files name; accelerate's files have preset accelerate. */
int config_apply_file_presets(struct config_parser *p, struct error *err);
int config_apply_files(struct config_parser *p, struct error *err);
void config_close_files(struct config_parser *p);

/* A single value, or a list joined by commas, as text from `arena`. NULL: it is neither. */
const char *config_json_text(struct arena *arena, const struct json *value);
/* Parses a mapping of single values as JSON, YAML or Python writes it; from the arena. */
int config_read_mapping(struct config_parser *p, const char *text,
                        const struct config_flag **ret_items, int *ret_count, struct error *err);
/* Applies the keys of accelerate's file at `path`, and those of its fsdp_config, with or without
 * the prefix. */
int config_apply_accelerate(struct config_parser *p, const struct json *root, const char *path,
                            struct error *err);
int config_apply_fsdp_keys(struct config_parser *p, const struct json *keys, struct error *err);
/* --fsdp "full_shard auto_wrap": spaces, commas and '_' are equal. */
int config_apply_fsdp_words(struct config_parser *p, const char *words, enum config_source source,
                            struct error *err);

/* Trainer's keyword arguments of a schedule, as JSON or as Python writes them. */
int config_apply_schedule(struct config_parser *p, const char *text, enum config_source source,
                          struct error *err);
/* schedule.min_lr was given: it replaces the min_lr_rate of a weaker source. */
int config_override_min_lr_rate(struct config_parser *p, enum config_source source,
                                struct error *err);
/* Checks Transformers' schedules and fills in their defaults; for config_finish(). */
int config_finish_schedule(struct config_parser *p, struct error *err);

/* Keeps a flag of Trainer for config_finish_trainer(); *ret_done: it is one. */
int config_apply_trainer(struct config_parser *p, const char *name, const char *value,
                         enum config_source source, bool *ret_done, struct error *err);
/* Applies the kept flags; for config_finish(). */
void config_finish_trainer(struct config_parser *p);

/* Whether the trainer is a script that accelerate starts. */
bool config_is_launched(const struct config_parser *p);

/* Fills in values that follow from other keys, then checks the rules between keys. */
int config_finish(struct config_parser *p, struct error *err);

/* The source of a field's value, in a function that has the parser as `p`. */
#define SOURCE_OF(field) config_source_of(p->config, &p->config->value.field)

/* For config_finish: ERR_CONFIG for settings that contradict each other; warnings about settings
 * that have no effect. */
int config_check_rules(const struct config_parser *p, struct error *err);
void config_warn_rules(struct config_parser *p);
/* Warns of each key that was given without what its row needs. */
void config_warn_unused(struct config_parser *p);
/* Whether the user gave the key a value other than its default. A preset or a resolved
 * configuration does not count. */
bool config_is_set_by_user(const struct config *config, int index);

/* Adds a warning that changes nothing that is trained or kept; for others there is
 * config_add_headline(). */
void config_warn(struct config_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The rules of the data's keys, for config_finish. Errors: ERR_CONFIG. */
int config_check_data(const struct agent_config *config, struct error *err);
#endif
