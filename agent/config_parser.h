/* The parts of config_parse. Private to agent/config*.c. */
#ifndef SHOAL_AGENT_CONFIG_PARSER_H
#define SHOAL_AGENT_CONFIG_PARSER_H

#include "agent/config_keys.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CONFIG_MAX_ARGUMENTS = 512,
    CONFIG_MAX_FILE_BYTES = 64 * 1024, /* of an argument file */
    CONFIG_MAX_FILE_DEPTH = 4,
    CONFIG_MAX_FILES = 16, /* --config */
};

/* One flag of the command line. */
struct config_flag {
    const char *name;  /* without the dashes, '_' for '-' */
    const char *value; /* NULL: none was given */
};

struct json_t;

struct config_parser {
    struct arena *arena;
    struct config *config;
    const char *words[CONFIG_MAX_ARGUMENTS]; /* the command line with argument files expanded */
    int word_count;
    struct config_flag flags[CONFIG_MAX_ARGUMENTS];
    int flag_count;
    struct json_t *files[CONFIG_MAX_FILES]; /* --config, each one mapping */
    const char *file_names[CONFIG_MAX_FILES];
    int file_count;
    const char *model_type; /* as it was written last; NULL: nowhere but in the table */
    struct str unknown;     /* names of unknown flags */
    struct str notes;       /* what is ignored and why */
};

/* Splits the command line into flags, argument files expanded. */
int config_read_words(struct config_parser *p, int argc, const char *const *argv,
                      struct error *err);

/* One setting, under any name that a flag can have. value: NULL if there is none. Errors:
 * ERR_CONFIG without the setting's name; ERR_NOT_FOUND if the name is unknown. */
int config_apply(struct config_parser *p, const char *name, const char *value,
                 enum config_source source, struct error *err);
/* Presets by name, separated by commas. */
int config_apply_presets(struct config_parser *p, const char *names, struct error *err);

/* Opens a --config file; config_apply_files applies all in the order they were opened. */
int config_open_file(struct config_parser *p, const char *path, struct error *err);
/* The files' own "preset:", applied. */
int config_apply_file_presets(struct config_parser *p, struct error *err);
int config_apply_files(struct config_parser *p, struct error *err);
void config_close_files(struct config_parser *p);

/* Fills in what follows from other keys, then checks the rules between keys. */
int config_finish(struct config_parser *p, struct error *err);

/* Adds a line to the warning. */
void config_note(struct config_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
