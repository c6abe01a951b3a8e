#include "agent/config_keys.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* "1e8" and "20_000" are numbers too. */
static bool parse_number(const char *text, double *ret_value)
{
    char digits[64];
    size_t n = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '_')
            continue;
        if (n + 1 >= sizeof digits)
            return false;
        digits[n++] = *c;
    }
    digits[n] = '\0';
    return str_to_double(digits, ret_value);
}

static bool parse_bool(const char *text, bool *ret_value)
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

/* Whether `text` is one of the spellings in "NAME=OTHER=..." (length bytes). */
static bool is_spelling(const char *text, const char *spellings, size_t length)
{
    const char *end = spellings + length;
    while (spellings < end) {
        size_t n = strcspn(spellings, "= ");
        if (strlen(text) == n && strncasecmp(text, spellings, n) == 0)
            return true;
        spellings += n + 1;
    }
    return false;
}

static int parse_choice(const struct config_key *key, const char *text, int64_t *ret_value,
                        struct error *err)
{
    int64_t index = 0;
    for (const char *c = key->choices; *c; index++) {
        size_t length = strcspn(c, " ");
        if (is_spelling(text, c, length)) {
            *ret_value = index;
            return 0;
        }
        c += length + (c[length] == ' ');
    }
    return error_set(err, ERR_CONFIG, "'%s' is not one of: %s", text, key->choices);
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
        if (!parse_bool(text, field))
            return error_set(err, ERR_CONFIG, "'%s' is not true or false", text);
        return 0;
    case TYPE_INT:
        if (!parse_number(text, &number) || number != floor(number) || number < key->low ||
            number > key->high)
            return error_set(err, ERR_CONFIG, "'%s' is not a whole number from %.15g to %.15g",
                             text, key->low, key->high);
        *(int64_t *)field = (int64_t)number;
        return 0;
    case TYPE_FLOAT:
        if (!parse_number(text, &number) || number < key->low || number > key->high)
            return error_set(err, ERR_CONFIG, "'%s' is not a number from %.15g to %.15g", text,
                             key->low, key->high);
        *(double *)field = number;
        return 0;
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
        str_printf(out, "%lld", (long long)*(const int64_t *)field);
        break;
    case TYPE_FLOAT:
        str_printf(out, "%.15g", *(const double *)field);
        break;
    case TYPE_CHOICE: {
        const char *c = key->choices;
        for (int64_t i = *(const int64_t *)field; i > 0; i--)
            c += strcspn(c, " ") + 1;
        str_add_bytes(out, c, strcspn(c, "= "));
    }
    }
}

/* ---- names ---- */

/* Like strncasecmp, with '-' and '_' equal. */
static bool same_name(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char x = a[i] == '-' ? '_' : a[i];
        char y = b[i] == '-' ? '_' : b[i];
        if (!x || !y || tolower((unsigned char)x) != tolower((unsigned char)y))
            return false;
    }
    return true;
}

/* Whether `name` is `own` (length bytes) or, with `beginning`, the start of it. */
static bool matches(const char *name, const char *own, size_t length, bool beginning)
{
    size_t n = strlen(name);
    return (beginning ? n <= length : n == length) && same_name(name, own, n);
}

/* The same for any of the key's names. "group." may stand before each. */
static bool names_key(const struct config_key *key, const char *name, bool beginning)
{
    size_t group = strlen(key->group);
    if (strlen(name) > group && same_name(name, key->group, group) && name[group] == '.')
        name += group + 1;
    if (matches(name, key->name, strlen(key->name), beginning))
        return true;
    for (const char *c = key->other_names; c && *c;) {
        size_t length = strcspn(c, " ");
        if (matches(name, c, length, beginning))
            return true;
        c += length + (c[length] == ' ');
    }
    return false;
}

static int count_matches(const char *name, bool beginning, int *ret_index, struct str *candidates)
{
    int count = 0;
    for (int i = 0; i < config_key_count; i++) {
        if (!names_key(&config_keys[i], name, beginning))
            continue;
        *ret_index = i;
        str_printf(candidates, "%s%s.%s", count ? ", " : "", config_keys[i].group,
                   config_keys[i].name);
        count++;
    }
    return count;
}

/* Levenshtein's distance, for names of keys. */
static int distance(const char *a, const char *b)
{
    enum { MAX = 64 };
    int row[MAX + 1];
    int columns = (int)strnlen(b, MAX);
    for (int j = 0; j <= columns; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            int change = diagonal + !same_name(a + i - 1, b + j - 1, 1);
            diagonal = row[j];
            int best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < best ? change : best;
        }
    }
    return row[columns];
}

static const struct config_key *nearest_key(const char *name)
{
    const struct config_key *best = NULL;
    const char *dot = strchr(name, '.');
    /* Farther than this is no help: a third of the name, at most 3. */
    int third = (int)strlen(dot ? dot + 1 : name) / 3, least = 1 + (third < 3 ? third : 3);
    for (int i = 0; i < config_key_count; i++) {
        int d = distance(dot ? dot + 1 : name, config_keys[i].name);
        if (d < least) {
            least = d;
            best = &config_keys[i];
        }
    }
    return best;
}

int config_find_key(const char *name, int *ret_index, bool *ret_known, struct error *err)
{
    auto_str struct str candidates;
    str_init(&candidates, 256);
    *ret_known = true;
    for (int beginning = 0; beginning <= 1; beginning++) {
        str_clear(&candidates);
        int count = *name ? count_matches(name, beginning, ret_index, &candidates) : 0;
        if (count == 1)
            return 0;
        if (count > 1)
            return error_set(err, ERR_CONFIG, "'%s' is ambiguous: it can mean %s", name,
                             str_text(&candidates));
    }
    *ret_known = false;
    const struct config_key *near = nearest_key(name);
    if (near)
        return error_set(err, ERR_CONFIG, "unknown key '%s'; the nearest is %s.%s", name,
                         near->group, near->name);
    return error_set(err, ERR_CONFIG, "unknown key '%s'; --help lists all", name);
}
