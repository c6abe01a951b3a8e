/* JSON text from an API server, which passes on what its users wrote. One user's object must not
 * make everybody's list unreadable, so what our JSON values cannot hold is replaced instead of
 * refused: a NUL character (no C text has one) by U+FFFD, and what is nested deeper than any object
 * of Kubernetes by null. So are lists of names that the caller has no use for: reading them would
 * take longer than the rest. */
#ifndef SHOAL_BASE_JSON_LENIENT_H
#define SHOAL_BASE_JSON_LENIENT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct json;

#define JSON_LENIENT_MAX_DEPTH 256

/* Names of lists, wherever they are, of which null is made; NULL at the end. This one is the larger
 * part of most objects. */
extern const char *const json_managed_fields[];

/* An object or an array, owned by the caller; NULL with ERR_INPUT and where it is wrong. left_out:
 * as above; NULL: all is read. */
struct json *json_parse_lenient(const char *text, size_t bytes, const char *const *left_out,
                                struct error *err);

/* Who takes the items of a list. */
struct json_items {
    const char *const *left_out; /* of them */
    /* What stands before the items, as an object of its own, before they are read; not called if
     * nothing does. NULL: nobody wants it. Borrowed for the call. */
    void (*head)(void *context, const struct json *head);
    void (*item)(void *context, const struct json *item); /* borrowed for the call */
    void *context;
};

/* Reads a list of objects of an API server, {"items": [...], ...}. Each item
 * is read by itself and given out, and the result has none: values of one item at a time are in
 * memory, which is a fraction of those of all. The key "items" must be written as Go does, without
 * blanks; else the result has them, and none is given out. Of a text that is wrong somewhere the
 * items before that place were given out. */
struct json *json_parse_lenient_list(const char *text, size_t bytes, const struct json_items *items,
                                     struct error *err);
#endif
