#include "agent/config/config_keys.h"

#include "base/nearest.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* "1e8" and "20_000" are numbers too. */
static bool parse_number(const char *text, size_t length, double *ret_value)
{
    char digits[64];
    size_t n = 0;
    for (const char *c = text; c < text + length; c++) {
        if (*c == '_')
            continue;
        if (n + 1 >= sizeof digits)
            return false;
        digits[n++] = *c;
    }
    digits[n] = '\0';
    return str_to_double(digits, ret_value);
}

struct suffix {
    const char *text;
    double factor;
};
static const struct suffix no_suffixes[] = {{NULL, 0}};
static const struct suffix size_suffixes[] = {
    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
    {"KB", 1e3},     {"MB", 1e6},        {"GB", 1e9},           {"TB", 1e12},
    {"B", 1},        {NULL, 0},
};
static const struct suffix duration_suffixes[] = {
    {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {NULL, 0}};

static const struct suffix *suffixes_of(enum config_type type)
{
    return type == TYPE_SIZE       ? size_suffixes
           : type == TYPE_DURATION ? duration_suffixes
                                   : no_suffixes;
}

/* A number with the suffix that its type allows. */
static bool parse_quantity(const struct config_key *key, const char *text, double *ret_value)
{
    size_t length = strlen(text);
    for (const struct suffix *s = suffixes_of(key->type); s->text; s++) {
        size_t n = strlen(s->text);
        if (length <= n || strcasecmp(text + length - n, s->text) != 0)
            continue;
        if (!parse_number(text, length - n, ret_value))
            return false;
        *ret_value *= s->factor;
        return true;
    }
    return parse_number(text, length, ret_value);
}

static const char *what_is_allowed(enum config_type type)
{
    switch (type) {
    case TYPE_INT:
        return "a whole number";
    case TYPE_SIZE:
        return "a number of bytes (KiB, MiB, GiB)";
    case TYPE_DURATION:
        return "a time in seconds (or with s, m, h)";
    default:
        return "a number";
    }
}

static int parse_in_range(const struct config_key *key, const char *text, double *ret_value,
                          struct error *err)
{
    bool whole = key->type == TYPE_INT || key->type == TYPE_SIZE;
    if (key->low_words && config_names_have(key->low_words, text, false)) {
        *ret_value = key->low;
        return 0;
    }
    if (!parse_quantity(key, text, ret_value) || (whole && *ret_value != floor(*ret_value)) ||
        *ret_value < key->low || *ret_value > key->high)
        return error_set(err, ERR_CONFIG, "'%s' is not %s from %.15g to %.15g%s%s", text,
                         what_is_allowed(key->type), key->low, key->high,
                         key->low_words ? " or " : "", key->low_words ? key->low_words : "");
    return 0;
}

bool config_parse_bool(const char *text, bool *ret_value)
{
    static const char *const words[][2] = {
        {"true", "false"}, {"1", "0"}, {"yes", "no"}, {"on", "off"}, {"y", "n"}};
    for (size_t i = 0; i < array_length(words); i++)
        for (int no = 0; no < 2; no++)
            if (strcasecmp(text, words[i][no]) == 0) {
                *ret_value = !no;
                return true;
            }
    return false;
}

/* Whether `text` is one of the spellings in "NAME=OTHER=...". */
static bool is_spelling(const char *text, const char *spellings)
{
    for (size_t n; *spellings; spellings += n + (spellings[n] == '=')) {
        n = strcspn(spellings, "=");
        if (strlen(text) == n && strncasecmp(text, spellings, n) == 0)
            return true;
    }
    return false;
}

void config_choices_text(const struct config_key *key, struct str *out)
{
    for (const struct config_choice *c = key->choices; c->spellings; c++)
        str_printf(out, "%s%s", c == key->choices ? "" : " ", c->spellings);
}

static int parse_choice(const struct config_key *key, const char *text, int64_t *ret_value,
                        struct error *err)
{
    for (const struct config_choice *c = key->choices; c->spellings; c++)
        if (is_spelling(text, c->spellings)) {
            *ret_value = c->value;
            return 0;
        }
    auto_str struct str allowed;
    str_init(&allowed, 1024);
    config_choices_text(key, &allowed);
    return error_set(err, ERR_CONFIG, "'%s'%s is not one of: %s", text,
                     nearest_note(text, str_text(&allowed), " =").text, str_text(&allowed));
}

int config_set_value(const struct config_key *key, struct agent_config *config, const char *text,
                     struct arena *arena, struct error *err)
{
    void *field = (char *)config + key->offset;
    double number = 0;
    switch (key->type) {
    case TYPE_TEXT:
        *(const char **)field = arena_strdup(arena, text);
        return 0;
    case TYPE_CHOICE:
        return parse_choice(key, text, field, err);
    case TYPE_BOOL:
        if (!config_parse_bool(text, field))
            return error_set(err, ERR_CONFIG, "'%s' is not true or false", text);
        return 0;
    case TYPE_INT:
    case TYPE_SIZE:
        if (parse_in_range(key, text, &number, err))
            return -1;
        *(int64_t *)field = (int64_t)number;
        return 0;
    case TYPE_FLOAT:
    case TYPE_DURATION:
        return parse_in_range(key, text, field, err);
    }
    return 0;
}

void config_get_value(const struct config_key *key, const struct agent_config *config,
                      struct str *out)
{
    const void *field = (const char *)config + key->offset;
    switch (key->type) {
    case TYPE_TEXT:
        str_add(out, *(const char *const *)field);
        break;
    case TYPE_BOOL:
        str_add(out, *(const bool *)field ? "true" : "false");
        break;
    case TYPE_INT:
    case TYPE_SIZE:
        str_printf(out, "%lld", (long long)*(const int64_t *)field);
        break;
    case TYPE_FLOAT:
    case TYPE_DURATION:
        /* 15 digits give back every decimal as it was written; 17 would make 0.1 a
         * 0.10000000000000001. */
        str_printf(out, "%.15g", *(const double *)field);
        break;
    case TYPE_CHOICE: {
        const struct config_choice *c = key->choices;
        while (c->spellings && c->value != *(const int64_t *)field)
            c++;
        assert(c->spellings);
        str_add_bytes(out, c->spellings, strcspn(c->spellings, "="));
    }
    }
}
