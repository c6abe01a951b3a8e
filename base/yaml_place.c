/* A path cannot be cut into steps without knowing the names, which may hold dots and brackets
 * themselves. So the names that the document has are laid against the path, not the other way
 * round. */
#include "base/yaml_place.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/yaml_scalar.h"

struct search {
    const char *path; /* what is left of it */
    size_t line;      /* of what it has led to so far */
    int depth;        /* of the node that it has led to; below 0: it is over */
};

struct finder {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; valid while has_event */
    bool has_event;
    struct search *searches;
    size_t count, alive;
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

/* Follows those searches at the depth whose path goes on with this step; whether there are any. */
static bool follow(struct finder *f, int depth, const char *key, size_t index, size_t line)
{
    char number[24];
    bool any = false;
    snprintf(number, sizeof number, "%zu", index);
    for (size_t i = 0; i < f->count; i++) {
        struct search *s = &f->searches[i];
        if (s->depth != depth)
            continue;
        const char *rest = key ? behind_key(s->path, key) : behind(s->path, "[", number, "]");
        if (!rest)
            continue;
        *s = (struct search){rest, line, depth + 1};
        any = true;
    }
    return any;
}

static bool find_in(struct finder *f, int depth);

/* Goes through a node that searches were led to, or past one; false: there is
 * nothing more to do. */
static bool visit(struct finder *f, int depth, bool any)
{
    if (!any)
        return skip(f);
    if (!find_in(f, depth + 1))
        return false;
    for (size_t i = 0; i < f->count; i++)
        if (f->searches[i].depth > depth) { /* what is not in there is nowhere else */
            f->searches[i].depth = -1;
            f->alive--;
        }
    return f->alive > 0;
}

static bool find_in_mapping(struct finder *f, int depth)
{
    while (next(f) && f->event.type != YAML_MAPPING_END_EVENT) {
        bool is_scalar = f->event.type == YAML_SCALAR_EVENT;
        const char *key = is_scalar ? (const char *)f->event.data.scalar.value : NULL;
        bool any = key && follow(f, depth, key, 0, line_here(f));
        if (!skip(f) || !next(f) || !visit(f, depth, any))
            return false;
    }
    return f->has_event;
}

static bool find_in_sequence(struct finder *f, int depth)
{
    for (size_t i = 0; next(f) && f->event.type != YAML_SEQUENCE_END_EVENT; i++)
        if (!visit(f, depth, follow(f, depth, NULL, i, line_here(f))))
            return false;
    return f->has_event;
}

/* Goes to the last event of the node that begins with the current one. */
static bool find_in(struct finder *f, int depth)
{
    if (f->event.type == YAML_MAPPING_START_EVENT)
        return find_in_mapping(f, depth);
    if (f->event.type == YAML_SEQUENCE_START_EVENT)
        return find_in_sequence(f, depth);
    return true;
}

/* yaml_parse leaves these out. */
static bool is_nothing(const yaml_event_t *event)
{
    if (event->type != YAML_SCALAR_EVENT || !event->data.scalar.plain_implicit)
        return false;
    struct json *value =
        yaml_scalar((const char *)event->data.scalar.value, event->data.scalar.length, true, NULL);
    bool nothing = json_is_null(value);
    json_free(value);
    return nothing;
}

/* The node of a document begins with the current event. */
static void find_all(struct finder *f)
{
    for (size_t i = 0; i < f->count; i++)
        f->searches[i].line = line_here(f);
    (void)find_in(f, 0);
}

static void find_document(struct finder *f, size_t document)
{
    size_t seen = 0;
    while (next(f) && f->event.type != YAML_STREAM_END_EVENT) {
        if (f->event.type != YAML_DOCUMENT_START_EVENT)
            continue;
        if (!next(f))
            return;
        if (is_nothing(&f->event))
            continue;
        if (seen++ == document) {
            find_all(f);
            return;
        }
        if (!skip(f))
            return;
    }
}

void yaml_lines(const char *text, size_t bytes, size_t document, const char *const *paths,
                size_t count, size_t *ret_lines)
{
    auto_arena struct arena *arena = arena_open();
    struct finder f = {
        .searches = arena_array(arena, struct search, count), .count = count, .alive = count};
    for (size_t i = 0; i < count; i++) {
        const char *dot = strchr(".[", *paths[i]) ? "" : ".";
        f.searches[i].path = arena_printf(arena, "%s%.511s", dot, paths[i]);
    }
    if (count > 0 && yaml_parser_initialize(&f.parser)) {
        yaml_parser_set_input_string(&f.parser, (const unsigned char *)text, bytes);
        find_document(&f, document);
        if (f.has_event)
            yaml_event_delete(&f.event);
        yaml_parser_delete(&f.parser);
    }
    for (size_t i = 0; i < count; i++)
        ret_lines[i] = f.searches[i].line;
}
