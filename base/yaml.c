/* libyaml's parser gives events; a recursive descent over them builds JSON values. An alias is a
 * copy of the value of its anchor, and counts with its full size, so that a document of a thousand
 * lines cannot become gigabytes. */
#include "base/yaml.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/yaml_hint.h"
#include "base/yaml_scalar.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct anchor {
    char *name;
    struct json *value; /* NULL while it is being read */
    size_t nodes;
};

struct reader {
    yaml_parser_t parser;
    const char *text;
    size_t bytes;
    const char *source;
    struct error *err;
    yaml_event_t event; /* the current one; valid while has_event */
    bool has_event;
    size_t nodes;
    struct anchor *anchors; /* of the current document */
    size_t anchor_count;
};

static int fail_at(struct reader *r, yaml_mark_t mark, const char *what, const char *detail)
{
    return error_set(r->err, ERR_INPUT, "%s:%zu:%zu: %s%s%s", r->source, mark.line + 1,
                     mark.column + 1, what, *detail ? ": " : "", detail);
}

static int fail_here(struct reader *r, const char *what, const char *detail)
{
    return fail_at(r, r->event.start_mark, what, detail);
}

/* For faults of the form, where the line itself may show what happened. */
static int fail_form(struct reader *r, yaml_mark_t mark, const char *what, const char *detail)
{
    const char *hint = yaml_hint_line(r->text, r->bytes, mark.line);
    return hint ? fail_at(r, mark, hint, "") : fail_at(r, mark, what, detail);
}

static int next(struct reader *r)
{
    if (r->has_event)
        yaml_event_delete(&r->event);
    r->has_event = yaml_parser_parse(&r->parser, &r->event);
    if (r->has_event)
        return 0;
    const yaml_parser_t *parser = &r->parser;
    yaml_mark_t mark = parser->problem_mark;
    if (parser->error == YAML_READER_ERROR) {
        const char *kind = yaml_hint_kind(r->text, r->bytes);
        if (kind)
            return error_set(r->err, ERR_INPUT, "%s: %s", r->source, kind);
        return error_set(r->err, ERR_INPUT, "%s: byte %zu: not text in UTF-8: %s", r->source,
                         parser->problem_offset, parser->problem);
    }
    /* a simple key without its colon is noticed on a later line only */
    if (parser->context && !yaml_hint_line(r->text, r->bytes, mark.line) &&
        yaml_hint_line(r->text, r->bytes, parser->context_mark.line))
        mark = parser->context_mark;
    return fail_form(r, mark, parser->context ? parser->context : "not valid YAML",
                     parser->problem ? parser->problem : "");
}

static int count_nodes(struct reader *r, size_t nodes)
{
    r->nodes += nodes;
    if (r->nodes > YAML_MAX_NODES)
        return fail_here(r, "too much: the limit is 200000 values, aliases expanded", "");
    return 0;
}

static void forget_anchors(struct reader *r)
{
    for (size_t i = 0; i < r->anchor_count; i++) {
        free(r->anchors[i].name);
        json_free(r->anchors[i].value);
    }
    free(r->anchors);
    r->anchors = NULL;
    r->anchor_count = 0;
}

/* An anchor may be given again; the last one before the alias counts. */
static int begin_anchor(struct reader *r, const yaml_char_t *name)
{
    if (r->anchor_count == YAML_MAX_ANCHORS)
        return fail_here(r, "too many anchors: the limit is 1000", "");
    r->anchors = xrealloc(r->anchors, (r->anchor_count + 1) * sizeof *r->anchors);
    r->anchors[r->anchor_count++] = (struct anchor){.name = xstrdup((const char *)name)};
    return 0;
}

static int read_alias(struct reader *r, struct json **ret_value)
{
    const char *name = (const char *)r->event.data.alias.anchor;
    for (size_t i = r->anchor_count; i-- > 0;) {
        const struct anchor *anchor = &r->anchors[i];
        if (strcmp(anchor->name, name) != 0)
            continue;
        if (!anchor->value)
            return fail_here(r, "an alias within the value it stands for", name);
        if (count_nodes(r, anchor->nodes))
            return -1;
        *ret_value = json_clone(anchor->value);
        return 0;
    }
    return fail_here(r, "unknown alias", name);
}

static int read_node(struct reader *r, int depth, struct json **ret_value);

static int read_scalar(struct reader *r, struct json **ret_value)
{
    bool plain = r->event.data.scalar.plain_implicit;
    const char *tag = plain ? NULL : (const char *)r->event.data.scalar.tag;
    *ret_value = yaml_scalar((const char *)r->event.data.scalar.value, r->event.data.scalar.length,
                             plain, tag);
    if (!*ret_value)
        return fail_here(r, tag ? "a value that does not fit its tag" : "not text", tag ? tag : "");
    return 0;
}

static int read_sequence(struct reader *r, int depth, struct json *array)
{
    for (;;) {
        if (next(r))
            return -1;
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return 0;
        struct json *item = NULL;
        if (read_node(r, depth + 1, &item))
            return -1;
        json_append(array, item);
    }
}

/* Moves members that the object lacks. */
static void move_missing(struct json *object, struct json *from)
{
    for (struct json *member = json_first_member(from), *following; member; member = following) {
        following = json_next(member);
        if (!json_get(object, json_key(member)))
            json_set(object, json_key(member), json_take(from, json_key(member)));
    }
}

/* Adds what the mapping does not say itself. `merges` holds mappings, or sequences of mappings in
 * which the earlier one wins, and is left without what was taken. */
static int merge(struct reader *r, struct json *object, const struct json *merges)
{
    struct json *from;
    json_each_item(from, merges) {
        if (json_is_array(from)) {
            if (merge(r, object, from))
                return -1;
            continue;
        }
        if (!json_is_object(from))
            return fail_here(r, "<< takes a mapping or a list of mappings", "");
        if (count_nodes(r, json_object_count(from)))
            return -1;
        move_missing(object, from);
    }
    return 0;
}

static int read_entry(struct reader *r, int depth, struct json *object, struct json *merges)
{
    if (r->event.type != YAML_SCALAR_EVENT)
        return fail_form(r, r->event.start_mark, "a key must be text", "");
    bool plain = r->event.data.scalar.plain_implicit;
    auto_free char *key = yaml_scalar_key((const char *)r->event.data.scalar.value,
                                          r->event.data.scalar.length, plain);
    if (!key)
        return fail_form(r, r->event.start_mark, "a key must be text", "");
    /* The merge key of YAML 1.1 (yaml.org/type/merge.html): only if it is plain, and merged at the
     * end, as the mapping's own keys win wherever they stand. */
    bool is_merge = plain && strcmp(key, "<<") == 0;
    if (!is_merge && json_get(object, key))
        return fail_here(r, "this key is there twice", key);
    if (next(r))
        return -1;
    struct json *value = NULL;
    if (read_node(r, depth + 1, &value))
        return -1;
    if (is_merge)
        json_append(merges, value);
    else
        json_set(object, key, value);
    return 0;
}

static int read_mapping(struct reader *r, int depth, struct json *object)
{
    struct json *merges = json_new_array();
    int result = 0;
    while (result == 0) {
        result = next(r);
        if (result || r->event.type == YAML_MAPPING_END_EVENT)
            break;
        result = read_entry(r, depth, object, merges);
    }
    if (result == 0)
        result = merge(r, object, merges);
    json_free(merges);
    return result;
}

static int read_collection(struct reader *r, int depth, struct json **ret_value)
{
    bool mapping = r->event.type == YAML_MAPPING_START_EVENT;
    if (depth >= YAML_MAX_DEPTH)
        return fail_here(r, "nested too deep: the limit is 64", "");
    struct json *value = mapping ? json_new_object() : json_new_array();
    int result = mapping ? read_mapping(r, depth, value) : read_sequence(r, depth, value);
    if (result)
        json_free(value);
    else
        *ret_value = value;
    return result;
}

/* Reads the value that begins with the current event; afterwards its last event is current. */
static int read_node(struct reader *r, int depth, struct json **ret_value)
{
    const yaml_char_t *name = NULL;
    switch (r->event.type) {
    case YAML_ALIAS_EVENT:
        return read_alias(r, ret_value);
    case YAML_SCALAR_EVENT:
        name = r->event.data.scalar.anchor;
        break;
    case YAML_SEQUENCE_START_EVENT:
        name = r->event.data.sequence_start.anchor;
        break;
    default:
        assert(r->event.type == YAML_MAPPING_START_EVENT);
        name = r->event.data.mapping_start.anchor;
        break;
    }
    size_t before = r->nodes, anchor = r->anchor_count;
    bool named = name != NULL; /* the name itself goes with the event */
    if (count_nodes(r, 1) || (named && begin_anchor(r, name)))
        return -1;
    int result = r->event.type == YAML_SCALAR_EVENT ? read_scalar(r, ret_value)
                                                    : read_collection(r, depth, ret_value);
    if (result == 0 && named) {
        r->anchors[anchor].value = json_clone(*ret_value);
        r->anchors[anchor].nodes = r->nodes - before;
    }
    return result;
}

static int read_document(struct reader *r, struct json *documents)
{
    if (json_array_count(documents) == YAML_MAX_DOCUMENTS)
        return fail_here(r, "too many documents: the limit is 256", "");
    struct json *value = NULL;
    if (next(r) || read_node(r, 0, &value))
        return -1;
    /* An empty document, as "---" at the end of a file leaves one: kubectl skips it, too. */
    if (json_is_null(value))
        json_free(value);
    else
        json_append(documents, value);
    forget_anchors(r);
    return next(r);
}

static int read_stream(struct reader *r, struct json *documents)
{
    for (;;) {
        if (next(r))
            return -1;
        if (r->event.type == YAML_STREAM_END_EVENT)
            return 0;
        if (r->event.type == YAML_DOCUMENT_START_EVENT && read_document(r, documents))
            return -1;
    }
}

int yaml_parse(const char *text, size_t bytes, const char *source, struct json **ret_documents,
               struct error *err)
{
    struct reader r = {.text = text, .bytes = bytes, .source = source, .err = err};
    if (bytes > YAML_MAX_BYTES)
        return error_set(err, ERR_INPUT, "%s: %zu bytes are too much: the limit is %d", source,
                         bytes, YAML_MAX_BYTES);
    if (yaml_hint_is_page(text, bytes))
        return error_set(err, ERR_INPUT,
                         "%s: this is an HTML page, not YAML: fetch the file itself (of GitHub, "
                         "its raw address)",
                         source);
    if (!yaml_parser_initialize(&r.parser))
        return error_set(err, ERR_MEMORY, "%s: no memory for a YAML parser", source);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, bytes);
    struct json *documents = json_new_array();
    int result = read_stream(&r, documents);
    if (r.has_event)
        yaml_event_delete(&r.event);
    forget_anchors(&r);
    yaml_parser_delete(&r.parser);
    if (result)
        json_free(documents);
    else
        *ret_documents = documents;
    return result;
}
