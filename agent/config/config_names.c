/* Which key a name means. */
#include "agent/config/config_keys.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

static const struct config_table *const tables[] = {&config_table_model, &config_table_data,
                                                    &config_table_train, &config_table_engine,
                                                    &config_table_run};

int config_key_count(void)
{
    int count = 0;
    for (size_t i = 0; i < array_length(tables); i++)
        count += tables[i]->count;
    return count;
}

/* The table that has the row; *index becomes the row's place in it. */
static const struct config_table *table_of(int *index)
{
    size_t table = 0;
    while (*index >= tables[table]->count)
        *index -= tables[table++]->count;
    return tables[table];
}

const struct config_key *config_key(int index)
{
    const struct config_table *table = table_of(&index);
    return &table->keys[index];
}

bool config_ranks_must_match(int index)
{
    const struct config_table *table = table_of(&index);
    enum config_ranks ranks = table->keys[index].ranks;
    return (ranks == RANKS_AS_TABLE ? table->ranks : ranks) == RANKS_MATCH;
}

int config_key_at(size_t offset)
{
    int i = 0;
    while (config_key(i)->offset != offset) {
        i++;
        assert(i < config_key_count());
    }
    return i;
}

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

bool config_names_have(const char *names, const char *name, bool beginning)
{
    for (const char *c = names; *c;) {
        size_t length = strcspn(c, " ");
        if (matches(name, c, length, beginning))
            return true;
        c += length + (c[length] == ' ');
    }
    return false;
}

/* What follows "group." in name; NULL if it does not begin so. */
static const char *after_group(const char *name, const char *group)
{
    size_t length = strlen(group);
    return strlen(name) > length && same_name(name, group, length) && name[length] == '.'
               ? name + length + 1
               : NULL;
}

/* Whether newer config.json have the key in rope_parameters. */
static bool is_of_rope(const struct config_key *key)
{
    return strcmp(key->group, "model.rope_scaling") == 0 ||
           key->offset == KEY_AT(overrides.rope_theta);
}

/* What follows the key's group in name: of "group.map.", "map." and "group." will do, and of RoPE's
 * so will what newer config.json call the map with rope_theta in it. NULL: it begins otherwise. */
static const char *after_own_group(const struct config_key *key, const char *name)
{
    const char *map = strrchr(key->group, '.');
    const char *rest = after_group(name, key->group);
    if (!rest && map)
        rest = after_group(name, map + 1);
    if (!rest && is_of_rope(key))
        rest = after_group(name, "model.rope_parameters");
    if (!rest && is_of_rope(key))
        rest = after_group(name, "rope_parameters");
    if (!rest && map)
        rest = after_group(name, "model");
    return rest;
}

/* The same for any of the key's names. The group may stand before each, and must before a name that
 * is a word for many things. */
static bool names_key(const struct config_key *key, const char *name, bool beginning)
{
    const char *rest = after_own_group(key, name);
    if (rest)
        name = rest;
    return ((rest || !key->needs_group) && config_names_have(key->name, name, beginning)) ||
           (key->other_names && config_names_have(key->other_names, name, beginning));
}

/* The other name that begins so, where the key's own does not. */
static void add_other_name(const struct config_key *key, const char *name, struct str *out)
{
    const char *rest = after_own_group(key, name);
    const char *begin = rest ? rest : name;
    if (matches(begin, key->name, strlen(key->name), true))
        return;
    for (const char *other = key->other_names; other && *other; other += strspn(other, " ")) {
        size_t length = strcspn(other, " ");
        if (matches(begin, other, length, true)) {
            str_printf(out, " (%.*s)", (int)length, other);
            return;
        }
        other += length;
    }
}

static int count_matches(const char *name, bool beginning, int *ret_index, struct str *candidates)
{
    int count = 0;
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        if (!names_key(key, name, beginning))
            continue;
        *ret_index = i;
        str_printf(candidates, "%s%s.%s", count ? ", " : "", key->group, key->name);
        if (beginning)
            add_other_name(key, name, candidates);
        count++;
    }
    return count;
}

/* "schedule.lr" is no beginning of lr_scheduler_type: it is a key, in another group. */
static bool is_elsewhere(const char *name)
{
    struct config_nearest near;
    config_find_nearest(name, &near);
    return strchr(name, '.') && near.is_same;
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
        if (count > 1 && is_elsewhere(name))
            break;
        if (count > 1)
            return error_set(err, ERR_CONFIG, "'%s' is ambiguous: it can mean %s", name,
                             str_text(&candidates));
    }
    *ret_known = false;
    struct config_nearest near;
    config_find_nearest(name, &near);
    if (near.count > 0)
        return error_set(err, ERR_CONFIG, "unknown key '%s'; the nearest %s %s", name,
                         near.count > 1 ? "are" : "is", near.names);
    return error_set(err, ERR_CONFIG, "unknown key '%s'; --help lists all", name);
}
