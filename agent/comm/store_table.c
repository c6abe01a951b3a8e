#include "agent/comm/store_table.h"

#include "base/mem.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

struct pair {
    struct table_entry entry; /* first */
    const char *value;
};

struct store_table {
    struct arena *arena;
    struct table pairs;
};

struct store_table *store_table_open(void)
{
    struct store_table *t = xcalloc(1, sizeof *t);
    t->arena = arena_open();
    return t;
}

void store_table_close(struct store_table *t)
{
    if (!t)
        return;
    table_free(&t->pairs);
    arena_close(t->arena);
    free(t);
}

int store_table_set(struct store_table *t, const char *key, const char *value, struct error *err)
{
    if (strlen(key) >= STORE_KEY_MAX || strlen(value) >= STORE_VALUE_MAX)
        return error_set(err, ERR_INPUT, "store: key or value is too long: %.64s", key);
    /* Keys are written once: a reader can never see a value that changes under it. */
    if (store_table_get(t, key))
        return error_set(err, ERR_EXISTS, "store: %s is there already", key);
    if (t->pairs.count == STORE_KEYS_MAX)
        return error_set(err, ERR_INPUT, "store: more than %d keys", STORE_KEYS_MAX);
    struct pair *pair = arena_new(t->arena, struct pair);
    pair->entry.key = arena_strdup(t->arena, key);
    pair->value = arena_strdup(t->arena, value);
    table_add(&t->pairs, &pair->entry);
    return 0;
}

const char *store_table_get(const struct store_table *t, const char *key)
{
    const struct table_entry *entry = table_find(&t->pairs, key);
    return entry ? ((const struct pair *)(const void *)entry)->value : NULL;
}
