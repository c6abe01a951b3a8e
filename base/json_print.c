#include "base/json.h"

#include "base/json_text.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct printer {
    struct str out;
    unsigned style;
    int depth;
};

static void begin_line(struct printer *p)
{
    if (!(p->style & JSON_INDENTED))
        return;
    str_add_bytes(&p->out, "\n", 1);
    for (int i = 0; i < p->depth; i++)
        str_add_bytes(&p->out, "  ", 2);
}

static void print_value(struct printer *p, const struct json *value);

static void print_items(struct printer *p, const struct json *const *items, size_t count,
                        bool is_object)
{
    str_add_bytes(&p->out, is_object ? "{" : "[", 1);
    p->depth++;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            str_add_bytes(&p->out, ",", 1);
        begin_line(p);
        if (is_object) {
            json_text(json_key(items[i]), &p->out);
            str_add(&p->out, p->style & JSON_INDENTED ? ": " : ":");
        }
        print_value(p, items[i]);
    }
    p->depth--;
    if (count > 0)
        begin_line(p);
    str_add_bytes(&p->out, is_object ? "}" : "]", 1);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(json_key(*(const struct json *const *)a),
                  json_key(*(const struct json *const *)b));
}

static void print_collection(struct printer *p, const struct json *value)
{
    bool is_object = json_is_object(value);
    size_t count = is_object ? json_object_count(value) : json_array_count(value), i = 0;
    auto_free const struct json **items = xmalloc(count * sizeof items[0]);
    const struct json *item = is_object ? json_first_member(value) : json_first_item(value);
    for (; item; item = json_next(item))
        items[i++] = item;
    if (is_object && p->style & JSON_SORTED)
        qsort(items, count, sizeof items[0], compare_keys);
    print_items(p, items, count, is_object);
}

static void print_value(struct printer *p, const struct json *value)
{
    switch (json_type_of(value)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        print_collection(p, value);
        break;
    case JSON_STRING:
        json_text(json_as_text(value), &p->out);
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        str_add(&p->out, json_number_text(value));
        break;
    case JSON_TRUE:
        str_add(&p->out, "true");
        break;
    case JSON_FALSE:
        str_add(&p->out, "false");
        break;
    case JSON_NULL:
        str_add(&p->out, "null");
        break;
    }
}

char *json_print(const struct json *value, unsigned style)
{
    struct printer p = {.style = style};
    str_init(&p.out, SIZE_MAX / 2);
    print_value(&p, value);
    /* Texts are kept for long. A copy finds a gap of its size; shrunk in place, it would stay amid
     * free memory that a heap cannot give back. */
    char *text = xstrdup(p.out.text);
    str_free(&p.out);
    return text;
}
