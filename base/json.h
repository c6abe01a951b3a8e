/* JSON values: what a text says, or what is about to be written as one. Files base/json*.c are the
 * only ones that see the JSON library, which is cJSON. What cJSON lacks is added here: its parser
 * takes invalid UTF-8, duplicate keys and a NUL in a string. Its numbers are doubles. Its look-ups
 * ignore case and walk the whole object.
 *
 * A value belongs to the object or array that holds it, else to the caller, who frees it with
 * json_free. Nothing is shared: json_clone copies. Functions that read may be given NULL, or a
 * value of another type: there is nothing then (NULL, 0, false), so that json_get(json_get(a, "b"),
 * "c") needs no checks between. Threads may read one value at the same time.
 *
 * Names: json_is_*, json_as_* and json_get read a value, json_new_* make one, json_set and
 * json_append build. json_read.h, above this door, turns values into structs by tables. */
#ifndef SHOAL_BASE_JSON_H
#define SHOAL_BASE_JSON_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;

enum json_type {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_INTEGER, /* a number without point and exponent that int64_t holds */
    JSON_REAL,    /* any other number */
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

/* ---- texts ---- */

/* Objects and arrays within each other that json_parse takes. */
#define JSON_MAX_DEPTH 512

enum json_allow {
    JSON_STRICT = 0,
    JSON_ALLOW_NUL = 1,        /* \u0000 in a string; see json_restore_nul */
    JSON_ALLOW_DUPLICATES = 2, /* of the members of one name the last counts */
    JSON_ALLOW_SCALAR = 4,     /* a text that is not an object or array */
    JSON_ALLOW_NAN = 8, /* NaN, Infinity and -Infinity, as Python writes them: read as null */
};

/* Reads text[0..bytes); `allow` is a set of enum json_allow. The caller owns the result. A number
 * keeps the text that it has here, whatever its size, until somebody asks for its value. NULL with
 * ERR_INPUT and "line 1, column 7: what is wrong there", one line of printable characters. Lines
 * and columns count from 1, columns in characters. err may be NULL. */
struct json *json_parse(const char *text, size_t bytes, unsigned allow, struct error *err);
/* The same for a text that ends with NUL; NULL for NULL. */
struct json *json_parse_text(const char *text, unsigned allow, struct error *err);

enum json_style {
    JSON_COMPACT = 0,
    JSON_SORTED = 1,   /* members by name, in the order of bytes */
    JSON_INDENTED = 2, /* a line for each value, two spaces for each level */
};

/* The value as text, which the caller frees; `style` is a set of enum json_style. Members come in
 * the order in which they were parsed or set, numbers as they were parsed. */
char *json_print(const struct json *value, unsigned style);

/* ---- reading ---- */

/* Of a value, not NULL. */
enum json_type json_type_of(const struct json *value);
bool json_is_object(const struct json *value);
bool json_is_array(const struct json *value);
bool json_is_string(const struct json *value);
bool json_is_integer(const struct json *value); /* JSON_INTEGER */
bool json_is_real(const struct json *value);    /* JSON_REAL */
bool json_is_number(const struct json *value);  /* either */
bool json_is_boolean(const struct json *value);
bool json_is_true(const struct json *value);
bool json_is_false(const struct json *value);
bool json_is_null(const struct json *value); /* the value null; not: no value */

/* A string's text, UTF-8, valid as long as the string is. */
const char *json_as_text(const struct json *value);
/* An integer's value, exact. */
int64_t json_as_integer(const struct json *value);
/* A number's value, rounded to the nearest double. It is finite. */
double json_as_number(const struct json *value);
/* A number as it was written: "1e3", "18446744073709551616". */
const char *json_number_text(const struct json *value);

/* A string parsed with JSON_ALLOW_NUL holds the bytes C0 80 for a NUL, which UTF-8 never has.
 * Turns them to NUL in place; returns the length of the whole text in bytes. Once only. */
size_t json_restore_nul(struct json *string);

/* The member of that name, in upper and lower case as given. Takes the same time in a large object
 * as in a small one. */
struct json *json_get(const struct json *object, const char *key);
size_t json_object_count(const struct json *object);
/* The item at `index`, from 0. Takes the same time in a large array as in a small one. */
struct json *json_at(const struct json *array, size_t index);
size_t json_array_count(const struct json *array);

/* Walks: each sets `value` (a struct json *) to one item, or member, after the other. The object or
 * array does not change meanwhile. */
#define json_each_item(value, array)                                                               \
    for ((value) = json_first_item(array); (value); (value) = json_next(value))
#define json_each_member(value, object)                                                            \
    for ((value) = json_first_member(object); (value); (value) = json_next(value))
struct json *json_first_item(const struct json *array);
struct json *json_first_member(const struct json *object);
struct json *json_next(const struct json *item_or_member);
/* The name of a member of an object. */
const char *json_key(const struct json *member);

/* Whether they say the same: members in any order; numbers by value, but an integer is no real. */
bool json_is_equal(const struct json *a, const struct json *b);

/* ---- building ---- */

/* NULL-safe. */
void json_free(struct json *value);
/* The value with all it holds, again; NULL for NULL. The caller owns it. */
struct json *json_clone(const struct json *value);

struct json *json_new_object(void);
struct json *json_new_array(void);
/* A string; NULL for NULL. Each byte that belongs to no well-formed UTF-8 character becomes '?'. */
struct json *json_new_text(const char *text);
/* The same for text[0..bytes); a NUL becomes '?', too. */
struct json *json_new_text_bytes(const char *text, size_t bytes);
struct json *json_new_textf(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* RFC 3339, in whole seconds. 0: no time is known; returns NULL. */
struct json *json_new_time(int64_t wall_ms);
/* At most max_bytes of the text, cut between characters. */
struct json *json_new_text_cut(const char *text, size_t max_bytes);
struct json *json_new_integer(int64_t number);
/* With so many significant digits (17 give every double back) and a point or exponent. What is not
 * finite becomes null: JSON has no such numbers. */
struct json *json_new_real(double number, int digits);
struct json *json_new_bool(bool value);
struct json *json_new_null(void);

/* An object of names and values, to be ended with NULL:
 *
 *     json_object_of("name", json_new_text(name), "port", json_new_integer(port), NULL)
 *
 * A name whose value is NULL is left out. */
struct json *json_object_of(const char *key, ...) __attribute__((sentinel));
/* The same of names and texts: json_texts_of("kind", "Pod", "uid", uid, NULL). */
struct json *json_texts_of(const char *key, ...) __attribute__((sentinel));
/* An array of values, to be ended with NULL. */
struct json *json_array_of(struct json *first, ...) __attribute__((sentinel));

/* Puts the value in place of the member of that name, or behind the others. Takes the value, which
 * is in no other object or array; NULL: nothing happens. */
void json_set(struct json *object, const char *key, struct json *value);
void json_set_text(struct json *object, const char *key, const char *text); /* NULL: nothing */
void json_set_integer(struct json *object, const char *key, int64_t number);
/* Frees the member, if there is one. */
void json_remove(struct json *object, const char *key);
/* Takes the member out of the object; the caller owns it. NULL: there is none. */
struct json *json_take(struct json *object, const char *key);
/* Puts the value at the end. Takes it; NULL: nothing happens. */
void json_append(struct json *array, struct json *value);
/* Takes the item out of the array; the caller owns it. NULL: there is none. */
struct json *json_take_at(struct json *array, size_t index);
#endif
