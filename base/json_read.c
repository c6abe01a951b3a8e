#include "base/json_read.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/nearest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t json_enter(struct json_reader *reader, const char *format, ...)
{
    size_t depth = strlen(reader->path);
    va_list args;
    va_start(args, format);
    vsnprintf(reader->path + depth, sizeof reader->path - depth, format, args);
    va_end(args);
    return depth;
}

/* The same for ".NAME", which is entered for each member of all that is read. */
static size_t enter_member(struct json_reader *reader, const char *name)
{
    size_t depth = strlen(reader->path), left = sizeof reader->path - depth;
    if (left > 1) {
        size_t bytes = strnlen(name, left - 2);
        reader->path[depth] = '.';
        memcpy(reader->path + depth + 1, name, bytes);
        reader->path[depth + 1 + bytes] = '\0';
    }
    return depth;
}

void json_leave(struct json_reader *reader, size_t depth)
{
    reader->path[depth] = '\0';
}

static const char *path_of(const struct json_reader *reader)
{
    return *reader->path == '.' ? reader->path + 1 : reader->path;
}

static void add(struct json_reader *reader, struct lines *lines, const char *format, va_list args)
{
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    const char *path = path_of(reader);
    lines_add(lines, "%s%s%s", path, *path ? ": " : "", text);
}

void json_problem(struct json_reader *reader, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(reader, reader->problems, format, args);
    va_end(args);
}

bool json_has_problem(const struct json_reader *reader)
{
    const char *path = path_of(reader);
    size_t length = strlen(path);
    for (size_t i = 0; i < reader->problems->count; i++) {
        const char *problem = reader->problems->items[i];
        if (strncmp(problem, path, length) == 0 && problem[length] == ':')
            return true;
    }
    return false;
}

void json_note(struct json_reader *reader, const char *format, ...)
{
    if (!reader->notes)
        return;
    va_list args;
    va_start(args, format);
    add(reader, reader->notes, format, args);
    va_end(args);
}

void json_note_unused(struct json_reader *reader)
{
    if (reader->unused)
        lines_add(reader->unused, "%s", path_of(reader));
    else
        json_note(reader, JSON_NOT_ENFORCED);
}

/* "must be WANTED, not the number 7" */
static void wrong_type(struct json_reader *reader, const struct json *value, const char *wanted)
{
    switch (json_type_of(value)) {
    case JSON_STRING:
        json_problem(reader, "must be %s, not the text \"%.40s\"", wanted, json_as_text(value));
        break;
    case JSON_INTEGER:
        json_problem(reader, "must be %s, not the number %" PRId64, wanted, json_as_integer(value));
        break;
    case JSON_REAL:
        json_problem(reader, "must be %s, not the number %.40s", wanted, json_number_text(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        json_problem(reader, "must be %s, not the boolean %s", wanted,
                     json_is_true(value) ? "true" : "false");
        break;
    case JSON_OBJECT:
        json_problem(reader, "must be %s, not a mapping", wanted);
        break;
    case JSON_ARRAY:
        json_problem(reader, "must be %s, not a list", wanted);
        break;
    case JSON_NULL:
        json_problem(reader, "must be %s, not null", wanted);
        break;
    }
}

const char *json_read_text(struct json_reader *reader, const struct json *value)
{
    if (json_is_string(value))
        return arena_strdup(reader->arena, json_as_text(value));
    bool scalar = json_is_number(value) || json_is_boolean(value);
    wrong_type(reader, value, scalar ? "text (put it in quotes)" : "text");
    return NULL;
}

bool json_is_object_here(struct json_reader *reader, const struct json *value)
{
    if (json_is_object(value))
        return true;
    wrong_type(reader, value, "a mapping");
    return false;
}

bool json_is_array_here(struct json_reader *reader, const struct json *value)
{
    if (json_is_array(value))
        return true;
    wrong_type(reader, value, "a list");
    return false;
}

bool json_read_integer(struct json_reader *reader, const struct json *value, int64_t low,
                       int64_t high, int64_t *ret_number)
{
    const char *text = json_number_text(value);
    if (text && !json_is_integer(value) && !strpbrk(text, ".eE")) { /* too large for int64_t */
        json_problem(reader, "must be within %" PRId64 " and %" PRId64 ", not %.40s", low, high,
                     text);
        return false;
    }
    if (!json_is_integer(value)) {
        wrong_type(reader, value, "a whole number");
        return false;
    }
    int64_t number = json_as_integer(value);
    if (number < low || number > high) {
        json_problem(reader, "must be within %" PRId64 " and %" PRId64 ", not %" PRId64, low, high,
                     number);
        return false;
    }
    *ret_number = number;
    return true;
}

static void read_choice(struct json_reader *reader, const struct json *value,
                        const struct json_field *field, int *ret_index)
{
    if (!json_is_string(value)) {
        wrong_type(reader, value, "text");
        return;
    }
    /* Typed clients write "" for a choice that was not made. */
    if (*json_as_text(value) == '\0')
        return;
    char known[256] = "";
    for (int i = 1; field->choices[i]; i++) {
        if (strcmp(field->choices[i], json_as_text(value)) == 0) {
            *ret_index = i;
            return;
        }
        size_t length = strlen(known);
        snprintf(known + length, sizeof known - length, "%s\"%s\"", i > 1 ? ", " : "",
                 field->choices[i]);
    }
    json_problem(reader, "Unsupported value: \"%.40s\": supported values: %s", json_as_text(value),
                 known);
}

static void read_array(struct json_reader *reader, const struct json *value,
                       const struct json_field *field, void *out)
{
    if (!json_is_array_here(reader, value))
        return;
    size_t count = json_array_count(value);
    char *items = arena_alloc(reader->arena, count * field->element_bytes);
    for (size_t i = 0; i < count; i++) {
        size_t depth = json_enter(reader, "[%zu]", i);
        const struct json *item = json_at(value, i);
        if (json_is_object_here(reader, item))
            json_read(reader, item, field->fields, items + i * field->element_bytes);
        json_leave(reader, depth);
    }
    memcpy((char *)out + field->offset, &items, sizeof items);
    *(size_t *)((char *)out + field->second) = count;
}

static void read_texts(struct json_reader *reader, const struct json *value,
                       const struct json_field *field, void *out)
{
    if (!json_is_array_here(reader, value))
        return;
    size_t count = json_array_count(value);
    const char **items = arena_array(reader->arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        size_t depth = json_enter(reader, "[%zu]", i);
        items[i] = json_read_text(reader, json_at(value, i));
        json_leave(reader, depth);
    }
    memcpy((char *)out + field->offset, &items, sizeof items);
    *(size_t *)((char *)out + field->second) = count;
}

static void read_object(struct json_reader *reader, const struct json *value,
                        const struct json_field *field, void *out)
{
    if (!json_is_object_here(reader, value))
        return;
    if (field->second != JSON_NO_OFFSET)
        *(bool *)((char *)out + field->second) = true;
    json_read(reader, value, field->fields, (char *)out + field->offset);
}

static void read_field(struct json_reader *reader, const struct json *value,
                       const struct json_field *field, void *out)
{
    void *at = (char *)out + field->offset;
    switch (field->kind) {
    case JSON_KIND_TEXT:
        *(const char **)at = json_read_text(reader, value);
        break;
    case JSON_KIND_BOOL:
        if (json_is_boolean(value))
            *(bool *)at = json_is_true(value);
        else
            wrong_type(reader, value, "true or false");
        break;
    case JSON_KIND_INTEGER:
        if (json_read_integer(reader, value, field->low, field->high, at) &&
            field->second != JSON_NO_OFFSET)
            *(bool *)((char *)out + field->second) = true;
        break;
    case JSON_KIND_CHOICE:
        read_choice(reader, value, field, at);
        break;
    case JSON_KIND_OBJECT:
        read_object(reader, value, field, out);
        break;
    case JSON_KIND_ARRAY:
        read_array(reader, value, field, out);
        break;
    case JSON_KIND_TEXTS:
        read_texts(reader, value, field, out);
        break;
    case JSON_KIND_CUSTOM:
        field->read(reader, value, at);
        break;
    case JSON_KIND_KNOWN:
        break;
    case JSON_KIND_UNUSED:
        json_note_unused(reader);
        break;
    }
}

static const struct json_field *find_field(const struct json_field *fields, const char *name)
{
    for (const struct json_field *field = fields; field->name; field++)
        if (field->name[0] == name[0] && strcmp(field->name, name) == 0) /* most begin otherwise */
            return field;
    return NULL;
}

/* The field of the table that somebody most likely meant; NULL: none comes near. */
static const char *nearest_field(const struct json_field *fields, const char *name)
{
    const char *nearest = NULL;
    int least = nearest_limit(name) + 1;
    for (const struct json_field *field = fields; field->name; field++) {
        int distance = nearest_distance(name, field->name, least - 1);
        if (distance < least) {
            least = distance;
            nearest = field->name;
        }
    }
    return nearest;
}

static void report_unknown(struct json_reader *reader, const struct json_field *fields,
                           const char *name)
{
    if (!reader->notes && !reader->misspelt_fails)
        return;
    const char *nearest = nearest_field(fields, name);
    struct lines *notes = reader->notes;
    if (nearest && reader->misspelt_fails) {
        json_problem(reader, "unknown field; the nearest is %s", nearest);
    } else if (nearest) {
        json_note(reader, "unknown field, ignored; the nearest is %s", nearest);
    } else {
        reader->notes = reader->unknown ? reader->unknown : notes;
        json_note(reader, "unknown field, ignored");
        reader->notes = notes;
    }
}

static bool may_be_null(const struct json_reader *reader, const struct json_field *field)
{
    if (!reader->nullable || !field || field->kind == JSON_KIND_KNOWN)
        return true;
    size_t length = strlen(field->name);
    for (const char *at = reader->nullable; (at = strstr(at, field->name)); at += length)
        if ((at == reader->nullable || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

void json_read(struct json_reader *reader, const struct json *object,
               const struct json_field *fields, void *out)
{
    struct json *value;
    json_each_member(value, object) {
        const char *name = json_key(value);
        const struct json_field *field = find_field(fields, name);
        bool is_null = json_is_null(value);
        if (is_null && may_be_null(reader, field))
            continue;
        size_t depth = enter_member(reader, name);
        if (is_null)
            json_problem(reader, "must not be null: give a value, or leave the field out");
        else if (field)
            read_field(reader, value, field, out);
        else
            report_unknown(reader, fields, name);
        json_leave(reader, depth);
    }
}
