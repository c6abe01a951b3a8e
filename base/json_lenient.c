#include "base/json_lenient.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* An escaped NUL, and what takes its place: as long. */
#define NUL         "\\u0000"
#define REPLACEMENT "\\ufffd"

/* As Go writes it: the list that is given out. */
#define ITEMS "\"items\":["

enum { ROOT = 1, OF_ITEMS = 2 /* the depth inside the outermost object, and inside its items */ };

/* Copies a text, without what is left out. */
struct sanitizer {
    const char *text;
    size_t bytes, at;
    char *out; /* has room: the shortest that "null" takes the place of is {} */
    size_t length;
    int depth;
    int most; /* what is nested deeper is left out */
    const char *const *left_out;
    /* A list's items are given out, and dropped from `out` again, as soon as they are read. */
    const struct json_items *takes; /* NULL: nobody */
    size_t item_at;                 /* where in `out` the next one begins; 0: not among the items */
    size_t items;                   /* so far */
    bool headed;                    /* what stands before them was given out */
    bool failed;                    /* one is no JSON */
    struct error *err;
};

static bool stands_here(const struct sanitizer *s, const char *what)
{
    size_t bytes = strlen(what);
    return s->bytes - s->at >= bytes && memcmp(s->text + s->at, what, bytes) == 0;
}

static void write(struct sanitizer *s, const char *bytes, size_t count)
{
    if (s->depth > s->most)
        return;
    memcpy(s->out + s->length, bytes, count);
    s->length += count;
}

/* Takes the escape at a backslash. */
static void take_escape(struct sanitizer *s)
{
    bool nul = stands_here(s, NUL);
    size_t left = s->bytes - s->at, count = nul ? strlen(NUL) : left < 2 ? left : 2;
    write(s, nul ? REPLACEMENT : s->text + s->at, count);
    s->at += count;
}

/* Takes a string from quote to quote. */
static void take_string(struct sanitizer *s)
{
    size_t start = s->at++;
    for (;;) {
        while (s->at < s->bytes && s->text[s->at] != '"' && s->text[s->at] != '\\')
            s->at++;
        bool escape = s->at < s->bytes && s->text[s->at] == '\\';
        s->at += s->at < s->bytes && !escape;
        write(s, s->text + start, s->at - start);
        if (!escape)
            return;
        take_escape(s);
        start = s->at;
    }
}

static bool is_blank(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!memchr(" \t\r\n", text[i], 4)) /* not strchr: it finds a NUL */
            return false;
    return true;
}

static void give_item(struct sanitizer *s)
{
    size_t bytes = s->length - s->item_at;
    struct json *item = json_parse(s->out + s->item_at, bytes, JSON_ALLOW_SCALAR, s->err);
    s->length = s->item_at;
    if (!item) {
        s->failed = true;
        error_wrap(s->err, "item %zu of the list", s->items);
        return;
    }
    s->takes->item(s->takes->context, item);
    json_free(item);
    s->items++;
}

/* Whoever takes the head may send for the next page, which is on its way while this one is read. */
static void give_head(struct sanitizer *s)
{
    char *last = s->out + s->length - 1;
    if (s->headed || !s->takes->head || *last != ',')
        return;
    struct error wrong; /* the end of the list tells it */
    *last = '}';
    struct json *head = json_parse(s->out, s->length, JSON_STRICT, &wrong);
    *last = ',';
    if (head)
        s->takes->head(s->takes->context, head);
    json_free(head);
    s->headed = true;
}

static void take_opening(struct sanitizer *s)
{
    s->depth++;
    if (s->depth == s->most + 1) {
        memcpy(s->out + s->length, "null", 4);
        s->length += 4;
    }
    write(s, s->text + s->at++, 1);
    if (s->item_at && s->depth == OF_ITEMS)
        s->item_at = s->length;
}

static void take_closing(struct sanitizer *s)
{
    if (s->item_at && s->depth == OF_ITEMS) {
        if (s->items || !is_blank(s->out + s->item_at, s->length - s->item_at))
            give_item(s);
        s->item_at = 0;
    }
    write(s, s->text + s->at++, 1);
    if (--s->depth == s->most)
        s->most = JSON_LENIENT_MAX_DEPTH;
}

static void take_other(struct sanitizer *s)
{
    if (s->item_at && s->depth == OF_ITEMS && s->text[s->at] == ',')
        give_item(s);
    else
        write(s, s->text + s->at, 1);
    s->at++;
}

/* Whether the key of a list that is left out stands here, as Go writes it. */
static bool is_left_out(const struct sanitizer *s)
{
    static const char behind[] = "\":[";
    const char *key = s->text + s->at + 1;
    size_t left = s->bytes - s->at - 1;
    for (const char *const *name = s->left_out; left && name && *name; name++) {
        if (**name != *key) /* as mostly */
            continue;
        size_t length = strlen(*name);
        if (left >= length + strlen(behind) && memcmp(key, *name, length) == 0 &&
            memcmp(key + length, behind, strlen(behind)) == 0)
            return true;
    }
    return false;
}

/* What the key that stands here says of its value. */
static void look_at_key(struct sanitizer *s)
{
    if (s->depth < s->most && is_left_out(s))
        s->most = s->depth;
    if (s->takes && s->depth == ROOT && !s->items && stands_here(s, ITEMS)) {
        give_head(s);
        s->item_at = s->length;
    }
}

static void sanitize(struct sanitizer *s)
{
    while (s->at < s->bytes && !s->failed) {
        switch (s->text[s->at]) {
        case '"':
            look_at_key(s);
            take_string(s);
            break;
        case '{':
        case '[':
            take_opening(s);
            break;
        case '}':
        case ']':
            take_closing(s);
            break;
        default:
            take_other(s);
        }
    }
}

static struct json *parse(struct sanitizer *s)
{
    s->most = JSON_LENIENT_MAX_DEPTH;
    s->out = xmalloc(2 * s->bytes + 1);
    sanitize(s);
    struct json *value = s->failed ? NULL : json_parse(s->out, s->length, JSON_STRICT, s->err);
    free(s->out);
    return value;
}

const char *const json_managed_fields[] = {"managedFields", NULL};

struct json *json_parse_lenient(const char *text, size_t bytes, const char *const *left_out,
                                struct error *err)
{
    return parse(
        &(struct sanitizer){.text = text, .bytes = bytes, .left_out = left_out, .err = err});
}

struct json *json_parse_lenient_list(const char *text, size_t bytes, const struct json_items *items,
                                     struct error *err)
{
    return parse(&(struct sanitizer){
        .text = text, .bytes = bytes, .left_out = items->left_out, .takes = items, .err = err});
}
