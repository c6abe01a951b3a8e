#include "base/json.h"

#include "base/json_index.h"
#include "base/json_real.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A number is of cJSON's type Raw and has its text in valuestring. */
static bool has_type(const struct json *value, int type)
{
    return value && (json_node(value)->type & 0xff) == type;
}

/* As everywhere, running out of memory ends the program: cJSON would return half an object. */
__attribute__((constructor)) static void use_our_memory(void)
{
    cJSON_Hooks hooks = {.malloc_fn = xmalloc, .free_fn = free};
    cJSON_InitHooks(&hooks);
}

/* ---- reading ---- */

/* Whether it is an integer, and which. Numbers stay text, as cJSON's double would round integers
 * above 2^53: a seed, or a count of tokens. */
static bool integer_of(const struct json *value, int64_t *ret_number)
{
    const char *text = json_number_text(value);
    if (!text || strpbrk(text, ".eE"))
        return false;
    errno = 0;
    *ret_number = strtoll(text, NULL, 10);
    return errno == 0;
}

enum json_type json_type_of(const struct json *value)
{
    assert(value);
    switch (json_node(value)->type & 0xff) {
    case cJSON_Object:
        return JSON_OBJECT;
    case cJSON_Array:
        return JSON_ARRAY;
    case cJSON_String:
        return JSON_STRING;
    case cJSON_Raw:
        return json_is_integer(value) ? JSON_INTEGER : JSON_REAL;
    case cJSON_True:
        return JSON_TRUE;
    case cJSON_False:
        return JSON_FALSE;
    default:
        return JSON_NULL;
    }
}

bool json_is_object(const struct json *value)
{
    return has_type(value, cJSON_Object);
}

bool json_is_array(const struct json *value)
{
    return has_type(value, cJSON_Array);
}

bool json_is_string(const struct json *value)
{
    return has_type(value, cJSON_String);
}

bool json_is_integer(const struct json *value)
{
    int64_t number;
    return integer_of(value, &number);
}

bool json_is_real(const struct json *value)
{
    return json_is_number(value) && !json_is_integer(value);
}

bool json_is_number(const struct json *value)
{
    return has_type(value, cJSON_Raw);
}

bool json_is_boolean(const struct json *value)
{
    return json_is_true(value) || json_is_false(value);
}

bool json_is_true(const struct json *value)
{
    return has_type(value, cJSON_True);
}

bool json_is_false(const struct json *value)
{
    return has_type(value, cJSON_False);
}

bool json_is_null(const struct json *value)
{
    return has_type(value, cJSON_NULL);
}

const char *json_as_text(const struct json *value)
{
    return json_is_string(value) ? json_node(value)->valuestring : NULL;
}

int64_t json_as_integer(const struct json *value)
{
    int64_t number;
    return integer_of(value, &number) ? number : 0;
}

double json_as_number(const struct json *value)
{
    return json_is_number(value) ? json_real_value(json_node(value)->valuestring) : 0;
}

const char *json_number_text(const struct json *value)
{
    return json_is_number(value) ? json_node(value)->valuestring : NULL;
}

size_t json_restore_nul(struct json *string)
{
    assert(json_is_string(string));
    char *out = json_node(string)->valuestring;
    /* cJSON's texts end at a NUL, so the parser stores one as C0 80 (Java's "modified UTF-8"),
     * which valid UTF-8 never contains. */
    for (const char *in = out; *in; in++) {
        bool nul = in[0] == '\xc0' && in[1] == '\x80';
        *out++ = nul ? '\0' : *in;
        in += nul;
    }
    *out = '\0';
    return (size_t)(out - json_node(string)->valuestring);
}

struct json *json_get(const struct json *object, const char *key)
{
    return json_is_object(object) ? json_of(json_index_find(json_node(object), key)) : NULL;
}

size_t json_object_count(const struct json *object)
{
    return json_is_object(object) ? (size_t)json_node(object)->valueint : 0;
}

struct json *json_at(const struct json *array, size_t index)
{
    return json_is_array(array) ? json_of(json_index_at(json_node(array), index)) : NULL;
}

size_t json_array_count(const struct json *array)
{
    return json_is_array(array) ? (size_t)json_node(array)->valueint : 0;
}

struct json *json_first_item(const struct json *array)
{
    return json_is_array(array) ? json_of(json_node(array)->child) : NULL;
}

struct json *json_first_member(const struct json *object)
{
    return json_is_object(object) ? json_of(json_node(object)->child) : NULL;
}

struct json *json_next(const struct json *item_or_member)
{
    return json_of(json_node(item_or_member)->next);
}

const char *json_key(const struct json *member)
{
    return json_node(member)->string;
}

/* ---- comparing ---- */

static bool is_equal_number(const struct json *a, const struct json *b)
{
    int64_t x, y;
    bool x_is_integer = integer_of(a, &x), y_is_integer = integer_of(b, &y);
    if (x_is_integer != y_is_integer)
        return false;
    return x_is_integer ? x == y : json_as_number(a) == json_as_number(b);
}

static bool is_equal_object(const struct json *a, const struct json *b)
{
    const struct json *member;
    if (json_object_count(a) != json_object_count(b))
        return false;
    json_each_member(member, a) {
        if (!json_is_equal(member, json_get(b, json_key(member))))
            return false;
    }
    return true;
}

static bool is_equal_array(const struct json *a, const struct json *b)
{
    const struct json *item, *other = json_first_item(b);
    if (json_array_count(a) != json_array_count(b))
        return false;
    json_each_item(item, a) {
        if (!json_is_equal(item, other))
            return false;
        other = json_next(other);
    }
    return true;
}

bool json_is_equal(const struct json *a, const struct json *b)
{
    if (!a || !b || !has_type(b, json_node(a)->type & 0xff))
        return false;
    switch (json_node(a)->type & 0xff) {
    case cJSON_Object:
        return is_equal_object(a, b);
    case cJSON_Array:
        return is_equal_array(a, b);
    case cJSON_String:
        return strcmp(json_as_text(a), json_as_text(b)) == 0;
    case cJSON_Raw:
        return is_equal_number(a, b);
    default:
        return true;
    }
}
