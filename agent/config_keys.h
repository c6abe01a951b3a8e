/* The table of keys: the one place that says what can be configured. Private to agent/config*.c. */
#ifndef SHOAL_AGENT_CONFIG_KEYS_H
#define SHOAL_AGENT_CONFIG_KEYS_H

#include "agent/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum config_type { TYPE_INT, TYPE_FLOAT, TYPE_BOOL, TYPE_TEXT, TYPE_CHOICE };

struct config_key {
    const char *group, *name;
    enum config_type type;
    size_t offset; /* of the field in struct agent_config: int64_t, double, bool, const char * */
    const char *default_value; /* as text */
    const char *implied;       /* what the flag means without a value; NULL: it needs one */
    double low, high;          /* numbers: both allowed */
    const char *choices; /* choices: separated by spaces; "NAME=OTHER=..." lists other spellings */
    const char *other_names; /* separated by spaces: what other trainers call it */
    const char *help;
};

extern const struct config_key config_keys[];
extern const int config_key_count;

/* A preset: settings as "group.name=value" lines' worth of text, NULL-terminated. */
struct config_preset {
    const char *name, *help;
    const char *const *settings;
};
extern const struct config_preset config_presets[];
extern const int config_preset_count;

/* A flag that stands for another one with a value: "no_cuda" is runtime.device=cpu. */
struct config_shorthand {
    const char *name, *key, *value;
};
extern const struct config_shorthand config_shorthands[];
extern const int config_shorthand_count;

/* Parses `text` into the key's field. Errors: ERR_CONFIG says what is allowed, without naming the
 * key. */
int config_set_value(const struct config_key *key, struct agent_config *config, const char *text,
                     struct arena *arena, struct error *err);
/* The field's value as text that config_set_value reads back to the same. */
void config_get_value(const struct config_key *key, const struct agent_config *config,
                      struct str *out);

/* The row a name means: "lr", "optimizer.lr", another trainer's name or an unambiguous beginning;
 * '-' and '_' are equal. Errors: ERR_CONFIG names the candidates, or the nearest name; *ret_known
 * then says whether the name was merely ambiguous (true) or unknown (false). */
int config_find_key(const char *name, int *ret_index, bool *ret_known, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
