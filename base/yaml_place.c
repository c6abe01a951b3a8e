/* A path cannot be cut into steps without knowing the names, which may hold dots and brackets
 * themselves. So the names that the document has are laid against the path, not the other way
 * round. */
#include "base/yaml_place.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/yaml_scalar.h"

struct finder {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; valid while has_event */
    bool has_event;
    const char *path; /* what is left of it */
    size_t line;      /* of what it has led to so far */
};

static bool next(struct finder *f)
{
    if (f->has_event)
        yaml_event_delete(&f->event);
    f->has_event = yaml_parser_parse(&f->parser, &f->event);
    return f->has_event;
}

static size_t line_here(const struct finder *f)
{
    return f->event.start_mark.line + 1;
}

/* Goes to the last event of the value that begins with the current one. */
static bool skip(struct finder *f)
{
    int depth = 0;
    do {
        yaml_event_type_t type = f->event.type;
        depth += type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT;
        depth -= type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT;
    } while (depth > 0 && next(f));
    return f->has_event;
}

/* The path behind the step, if it begins with it; else NULL. */
static const char *behind(const char *path, const char *before, const char *name, const char *after)
{
    const char *const parts[] = {before, name, after};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(parts[i]);
        if (strncmp(path, parts[i], length) != 0)
            return NULL;
        path += length;
    }
    return strchr(".[: ", *path) ? path : NULL; /* the end counts, too */
}

static const char *behind_key(const char *path, const char *key)
{
    const char *rest = behind(path, ".", key, "");
    return rest ? rest : behind(path, "[", key, "]");
}

static void find_in_mapping(struct finder *f);
static void find_in_sequence(struct finder *f);

static void find_in(struct finder *f)
{
    if (f->event.type == YAML_MAPPING_START_EVENT)
        find_in_mapping(f);
    else if (f->event.type == YAML_SEQUENCE_START_EVENT)
        find_in_sequence(f);
}

static void find_in_mapping(struct finder *f)
{
    while (next(f) && f->event.type != YAML_MAPPING_END_EVENT) {
        size_t line = line_here(f);
        const char *rest = f->event.type == YAML_SCALAR_EVENT
                               ? behind_key(f->path, (const char *)f->event.data.scalar.value)
                               : NULL;
        if (!skip(f) || !next(f))
            return;
        if (rest) {
            f->line = line;
            f->path = rest;
            find_in(f);
            return;
        }
        if (!skip(f))
            return;
    }
}

static void find_in_sequence(struct finder *f)
{
    char number[24];
    for (size_t i = 0; next(f) && f->event.type != YAML_SEQUENCE_END_EVENT; i++) {
        snprintf(number, sizeof number, "%zu", i);
        const char *rest = behind(f->path, "[", number, "]");
        if (rest) {
            f->line = line_here(f);
            f->path = rest;
            find_in(f);
            return;
        }
        if (!skip(f))
            return;
    }
}

/* yaml_parse leaves these out. */
static bool is_nothing(const yaml_event_t *event)
{
    if (event->type != YAML_SCALAR_EVENT || !event->data.scalar.plain_implicit)
        return false;
    json_t *value =
        yaml_scalar((const char *)event->data.scalar.value, event->data.scalar.length, true, NULL);
    bool nothing = json_is_null(value);
    json_decref(value);
    return nothing;
}

size_t yaml_line(const char *text, size_t bytes, size_t document, const char *path)
{
    char dotted[512];
    snprintf(dotted, sizeof dotted, "%s%s", strchr(".[", *path) ? "" : ".", path);
    struct finder f = {.path = dotted};
    if (!yaml_parser_initialize(&f.parser))
        return 0;
    yaml_parser_set_input_string(&f.parser, (const unsigned char *)text, bytes);
    size_t seen = 0;
    while (next(&f) && f.event.type != YAML_STREAM_END_EVENT) {
        if (f.event.type != YAML_DOCUMENT_START_EVENT)
            continue;
        if (!next(&f))
            break;
        if (is_nothing(&f.event))
            continue;
        if (seen++ == document) {
            f.line = line_here(&f);
            find_in(&f);
            break;
        }
        if (!skip(&f))
            break;
    }
    if (f.has_event)
        yaml_event_delete(&f.event);
    yaml_parser_delete(&f.parser);
    return f.line;
}
