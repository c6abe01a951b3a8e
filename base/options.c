#include "base/options.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 34, SHOWN_MAX = 16 /* options in a message */, NAMES_MAX_BYTES = 4096 };

/* The row that argument names, and where its "=VALUE" begins, or NULL. Names may have one dash, as
 * with Go's programs. */
static const struct option_row *find_row(const struct option_row *rows, const char *argument,
                                         const char **ret_value)
{
    *ret_value = NULL;
    bool option = argument[0] == '-' && argument[1];
    const char *name = option ? argument + (argument[1] == '-' ? 2 : 1) : argument;
    for (const struct option_row *row = rows; row->name; row++) {
        if (!option && row->kind == OPTION_ARGUMENTS)
            *ret_value = argument;
        if (*ret_value)
            return row;
        if (!option || row->kind == OPTION_ARGUMENTS)
            continue;
        if (argument[1] == row->letter && row->letter && !argument[2])
            return row;
        size_t length = strlen(row->name);
        if (strncmp(name, row->name, length) != 0)
            continue;
        const char *end = name + length;
        if (*end == '=')
            *ret_value = end + 1;
        if (*end == '=' || !*end)
            return row;
    }
    return NULL;
}

/* Whether users are told of it as an option. */
static bool is_shown(const struct option_row *row)
{
    return row->kind != OPTION_ARGUMENTS && row->kind != OPTION_IGNORED;
}

/* Adds " --NAME" of each; returns how many there are. */
static int list_options(const struct option_row *rows, struct str *out)
{
    int count = 0;
    for (const struct option_row *row = rows; row->name; row++) {
        if (!is_shown(row))
            continue;
        str_printf(out, " --%s", row->name);
        count++;
    }
    return count;
}

static bool has_option(const struct option_row *rows, const char *name)
{
    const struct option_row *row = rows;
    while (row->name && (!is_shown(row) || strcmp(row->name, name) != 0))
        row++;
    return row->name != NULL;
}

static int unknown(const struct option_row *rows, const char *argument, struct error *err)
{
    auto_str struct str names;
    str_init(&names, NAMES_MAX_BYTES);
    bool all = list_options(rows, &names) <= SHOWN_MAX || !has_option(rows, "help");
    const char *told = all ? "there are" : "--help lists all options";
    const char *shown = all ? str_text(&names) : "";
    if (argument[0] != '-')
        return error_set(err, ERR_CONFIG, "unknown argument %s; %s%s", argument, told, shown);
    const char *bare = argument + strspn(argument, "-");
    char name[64];
    snprintf(name, sizeof name, "--%.*s", (int)strcspn(bare, "="), bare);
    return error_set(err, ERR_CONFIG, "unknown option %s%s; %s%s", argument,
                     nearest_note(name, str_text(&names), " ").text, told, shown);
}

static int choose(const struct option_row *row, const char *value, struct error *err)
{
    auto_str struct str names;
    str_init(&names, sizeof err->msg);
    for (int i = 0; row->choices[i]; i++) {
        if (!strcmp(row->choices[i], value)) {
            *(int *)row->target = i;
            return 0;
        }
        str_printf(&names, " %s", row->choices[i]);
    }
    return error_set(err, ERR_CONFIG, "--%s %s: must be one of%s", row->name, value,
                     str_text(&names));
}

static int add(const struct option_row *row, const char *text, struct error *err)
{
    struct option_list *list = row->target;
    if (list->count == OPTION_LIST_MAX)
        return error_set(err, ERR_CONFIG, "--%s: more than %d of them", row->name, OPTION_LIST_MAX);
    list->items[list->count++] = text;
    return 0;
}

static void add_argument(struct option_arguments *arguments, const char *text)
{
    size_t count = (size_t)arguments->count;
    arguments->items = xrealloc(arguments->items, (count + 1) * sizeof *arguments->items);
    arguments->items[arguments->count++] = text;
}

static int set(const struct option_row *row, const char *value, struct error *err)
{
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)row->target = !value || !strcmp(value, "true");
        if (!value || !strcmp(value, "true") || !strcmp(value, "false"))
            return 0;
        return error_set(err, ERR_CONFIG, "--%s=%s: must be true or false", row->name, value);
    case OPTION_TEXT:
        *(const char **)row->target = value;
        return 0;
    case OPTION_LIST:
        return add(row, value, err);
    case OPTION_ARGUMENTS:
        add_argument(row->target, value);
        return 0;
    case OPTION_IGNORED:
        return add(row, row->name, err);
    case OPTION_NUMBER:
        if (str_to_i64(value, row->low, row->high, row->target))
            return 0;
        return error_set(err, ERR_CONFIG,
                         "--%s %s: must be a whole number from %" PRId64 " to %" PRId64, row->name,
                         value, row->low, row->high);
    case OPTION_CHOICE:
        return choose(row, value, err);
    }
    return 0;
}

int options_parse(const struct option_row *rows, int argc, char *const *argv, struct error *err)
{
    for (int i = 0; i < argc; i++) {
        const char *value;
        const struct option_row *row = find_row(rows, argv[i], &value);
        if (!row)
            return unknown(rows, argv[i], err);
        if (row->value && !value) {
            if (i + 1 == argc)
                return error_set(err, ERR_CONFIG, "--%s needs a value: %s", row->name, row->value);
            value = argv[++i];
        }
        if (set(row, value, err) < 0)
            return -1;
    }
    return 0;
}

void options_help(const struct option_row *rows, struct str *out)
{
    for (const struct option_row *row = rows; row->name; row++) {
        char left[128], letter[8] = "    ";
        if (row->kind == OPTION_IGNORED)
            continue;
        if (row->letter)
            snprintf(letter, sizeof letter, "-%c, ", row->letter);
        int width = snprintf(left, sizeof left, "  %s%s%s%s%s", letter,
                             row->kind == OPTION_ARGUMENTS ? "" : "--", row->name,
                             row->value ? " " : "", row->value ? row->value : "");
        const char *beside = width < HELP_COLUMN ? left : "";
        if (beside != left) /* too wide: its help starts on the next line */
            str_printf(out, "%s\n", left);
        str_printf(out, "%-*s %s\n", HELP_COLUMN, beside, row->help);
    }
}
