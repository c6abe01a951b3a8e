/* A hash table of things that have a text as their key. The thing holds its own entry (as its first
 * field), so that it is one allocation and the table owns nothing but its buckets. Grows with what
 * is in it; keys are unique. */
#ifndef SHOAL_BASE_TABLE_H
#define SHOAL_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct table_entry {
    struct table_entry *next; /* in its bucket */
    const char *key;          /* the owner's; does not change while the entry is in a table */
    uint64_t hash;
};

/* All zero: an empty table. */
struct table {
    struct table_entry **buckets; /* [size] */
    size_t size;                  /* 0 or a power of two */
    size_t count;
};

/* Frees the buckets, not the entries. */
void table_free(struct table *table);

/* FNV-1a of the text (Fowler, Noll, Vo): the same in every process. */
uint64_t table_hash(const char *text);

struct table_entry *table_find(const struct table *table, const char *key); /* NULL: none */

/* entry->key is set and not yet in the table. */
void table_add(struct table *table, struct table_entry *entry);
/* The entry is in the table. */
void table_remove(struct table *table, struct table_entry *entry);

/* Walks over all entries in no order: calls `visit`, which may remove (and free) the entry it is
 * given and no other. */
void table_each(struct table *table, void (*visit)(void *context, struct table_entry *entry),
                void *context);
#endif
