#include "operator/job/node.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#define OWN_TAINTS        "node.kubernetes.io/"
#define MESSAGE_MAX_BYTES 200 /* of a condition's: an event has 1024 in all */

/* ---- lists ---- */

/* The next item of a list, without spaces around it; NULL: none. */
static const char *next_item(const char **at, struct arena *arena)
{
    while (**at == ',' || **at == ' ')
        (*at)++;
    size_t bytes = strcspn(*at, ",");
    const char *start = *at;
    *at += bytes;
    while (bytes && start[bytes - 1] == ' ')
        bytes--;
    return bytes ? arena_strndup(arena, start, bytes) : NULL;
}

/* KEY[=VALUE][:EFFECT]; what is absent becomes NULL. */
static struct taint read_taint(const char *item, struct arena *arena)
{
    char *key = arena_strdup(arena, item);
    char *effect = strrchr(key, ':'), *value = strchr(key, '=');
    if (effect)
        *effect++ = '\0';
    if (value)
        *value++ = '\0';
    return (struct taint){.key = key, .value = value, .effect = effect};
}

/* ---- taints ---- */

static bool is_in_force(const struct taint *taint)
{
    return strcmp(taint->effect, "PreferNoSchedule") != 0;
}

static bool is_key(const char *pattern, const char *key)
{
    size_t bytes = strlen(pattern);
    return bytes && pattern[bytes - 1] == '*' ? strncmp(pattern, key, bytes - 1) == 0
                                              : strcmp(pattern, key) == 0;
}

static bool fits_taint(const struct taint *wanted, const struct taint *taint)
{
    return is_key(wanted->key, taint->key) &&
           (!wanted->value || strcmp(wanted->value, taint->value) == 0) &&
           (wanted->effect ? strcmp(wanted->effect, taint->effect) == 0 : is_in_force(taint));
}

static bool is_sign(const struct taint *taint, const struct node_signs *signs, struct arena *arena)
{
    const char *at = signs->taints, *item;
    while ((item = next_item(&at, arena))) {
        struct taint wanted = read_taint(item, arena);
        if (fits_taint(&wanted, taint))
            return true;
    }
    return false;
}

static const char *taint_text(const struct taint *taint, struct arena *arena)
{
    return arena_printf(arena, "%s%s%s:%s", taint->key, *taint->value ? "=" : "", taint->value,
                        taint->effect);
}

/* ---- conditions ---- */

static const struct node_condition *find_condition(const struct node *node, const char *type)
{
    for (size_t i = 0; i < node->condition_count; i++)
        if (strcmp(node->conditions[i].type, type) == 0)
            return &node->conditions[i];
    return NULL;
}

static const char *condition_text(const struct node_condition *condition, struct arena *arena)
{
    const char *reason = condition->reason, *message = condition->message;
    const char *why = *reason || *message ? arena_printf(arena, " (%s%s%.*s)", reason,
                                                         *reason && *message ? ": " : "",
                                                         MESSAGE_MAX_BYTES, message)
                                          : "";
    return arena_printf(arena, "condition %s is %s%s", condition->type, condition->status, why);
}

static const char *condition_sign(const struct node *node, const struct node_signs *signs,
                                  struct arena *arena)
{
    const char *at = signs->conditions, *item;
    while ((item = next_item(&at, arena))) {
        char *type = arena_strdup(arena, item), *status = strchr(type, '=');
        if (status)
            *status++ = '\0';
        const struct node_condition *condition = find_condition(node, type);
        if (condition && strcmp(condition->status, status ? status : "True") == 0)
            return condition_text(condition, arena);
    }
    return NULL;
}

/* ---- what is made of it ---- */

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

const char *node_taints_problem(const char *list, struct arena *arena)
{
    const char *item;
    while ((item = next_item(&list, arena))) {
        struct taint taint = read_taint(item, arena);
        if (!*taint.key || strcmp(taint.key, "*") == 0)
            return arena_printf(arena, "%s: must be KEY[=VALUE][:EFFECT]", item);
        if (taint.effect && !is_one_of(taint.effect, "NoSchedule", "NoExecute", "PreferNoSchedule"))
            return arena_printf(
                arena, "%s: the effect must be NoSchedule, NoExecute or PreferNoSchedule", item);
        if (is_key(taint.key, OWN_TAINTS "unschedulable"))
            return arena_printf(arena, "%s: that is a drain, not bad hardware", item);
    }
    return NULL;
}

const char *node_conditions_problem(const char *list, struct arena *arena)
{
    const char *item;
    while ((item = next_item(&list, arena))) {
        const char *status = strchr(item, '=');
        if (status == item || (status && !is_one_of(status + 1, "True", "False", "Unknown")))
            return arena_printf(arena, "%s: must be TYPE[=True|False|Unknown]", item);
    }
    return NULL;
}

const char *node_sign(const struct node *node, const struct node_signs *signs, struct arena *arena)
{
    for (size_t i = 0; i < node->taint_count; i++)
        if (is_sign(&node->taints[i], signs, arena))
            return arena_printf(arena, "taint %s", taint_text(&node->taints[i], arena));
    return condition_sign(node, signs, arena);
}

bool node_takes_pods(const struct node *node)
{
    const struct node_condition *ready = find_condition(node, "Ready");
    for (size_t i = 0; i < node->taint_count; i++)
        if (is_in_force(&node->taints[i]) && str_starts_with(node->taints[i].key, OWN_TAINTS))
            return false;
    return !node->unschedulable && ready && strcmp(ready->status, "True") == 0;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *node_kind(const struct node *node, const struct node_signs *signs, struct arena *arena)
{
    const char **parts =
        arena_array(arena, const char *, node->taint_count + node->capacity.count + 1);
    const char *kind = "";
    size_t count = 0;
    for (size_t i = 0; i < node->taint_count; i++) {
        const struct taint *taint = &node->taints[i];
        if (is_in_force(taint) && !str_starts_with(taint->key, OWN_TAINTS) &&
            !is_sign(taint, signs, arena))
            parts[count++] = taint_text(taint, arena);
    }
    /* an extended resource is one with a domain; Kubernetes' own have none */
    for (size_t i = 0; i < node->capacity.count; i++)
        if (strchr(node->capacity.items[i].key, '/'))
            parts[count++] = arena_printf(arena, "%s=%s", node->capacity.items[i].key,
                                          node->capacity.items[i].value);
    qsort(parts, count, sizeof *parts, compare_texts);
    for (size_t i = 0; i < count; i++)
        kind = arena_printf(arena, "%s%s%s", kind, i ? " " : "", parts[i]);
    return kind;
}
