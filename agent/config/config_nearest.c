/* Which known name somebody may have meant: all names that a setting can have, in one place. */
#include "agent/config/config_keys.h"

#include "base/nearest.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_BYTES = 96, MAX_SHOWN = 3 };

/* Names of settings that are in no table: functions of their own read them. */
static const char other_names[] =
    "help version preset config config_file fsdp fsdp_config fsdp_version "
    "lr_scheduler_kwargs checkpoint report_to save_strategy";

struct search {
    const char *name;              /* as it was given */
    const char *own;               /* behind its group */
    size_t group_length;           /* with the dot; 0: no group was given */
    int least;                     /* twice the distance, and 1 in another group */
    const struct config_key *last; /* whose name was the nearest; NULL: no key's */
    struct config_nearest *found;
};

/* Whether the group was given: "model." also for "model.config_overrides". */
static bool is_group_of(const struct search *s, const struct config_key *key)
{
    char full[NAME_BYTES];
    snprintf(full, sizeof full, "%s.", key->group);
    return strncmp(full, s->name, s->group_length) == 0;
}

static void show(struct search *s, const char *shown)
{
    struct config_nearest *found = s->found;
    size_t used = strlen(found->names);
    if (found->count++ < MAX_SHOWN)
        snprintf(found->names + used, sizeof found->names - used, "%s%s", used ? " and " : "",
                 shown);
}

/* Whether `word` (length bytes) is a whole word of some name in the list. */
static bool has_whole_word(const char *names, const char *word, size_t length)
{
    static const char between[] = " _.";
    for (const char *at = names; *at; at += strspn(at, between)) {
        size_t n = strcspn(at, between);
        if (n == length && strncasecmp(at, word, n) == 0)
            return true;
        at += n;
    }
    return false;
}

static bool is_known_word(const char *word, size_t length)
{
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        if (has_whole_word(key->name, word, length) ||
            (key->other_names && has_whole_word(key->other_names, word, length)))
            return true;
    }
    for (int i = 0; i < config_alias_count; i++)
        if (has_whole_word(config_aliases[i].name, word, length))
            return true;
    for (int i = 0; i < config_refusal_count; i++)
        if (has_whole_word(config_refusals[i].names, word, length))
            return true;
    return has_whole_word(other_names, word, length);
}

/* "model_dtype" is nobody's slip: both words occur in names of ours, and mean something else than
 * model_type. */
static bool has_known_words(const char *name)
{
    for (size_t length; *name; name += length + (name[length] == '_')) {
        length = strcspn(name, "_");
        if (length > 0 && !is_known_word(name, length))
            return false;
    }
    return true;
}

/* A name that was perhaps meant. key: whose it is; NULL: it is not one key's. */
static void consider(struct search *s, const char *name, const char *shown,
                     const struct config_key *key, bool can_be_slip)
{
    struct config_nearest *found = s->found;
    int limit = nearest_limit(s->own), distance = nearest_distance(s->own, name, limit);
    bool is_other = s->group_length ? !key || !is_group_of(s, key) : !can_be_slip;
    int rank = 2 * distance + is_other;
    if (distance > limit || rank > s->least)
        return;
    if (rank == s->least && ((key && key == s->last) || strcmp(shown, found->names) == 0))
        return;
    if (rank < s->least)
        *found = (struct config_nearest){.names = ""};
    s->least = rank;
    s->last = key;
    show(s, shown);
    found->is_same = distance == 0;
    found->is_slip = found->count == 1 && s->group_length == 0 && can_be_slip &&
                     nearest_is_slip(s->own, name) && (distance == 0 || !has_known_words(s->own));
}

/* Each of a row's names; those with a group are there without it, too. */
static void consider_words(struct search *s, const char *words, const struct config_key *key)
{
    for (size_t length; *words; words += length + (words[length] == ' ')) {
        char name[NAME_BYTES];
        length = strcspn(words, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, words);
        if (length > 0 && !strchr(name, '.'))
            consider(s, name, name, key, true);
    }
}

/* "lr", and "optimizer_lr" for "optimizer.lr". */
static void consider_key(struct search *s, const struct config_key *key)
{
    char full[NAME_BYTES], joined[NAME_BYTES];
    snprintf(full, sizeof full, "%s.%s", key->group, key->name);
    consider(s, key->name, full, key, !key->needs_group);
    if (key->other_names)
        consider_words(s, key->other_names, key);
    if (s->group_length > 0)
        return;
    snprintf(joined, sizeof joined, "%s", full);
    for (char *c = joined; *c; c++)
        if (*c == '.')
            *c = '_';
    consider(s, joined, full, key, true);
}

/* Whether `word` begins a word of the name: "path" one of "name_or_path". */
static bool has_word(const char *name, const char *word)
{
    enum { LEAST = 3 }; /* letters; fewer begin anything */
    for (const char *at = strstr(name, word); at && strlen(word) >= LEAST;
         at = strstr(at + 1, word))
        if (at == name || at[-1] == '_')
            return true;
    return false;
}

void config_find_nearest(const char *name, struct config_nearest *ret_nearest)
{
    const char *dot = strrchr(name, '.');
    struct search s = {.name = name,
                       .own = dot ? dot + 1 : name,
                       .group_length = dot ? (size_t)(dot + 1 - name) : 0,
                       .found = ret_nearest};
    *ret_nearest = (struct config_nearest){.names = ""};
    s.least = 2 * nearest_limit(s.own) + 1;
    for (int i = 0; i < config_key_count(); i++)
        consider_key(&s, config_key(i));
    for (int i = 0; i < config_alias_count; i++)
        consider_words(&s, config_aliases[i].name, NULL);
    for (int i = 0; i < config_refusal_count; i++)
        consider_words(&s, config_refusals[i].names, NULL);
    consider_words(&s, other_names, NULL);
    for (int i = 0; i < config_key_count() && dot && ret_nearest->count == 0; i++) {
        char full[NAME_BYTES];
        const struct config_key *key = config_key(i);
        snprintf(full, sizeof full, "%s.%s", key->group, key->name);
        if (is_group_of(&s, key) && has_word(key->name, s.own))
            show(&s, full);
    }
}
