/* Command line options as a table: one row is one option, its help line and where its value goes.
 * The values are checked here, so that a command starts with a struct it can trust. */
#ifndef SHOAL_BASE_OPTIONS_H
#define SHOAL_BASE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

enum option_kind {
    OPTION_FLAG,   /* bool *: true when given, or "=true", "=false" */
    OPTION_TEXT,   /* const char **: the last one wins */
    OPTION_LIST,   /* struct option_list *: each one is added */
    OPTION_NUMBER, /* int64_t *, within [low, high] */
    OPTION_CHOICE, /* int *: index of the value in `choices` */
    /* struct option_list *: the option's name is added, its value (if `value` says that it has one)
     * is not used. Of another program, whose command lines shall work; the help is
     * silent about it. */
    OPTION_IGNORED,
    /* struct option_arguments *: each argument that is no option, "-" too; the row's name is what
     * the help calls them. */
    OPTION_ARGUMENTS,
};

enum { OPTION_LIST_MAX = 64 };
struct option_list {
    const char *items[OPTION_LIST_MAX];
    int count;
};

/* As many as a shell's pattern brings: only the system's limit of a command line holds. */
struct option_arguments {
    const char **items; /* the caller frees it, also after an error; NULL: none */
    int count;
};

struct option_row {
    const char *name; /* without the "--"; NULL ends the table */
    char letter;      /* for "-f VALUE"; 0: none */
    enum option_kind kind;
    void *target;               /* see option_kind */
    const char *value;          /* what the help calls the value; NULL for a flag */
    const char *help;           /* one line */
    int64_t low, high;          /* OPTION_NUMBER */
    const char *const *choices; /* OPTION_CHOICE; NULL-terminated */
};

/* Reads argv[0..argc) into the targets: "--name VALUE", "--name=VALUE", "-f VALUE"; one dash before
 * a name does as well. An unknown option is ERR_CONFIG, with a line that names it, the nearest
 * one, and what there is; more than 16 options are left to --help, if the table has it. So is an
 * argument that is no option, unless the table has OPTION_ARGUMENTS. */
int options_parse(const struct option_row *rows, int argc, char *const *argv, struct error *err);

/* Adds a help line per row. */
void options_help(const struct option_row *rows, struct str *out);
#endif
