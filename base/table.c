#include "base/table.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 16

/* FNV-1a */
uint64_t table_hash(const char *key)
{
    uint64_t h = 0xcbf29ce484222325;
    for (const char *c = key; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3;
    /* Buckets are chosen by the low bits, which FNV mixes least. */
    return h ^ (h >> 32);
}

static struct table_entry **bucket(const struct table *table, uint64_t h)
{
    return &table->buckets[h & (table->size - 1)];
}

void table_free(struct table *table)
{
    free(table->buckets);
    *table = (struct table){0};
}

struct table_entry *table_find(const struct table *table, const char *key)
{
    if (table->size == 0)
        return NULL;
    uint64_t h = table_hash(key);
    struct table_entry *entry = *bucket(table, h);
    while (entry && (entry->hash != h || strcmp(entry->key, key) != 0))
        entry = entry->next;
    return entry;
}

static void link_entry(struct table *table, struct table_entry *entry)
{
    struct table_entry **first = bucket(table, entry->hash);
    entry->next = *first;
    *first = entry;
}

static void grow(struct table *table)
{
    struct table old = *table;
    table->size = old.size ? 2 * old.size : FIRST_SIZE;
    table->buckets = xcalloc(table->size, sizeof(struct table_entry *));
    for (size_t i = 0; i < old.size; i++)
        for (struct table_entry *entry = old.buckets[i], *next; entry; entry = next) {
            next = entry->next;
            link_entry(table, entry);
        }
    free(old.buckets);
}

void table_add(struct table *table, struct table_entry *entry)
{
    assert(!table_find(table, entry->key));
    if (table->count == table->size)
        grow(table);
    entry->hash = table_hash(entry->key);
    link_entry(table, entry);
    table->count++;
}

void table_remove(struct table *table, struct table_entry *entry)
{
    assert(table->count > 0);
    struct table_entry **at = bucket(table, entry->hash);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    table->count--;
}

void table_each(struct table *table, void (*visit)(void *context, struct table_entry *entry),
                void *context)
{
    for (size_t i = 0; i < table->size; i++)
        for (struct table_entry *entry = table->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            visit(context, entry);
        }
}
