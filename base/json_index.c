#include "base/json_index.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

/* A list of so many items is walked. */
enum { FEW = 16 };

struct index {
    size_t capacity; /* of an object's, a power of two, at least twice the count */
    cJSON *slots[];
};

/* Names may come from somebody who would have them all fall into one slot: each process hashes in a
 * way of its own. */
static uint64_t seed;

static void choose_seed(void)
{
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) < 0)
        seed = (uint64_t)(uintptr_t)&seed; /* the address is chosen at random as well */
}

static size_t hash(const char *key)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_seed);
    return (size_t)XXH3_64bits_withSeed(key, strlen(key), seed);
}

static bool is_object(const cJSON *collection)
{
    return (collection->type & 0xff) == cJSON_Object;
}

static size_t count_of(const cJSON *collection)
{
    return (size_t)collection->valueint;
}

static struct index *index_of(const cJSON *collection)
{
    return (struct index *)(void *)collection->valuestring;
}

static void set_index(cJSON *collection, struct index *index)
{
    free(collection->valuestring);
    collection->valuestring = (char *)index;
}

/* ---- the table ---- */

/* The slot of that key, or the free one where it would be. */
static cJSON **slot_of(struct index *index, const char *key)
{
    size_t mask = index->capacity - 1, at = hash(key) & mask;
    while (index->slots[at] && strcmp(index->slots[at]->string, key) != 0)
        at = (at + 1) & mask;
    return &index->slots[at];
}

static struct index *make(size_t capacity)
{
    struct index *index = xcalloc(1, sizeof *index + capacity * sizeof index->slots[0]);
    index->capacity = capacity;
    return index;
}

/* Makes the index anew, of all that counts. */
static void rebuild(cJSON *collection)
{
    size_t count = count_of(collection), capacity = 4 * FEW;
    while (capacity < 4 * count)
        capacity *= 2;
    struct index *index = make(capacity);
    cJSON *item = collection->child;
    for (size_t i = 0; i < count; i++, item = item->next)
        *(is_object(collection) ? slot_of(index, item->string) : &index->slots[i]) = item;
    set_index(collection, index);
}

/* The item is in the list, behind those that count already. */
static void count_in(cJSON *collection, cJSON *item)
{
    size_t count = (size_t)++collection->valueint;
    struct index *index = index_of(collection);
    if (count <= FEW && !index)
        return;
    if (!index || index->capacity < (is_object(collection) ? 2 * count : count))
        rebuild(collection);
    else if (is_object(collection))
        *slot_of(index, item->string) = item;
    else
        index->slots[count - 1] = item;
}

/* Closes the gap, so that each key is found without a free slot between (Knuth, The Art of Computer
 * Programming, volume 3, 6.4, algorithm R). */
static void remove_slot(struct index *index, cJSON **slot)
{
    size_t mask = index->capacity - 1, hole = (size_t)(slot - index->slots);
    for (size_t i = (hole + 1) & mask; index->slots[i]; i = (i + 1) & mask) {
        size_t home = hash(index->slots[i]->string) & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        index->slots[hole] = index->slots[i];
        hole = i;
    }
    index->slots[hole] = NULL;
}

static void remove_item(struct index *index, size_t count, const cJSON *item)
{
    size_t at = 0;
    while (index->slots[at] != item)
        at++;
    memmove(&index->slots[at], &index->slots[at + 1], (count - at - 1) * sizeof index->slots[0]);
}

/* ---- the collection ---- */

cJSON *json_index_find(const cJSON *object, const char *key)
{
    struct index *index = index_of(object);
    if (index)
        return *slot_of(index, key);
    cJSON *item = object->child;
    for (size_t i = 0; i < count_of(object); i++, item = item->next)
        if (item->string[0] == key[0] && strcmp(item->string, key) == 0) /* most begin otherwise */
            return item;
    return NULL;
}

cJSON *json_index_at(const cJSON *array, size_t index)
{
    if (index >= count_of(array))
        return NULL;
    if (index_of(array))
        return index_of(array)->slots[index];
    cJSON *item = array->child;
    for (size_t i = 0; i < index; i++)
        item = item->next;
    return item;
}

cJSON *json_index_take(cJSON *collection, cJSON *item)
{
    cJSON *old = is_object(collection) ? json_index_find(collection, item->string) : NULL;
    if (!old)
        count_in(collection, item);
    return old;
}

void json_index_append(cJSON *collection, cJSON *item)
{
    cJSON_AddItemToArray(collection, item); /* an object's list is one, too */
    count_in(collection, item);
}

void json_index_replace(cJSON *object, cJSON *old, cJSON *item)
{
    if (index_of(object))
        *slot_of(index_of(object), old->string) = item;
    free(item->string);
    item->string = old->string;
    old->string = NULL;
    cJSON_ReplaceItemViaPointer(object, old, item);
}

void json_index_detach(cJSON *collection, cJSON *item)
{
    struct index *index = index_of(collection);
    if (index && is_object(collection))
        remove_slot(index, slot_of(index, item->string));
    else if (index)
        remove_item(index, count_of(collection), item);
    cJSON_DetachItemViaPointer(collection, item);
    collection->valueint--;
}
