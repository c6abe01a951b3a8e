/* cJSON's parser behind a stricter one. Numbers reach cJSON as strings that begin with a byte which
 * UTF-8 never has: cJSON would make doubles of them, and lose what a double cannot hold. A NUL,
 * that ends a C text, reaches it as two bytes that UTF-8 never has. */
#include "base/json.h"

#include "base/json_index.h"
#include "base/json_scan.h"
#include "base/mem.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#define NUMBER_MARK '\xff'
#define NUL_ESCAPE  "\\u0000"
#define NUL_BYTES   "\xc0\x80"

/* ---- what cJSON is given ---- */

/* Copies a string with its quotes; returns its bytes, and how many were written. An escape may be
 * the last before the end of `text`: strncmp reads no further than the first difference. */
static size_t copy_string(const char *text, char *out, size_t *ret_written)
{
    size_t at = 1, written = 1;
    out[0] = '"';
    while (text[at] != '"') {
        if (text[at] != '\\') {
            out[written++] = text[at++];
        } else if (strncmp(text + at, NUL_ESCAPE, strlen(NUL_ESCAPE)) == 0) {
            memcpy(out + written, NUL_BYTES, strlen(NUL_BYTES));
            written += strlen(NUL_BYTES);
            at += strlen(NUL_ESCAPE);
        } else {
            out[written++] = text[at++];
            out[written++] = text[at++];
        }
    }
    out[written++] = '"';
    *ret_written = written;
    return at + 1;
}

static size_t copy_number(const char *text, size_t bytes, char *out)
{
    size_t length = 1;
    while (length < bytes && (isalnum((unsigned char)text[length]) || strchr("+-.", text[length])))
        length++;
    out[0] = '"';
    out[1] = NUMBER_MARK;
    memcpy(out + 2, text, length);
    out[2 + length] = '"';
    return length;
}

/* Of NaN, Infinity or -Infinity: no other word outside of strings begins so; 0: it is none. */
static size_t nan_length(const char *text)
{
    return text[0] == 'N'                     ? strlen("NaN")
           : text[0] == 'I'                   ? strlen("Infinity")
           : text[0] == '-' && text[1] == 'I' ? strlen("-Infinity")
                                              : 0;
}

/* `text` is JSON. Returns it with numbers and NULs as cJSON is to see them. */
static char *rewrite(const char *text, size_t bytes, const struct json_census *census,
                     size_t *ret_bytes)
{
    char *out = xmalloc(bytes + 3 * census->numbers + census->nans);
    size_t length = 0;
    for (size_t at = 0; at < bytes;) {
        size_t nan = census->nans > 0 ? nan_length(text + at) : 0;
        if (nan > 0) {
            memcpy(out + length, "null", 4);
            length += 4;
            at += nan;
        } else if (text[at] == '"') {
            size_t written;
            at += copy_string(text + at, out + length, &written);
            length += written;
        } else if (text[at] == '-' || isdigit((unsigned char)text[at])) {
            size_t taken = copy_number(text + at, bytes - at, out + length);
            at += taken;
            length += taken + 3;
        } else {
            out[length++] = text[at++];
        }
    }
    *ret_bytes = length;
    return out;
}

/* ---- what cJSON made of it ---- */

struct walk {
    bool allow_duplicates;
    size_t keys; /* so far */
};

static int settle(struct walk *w, cJSON *value);

/* Takes stock of the items; -1: the newest key is there twice. */
static int settle_items(struct walk *w, cJSON *collection)
{
    for (cJSON *item = collection->child; item; item = item->next) {
        cJSON *old = json_index_take(collection, item);
        if (old && !w->allow_duplicates)
            return -1;
        if (old) {
            json_index_detach(collection, old);
            cJSON_Delete(old);
            json_index_take(collection, item);
        }
        w->keys += item->string != NULL;
        if (settle(w, item))
            return -1;
    }
    return 0;
}

/* Gives a number its text, an object or array its index. */
static int settle(struct walk *w, cJSON *value)
{
    if (cJSON_IsArray(value) || cJSON_IsObject(value))
        return settle_items(w, value);
    if (cJSON_IsString(value) && value->valuestring[0] == NUMBER_MARK) {
        value->type = cJSON_Raw;
        memmove(value->valuestring, value->valuestring + 1, strlen(value->valuestring));
    }
    return 0;
}

struct json *json_parse(const char *text, size_t bytes, unsigned allow, struct error *err)
{
    struct error unasked = {0};
    struct json_census census;
    err = err ? err : &unasked;
    if (json_scan(text, bytes, allow, &census, err))
        return NULL;
    auto_free char *rewritten = NULL;
    const char *source = text;
    size_t source_bytes = bytes;
    if (census.numbers || census.has_nul || census.nans)
        source = rewritten = rewrite(text, bytes, &census, &source_bytes);
    cJSON *root = cJSON_ParseWithLength(source, source_bytes);
    assert(root); /* it takes all that json_scan does */
    struct walk walk = {.allow_duplicates = allow & JSON_ALLOW_DUPLICATES};
    if (settle(&walk, root)) {
        cJSON_Delete(root);
        json_scan_duplicate(text, bytes, walk.keys, err);
        return NULL;
    }
    return (struct json *)root;
}

struct json *json_parse_text(const char *text, unsigned allow, struct error *err)
{
    return text ? json_parse(text, strlen(text), allow, err) : NULL;
}
