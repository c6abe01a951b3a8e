/* Objects and arrays with their index: what makes look-ups in large ones quick. cJSON holds items
 * in a list; it leaves the fields valueint and valuestring of an object or array unused, but copies
 * nothing there and frees valuestring with the rest. So the count of items lies in valueint, and if
 * there are more than a few, a table of them in valuestring: for an array by place, for an object
 * by hash. For base/json*.c alone; all that adds or removes items goes through here. */
#ifndef SHOAL_BASE_JSON_INDEX_H
#define SHOAL_BASE_JSON_INDEX_H

#include "base/json.h"

#include <cjson/cJSON.h>

/* A struct json is a cJSON, which nobody else sees. */
static inline cJSON *json_node(const struct json *value)
{
    return (cJSON *)(uintptr_t)value;
}

static inline struct json *json_of(cJSON *item)
{
    return (struct json *)item;
}

/* Of a member list that cJSON's parser made: takes `item`, the next in it, into account. For an
 * object, returns the item that has the key already, which stays where it is, and does not take
 * `item`; else NULL. */
cJSON *json_index_take(cJSON *collection, cJSON *item);

/* The member of that name; NULL: none. */
cJSON *json_index_find(const cJSON *object, const char *key);
/* The item at the index; NULL: none. */
cJSON *json_index_at(const cJSON *array, size_t index);

/* Puts the item, which is new (with its key, for an object), at the end. */
void json_index_append(cJSON *collection, cJSON *item);
/* Puts `item` in the place of `old`, which has the same key and is freed. */
void json_index_replace(cJSON *object, cJSON *old, cJSON *item);
/* Takes the item out of the list; the caller owns it. */
void json_index_detach(cJSON *collection, cJSON *item);
#endif
