/* The tables of keys, presets, aliases and refused flags. Private to agent/config/ and
 * agent/compat/. */
#ifndef SHOAL_AGENT_CONFIG_CONFIG_KEYS_H
#define SHOAL_AGENT_CONFIG_CONFIG_KEYS_H

#include "agent/config/config_needs.h"

enum config_type {
    TYPE_INT,      /* int64_t; "1e8" and "20_000" are numbers too */
    TYPE_SIZE,     /* int64_t of bytes: "5GiB" */
    TYPE_FLOAT,    /* double */
    TYPE_DURATION, /* double of seconds: "30m" */
    TYPE_BOOL,     /* bool */
    TYPE_TEXT,     /* const char * */
    TYPE_CHOICE,   /* int64_t: the value of one of `choices` */
};

/* What a key can be, in the order that people see. */
struct config_choice {
    const char *spellings; /* "NAME", or "NAME=OTHER=..."; NULL: behind the last */
    int64_t value;
};

/* Whether a key must have one value on all ranks. */
enum config_ranks { RANKS_AS_TABLE, RANKS_MATCH, RANKS_DIFFER };
enum { CONFIG_MAX_NEEDS = 2 };

struct config_key {
    const char *group, *name; /* the group of a map within a group is "group.map" */
    enum config_type type;
    size_t offset;             /* of the field in struct agent_config */
    const char *default_value; /* as text */
    double low, high;          /* numbers: both allowed */
    const struct config_choice *choices;
    const char *low_words;   /* numbers: words for `low`, separated by spaces; NULL: none */
    const char *other_names; /* other trainers' names for it, separated by spaces; NULL: none */
    const char *help;
    void (*more_help)(struct str *out); /* behind it: what a table of another room says; or NULL */
    const char *implied;     /* the value of the flag without one; NULL: the flag needs a value */
    bool needs_group;        /* the name alone does not select the key */
    const char *environment; /* other variables that set it, the weakest first, separated by spaces;
                                NULL: none */
    enum config_need needs[CONFIG_MAX_NEEDS]; /* the key has no effect unless all are met */
    enum config_ranks ranks;
    bool is_path; /* or derived from a path: ranks may have different ones */
};

/* Rows: group, name, field, default, allowed values, other names, help. Designated initializers
 * add what few keys have. */
#define KEY_AT(field) offsetof(struct agent_config, field)
/* clang-format off */
#define KEY_ROW(g, n, kind, f, d, o, h, ...)                                                       \
    {.group = (g), .name = (n), .type = (kind), .offset = KEY_AT(f), .default_value = (d),         \
     .other_names = (o), .help = (h), ##__VA_ARGS__}
#define KEY_INT(g, n, f, d, from, to, o, h, ...)                                                   \
    KEY_ROW(g, n, TYPE_INT, f, d, o, h, .low = (from), .high = (to), ##__VA_ARGS__)
#define KEY_SIZE(g, n, f, d, from, to, o, h, ...)                                                  \
    KEY_ROW(g, n, TYPE_SIZE, f, d, o, h, .low = (from), .high = (to), ##__VA_ARGS__)
#define KEY_FLOAT(g, n, f, d, from, to, o, h, ...)                                                 \
    KEY_ROW(g, n, TYPE_FLOAT, f, d, o, h, .low = (from), .high = (to), ##__VA_ARGS__)
#define KEY_DURATION(g, n, f, d, from, to, o, h, ...)                                              \
    KEY_ROW(g, n, TYPE_DURATION, f, d, o, h, .low = (from), .high = (to), ##__VA_ARGS__)
#define KEY_BOOL(g, n, f, d, o, h, ...)                                                            \
    KEY_ROW(g, n, TYPE_BOOL, f, d, o, h, .implied = "true", ##__VA_ARGS__)
#define KEY_TEXT(g, n, f, d, o, h, ...) KEY_ROW(g, n, TYPE_TEXT, f, d, o, h, ##__VA_ARGS__)
#define CHOICES(...) ((const struct config_choice[]){__VA_ARGS__, {NULL, 0}})
#define KEY_CHOICE(g, n, f, d, list, o, h, ...)                                                    \
    KEY_ROW(g, n, TYPE_CHOICE, f, d, o, h, .choices = (list), ##__VA_ARGS__)
/* clang-format on */

struct config_table {
    const struct config_key *keys;
    int count;
    enum config_ranks ranks; /* of keys that do not say otherwise */
};
extern const struct config_table config_table_model;  /* model */
extern const struct config_table config_table_data;   /* data */
extern const struct config_table config_table_train;  /* optimizer, schedule, eval, checkpoint */
extern const struct config_table config_table_engine; /* parallel, precision, memory */
extern const struct config_table config_table_run;    /* logging, profiler, runtime */

/* All rows, in the order of the tables. */
int config_key_count(void);
const struct config_key *config_key(int index);
bool config_ranks_must_match(int index);
/* The row whose field is at the offset in struct agent_config; there must be one. */
int config_key_at(size_t offset);

/* A preset: settings as "group.name=value", NULL-terminated. */
struct config_preset {
    const char *name, *help;
    const char *const *settings;
};
extern const struct config_preset config_presets[];
extern const int config_preset_count;

/* Whether an alias or the key's own flag decides. */
enum config_precedence {
    ALWAYS,
    UNLESS_GIVEN, /* not where the key is given otherwise on the command line */
    UNLESS_SAID,  /* likewise, but where it is "no" by now */
};

/* A flag that sets other keys: "no_cuda" is runtime.device=cpu. A flag may have several rows; all
 * rows that match its value apply. */
struct config_alias {
    const char *name;
    const char *when; /* for such a value only: "true" (or none), "false", "number" (from 2),
                         "word" (no number), "text" (no boolean), or the value itself; NULL: for
                         any */
    const char *key;
    const char *value; /* NULL: the flag's own */
    enum config_precedence precedence;
};
extern const struct config_alias config_aliases[];
extern const int config_alias_count;

/* A value that two trainers use for different schedules: under one of these names of schedule.type
 * (separated by spaces) it is replaced. */
struct config_spelling {
    const char *names, *written, *means;
};
extern const struct config_spelling config_spellings[];
extern const int config_spelling_count;

/* REFUSED: an error. IGNORED: a warning. IGNORED_SWITCH: a warning, and an error unless the value
 * is a boolean. */
enum config_verdict { REFUSED, IGNORED, IGNORED_SWITCH };

/* Keys that this agent does not have yet, and flags of other trainers that it does not support. */
struct config_refusal {
    const char *names;       /* separated by spaces */
    const char *values;      /* refused only with one of these; NULL: with any but noop_values */
    const char *noop_values; /* values that change nothing, separated by spaces; or NULL */
    enum config_verdict verdict;
    const char *why; /* "... is ignored: WHY" or "...: WHY" */
};
/* Selects which of FSDP's flags are allowed; it has no key. */
#define CONFIG_FSDP_VERSION "parallel.fsdp_version fsdp_version"
extern const struct config_refusal config_refusals[];
extern const int config_refusal_count;

/* The spellings of all choices, separated by spaces. */
void config_choices_text(const struct config_key *key, struct str *out);

/* Parses `text` into the key's field. Errors: ERR_CONFIG names the allowed values, not the key. */
int config_set_value(const struct config_key *key, struct agent_config *config, const char *text,
                     struct arena *arena, struct error *err);
/* The field's value as text that config_set_value reads back to the same. */
void config_get_value(const struct config_key *key, const struct agent_config *config,
                      struct str *out);
/* As YAML 1.1: true, yes, on, y, 1 and their opposites, in any case. */
bool config_parse_bool(const char *text, bool *ret_value);

/* Whether `name` is one of `names` (separated by spaces); '-' and '_' are equal, as is the case.
 * With `beginning`, whether it begins one of them. */
bool config_names_have(const char *names, const char *name, bool beginning);

/* Which known name somebody may have meant by one that nobody knows: a key, another trainer's name
 * of one, or a flag that is refused or ignored. */
struct config_nearest {
    char names[160]; /* keys have their group; several are joined by " and "; "": none is near */
    int count;       /* names that are equally near */
    bool is_same;    /* the name is a key's, without its group or in another */
    bool is_slip;    /* a flag without a group that can mean nothing else */
};
void config_find_nearest(const char *name, struct config_nearest *ret_nearest);

/* The row a name means: "lr", "optimizer.lr", another trainer's name or an unambiguous beginning.
 * Errors: ERR_CONFIG names the candidates, or the nearest name; *ret_known then says whether the
 * name was merely ambiguous (true) or unknown (false). */
int config_find_key(const char *name, int *ret_index, bool *ret_known, struct error *err);
#endif
