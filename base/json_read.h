/* From JSON values to C structs, by tables that say which field goes where. This is the edge:
 * behind it nothing walks JSON by name. What does not fit becomes a problem with the path of the
 * field, and reading goes on, so that a user sees everything at once. */
#ifndef SHOAL_BASE_JSON_READ_H
#define SHOAL_BASE_JSON_READ_H

#include "base/lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct json;

#define JSON_MAX_PATH 512

/* One reading. Strings and arrays go to the arena. */
struct json_reader {
    struct arena *arena;
    struct lines *problems;
    struct lines *notes;   /* fields that are dropped; NULL: nobody wants to know */
    struct lines *unused;  /* paths of what json_note_unused was given; NULL: a note each */
    struct lines *unknown; /* what no table has and is near no name of one; NULL: to the notes */
    /* Names of fields that may be null, separated by spaces; another one that is read, and is null,
     * is a problem. NULL: null is the same as absent, as in Kubernetes. */
    const char *nullable;
    bool misspelt_fails;      /* an unknown field that is near a known one is a problem */
    char path[JSON_MAX_PATH]; /* of the value that is being read; cut if longer */
};

enum json_kind {
    JSON_KIND_TEXT,    /* const char *: NULL if absent */
    JSON_KIND_BOOL,    /* bool */
    JSON_KIND_INTEGER, /* int64_t within [low, high] */
    JSON_KIND_CHOICE,  /* int: index into `choices`; 0 is "absent" and no choice */
    JSON_KIND_OBJECT,  /* a struct, by `fields` */
    JSON_KIND_ARRAY,   /* pointer to structs of `element_bytes`, by `fields`, and a size_t count */
    JSON_KIND_TEXTS,   /* pointer to const char *, and a size_t count */
    JSON_KIND_CUSTOM,  /* `read` does it */
    JSON_KIND_KNOWN,   /* read by someone else, or of no interest: no note */
    JSON_KIND_UNUSED,  /* understood, but nothing here acts on it: a note says so */
};

/* One field of an object. */
struct json_field {
    const char *name;
    enum json_kind kind;
    size_t offset; /* of the C field */
    /* Offset of what goes with it. INTEGER, OBJECT: of a bool "is there", or JSON_NO_OFFSET; ARRAY,
     * TEXTS: of the count. */
    size_t second;
    int64_t low, high;
    const char *const *choices; /* NULL-terminated; element 0 is not used */
    const struct json_field *fields;
    size_t element_bytes;
    void (*read)(struct json_reader *reader, const struct json *value, void *field);
};
#define JSON_NO_OFFSET SIZE_MAX

/* What is said of fields that nothing here acts on. */
#define JSON_NOT_ENFORCED "understood, but not enforced here"

/* How a table is written; it ends with JSON_END. `out` is the struct that json_read fills. */
/* clang-format off */
#define JSON_TEXT(key, out, field) \
    {.name = key, .kind = JSON_KIND_TEXT, .offset = offsetof(out, field)}
#define JSON_BOOL(key, out, field) \
    {.name = key, .kind = JSON_KIND_BOOL, .offset = offsetof(out, field)}
/* `field` is a struct { bool set; int64_t value; } */
#define JSON_OPTIONAL(key, out, field, least, most) \
    {.name = key, .kind = JSON_KIND_INTEGER, .offset = offsetof(out, field.value), \
     .second = offsetof(out, field.set), .low = least, .high = most}
/* The first word is "", which is as good as absent. */
#define JSON_CHOICE(key, out, field, words) \
    {.name = key, .kind = JSON_KIND_CHOICE, .offset = offsetof(out, field), .choices = words}
#define JSON_PART(key, out, field, table) \
    {.name = key, .kind = JSON_KIND_OBJECT, .offset = offsetof(out, field), \
     .second = JSON_NO_OFFSET, .fields = table}
/* `present` is a bool that becomes true if the part is there */
#define JSON_OPTIONAL_PART(key, out, field, present, table) \
    {.name = key, .kind = JSON_KIND_OBJECT, .offset = offsetof(out, field), \
     .second = offsetof(out, present), .fields = table}
/* an object whose fields go to the same struct */
#define JSON_SAME(key, table) \
    {.name = key, .kind = JSON_KIND_OBJECT, .second = JSON_NO_OFFSET, .fields = table}
#define JSON_ARRAY_OF(key, out, field, count, element, table) \
    {.name = key, .kind = JSON_KIND_ARRAY, .offset = offsetof(out, field), \
     .second = offsetof(out, count), .fields = table, .element_bytes = sizeof(element)}
#define JSON_TEXTS(key, out, field, count) \
    {.name = key, .kind = JSON_KIND_TEXTS, .offset = offsetof(out, field), \
     .second = offsetof(out, count)}
#define JSON_CUSTOM(key, out, field, reader) \
    {.name = key, .kind = JSON_KIND_CUSTOM, .offset = offsetof(out, field), .read = reader}
/* `reader` gets the struct itself */
#define JSON_CUSTOM_SAME(key, reader) {.name = key, .kind = JSON_KIND_CUSTOM, .read = reader}
#define JSON_KNOWN(key) {.name = key, .kind = JSON_KIND_KNOWN}
#define JSON_UNUSED(key) {.name = key, .kind = JSON_KIND_UNUSED}
#define JSON_END {.name = NULL}
/* clang-format on */

/* Reads the object into *out, which holds what absent fields shall be. A field that is in the table
 * and does not fit is a problem; one that is not in the table is a note, which names the nearest
 * name that is. */
void json_read(struct json_reader *reader, const struct json *object,
               const struct json_field *fields, void *out);

/* For custom readers: the value as text (copied into the arena), or NULL and a problem. */
const char *json_read_text(struct json_reader *reader, const struct json *value);
/* The value if it is a whole number within [low, high]; else false and a problem. */
bool json_read_integer(struct json_reader *reader, const struct json *value, int64_t low,
                       int64_t high, int64_t *ret_number);
/* Whether the value is an object (array); if not: a problem. */
bool json_is_object_here(struct json_reader *reader, const struct json *value);
bool json_is_array_here(struct json_reader *reader, const struct json *value);

/* Goes down one step of the path, ".name", "[key]" or "[0]"; the result is for json_leave. */
size_t json_enter(struct json_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void json_leave(struct json_reader *reader, size_t depth);

/* Adds "PATH: text" to the problems (notes). */
void json_problem(struct json_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Whether there is a problem with the value at the path already. */
bool json_has_problem(const struct json_reader *reader);
void json_note(struct json_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Nothing here acts on this field: what JSON_UNUSED does, for custom readers. */
void json_note_unused(struct json_reader *reader);
#endif
