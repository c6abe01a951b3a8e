/* Making values and putting them together. */
#include "base/json.h"

#include "base/clock.h"
#include "base/json_index.h"
#include "base/json_real.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_free(struct json *value)
{
    cJSON_Delete(json_node(value));
}

/* ---- values ---- */

struct json *json_new_object(void)
{
    return json_of(cJSON_CreateObject());
}

struct json *json_new_array(void)
{
    return json_of(cJSON_CreateArray());
}

struct json *json_new_text_bytes(const char *text, size_t bytes)
{
    struct json *value = json_of(cJSON_CreateString(""));
    char *copy = xmalloc(bytes + 1);
    for (size_t at = 0, length; at < bytes; at += length) {
        bool whole;
        length = utf8_measure(text + at, bytes - at, &whole);
        /* What is not UTF-8 becomes '?': others would refuse the whole document for one byte of a
         * file name. */
        if (whole && text[at])
            memcpy(copy + at, text + at, length);
        else
            memset(copy + at, '?', length);
    }
    copy[bytes] = '\0';
    free(json_node(value)->valuestring);
    json_node(value)->valuestring = copy;
    return value;
}

struct json *json_new_text(const char *text)
{
    return text ? json_new_text_bytes(text, strlen(text)) : NULL;
}

struct json *json_new_time(int64_t wall_ms)
{
    char text[32];
    if (!wall_ms)
        return NULL;
    clock_format_rfc3339(wall_ms, text, sizeof text);
    return json_new_text(text);
}

struct json *json_new_textf(const char *format, ...)
{
    auto_free char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    assert(length >= 0);
    (void)length;
    return json_new_text(text);
}

struct json *json_new_text_cut(const char *text, size_t max_bytes)
{
    size_t length = strnlen(text, max_bytes + 1);
    if (length > max_bytes)
        /* 10xxxxxx continues a character: the cut goes before its first byte. */
        for (length = max_bytes; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80;)
            length--;
    return json_new_text_bytes(text, length);
}

struct json *json_new_integer(int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    return json_of(cJSON_CreateRaw(text));
}

struct json *json_new_real(double number, int digits)
{
    char text[JSON_REAL_BYTES];
    if (!isfinite(number))
        return json_new_null();
    json_real_print(number, digits, text);
    return json_of(cJSON_CreateRaw(text));
}

struct json *json_new_bool(bool value)
{
    return json_of(cJSON_CreateBool(value));
}

struct json *json_new_null(void)
{
    return json_of(cJSON_CreateNull());
}

struct json *json_clone(const struct json *value)
{
    if (!value)
        return NULL;
    bool is_object = json_is_object(value);
    if (!is_object && !json_is_array(value))
        return json_of(cJSON_Duplicate(json_node(value), false));
    struct json *copy = is_object ? json_new_object() : json_new_array();
    for (const cJSON *item = json_node(value)->child; item; item = item->next) {
        cJSON *again = json_node(json_clone((const struct json *)item));
        if (is_object && !again->string)
            again->string = xstrdup(item->string);
        json_index_append(json_node(copy), again);
    }
    return copy;
}

/* ---- objects and arrays ---- */

void json_set(struct json *object, const char *key, struct json *value)
{
    assert(json_is_object(object));
    if (!value)
        return;
    cJSON *item = json_node(value), *old = json_index_find(json_node(object), key);
    if (old) {
        json_index_replace(json_node(object), old, item);
    } else {
        char *name = xstrdup(key); /* which may be the one it had elsewhere */
        free(item->string);
        item->string = name;
        json_index_append(json_node(object), item);
    }
}

void json_set_text(struct json *object, const char *key, const char *text)
{
    json_set(object, key, json_new_text(text));
}

void json_set_integer(struct json *object, const char *key, int64_t number)
{
    json_set(object, key, json_new_integer(number));
}

struct json *json_take(struct json *object, const char *key)
{
    struct json *member = json_get(object, key);
    if (member)
        json_index_detach(json_node(object), json_node(member));
    return member;
}

void json_remove(struct json *object, const char *key)
{
    json_free(json_take(object, key));
}

void json_append(struct json *array, struct json *value)
{
    assert(json_is_array(array));
    if (value)
        json_index_append(json_node(array), json_node(value));
}

struct json *json_take_at(struct json *array, size_t index)
{
    struct json *item = json_at(array, index);
    if (item)
        json_index_detach(json_node(array), json_node(item));
    return item;
}

struct json *json_object_of(const char *key, ...)
{
    struct json *object = json_new_object();
    va_list args;
    va_start(args, key);
    for (; key; key = va_arg(args, const char *))
        json_set(object, key, va_arg(args, struct json *));
    va_end(args);
    return object;
}

struct json *json_texts_of(const char *key, ...)
{
    struct json *object = json_new_object();
    va_list args;
    va_start(args, key);
    for (; key; key = va_arg(args, const char *))
        json_set_text(object, key, va_arg(args, const char *));
    va_end(args);
    return object;
}

struct json *json_array_of(struct json *first, ...)
{
    struct json *array = json_new_array();
    va_list args;
    va_start(args, first);
    for (; first; first = va_arg(args, struct json *))
        json_append(array, first);
    va_end(args);
    return array;
}
