#include "operator/kube/watch.h"

#include "base/backoff.h"
#include "base/json.h"
#include "base/json_lenient.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PATH         16384
#define MAX_OPTIONS      1000
#define MAX_TOKEN        4096 /* escaped it may be three times as long */
#define MAX_VERSION      128
#define STREAM_TRIES     3
#define REFUSALS         6 /* with their backoffs some seconds */
#define SETTLED_MS       15000
#define HTTP_STATUS_GONE 410

enum state { LIST, LISTING, STREAM, STREAMING }; /* to be sent from due_ms on; in flight */

struct watch {
    struct watch_options options; /* path and selector are owned */
    enum state state;
    int64_t due_ms;
    int64_t rest_until_ms; /* the server asked for it; 0: it never did */
    int64_t opened_ms;     /* the stream */
    int64_t heard_ms;      /* the last line of it, or the list before it */
    char *token;           /* of the next page; NULL: the list begins */
    char *version;         /* from which to watch; NULL before the first list */
    bool in_page;          /* some of the next answer was fed */
    bool ahead;            /* the next page was sent for before this one is fed */
    bool synced;
    bool has_expired; /* a list did before its last page, and none was whole since */
    unsigned list_failures, stream_failures; /* in a row */
    unsigned refusals;                       /* lists that were, since the last good one */
    int64_t failing_since;                   /* 0: it is not */
    struct error failure;
    uint64_t random;
    struct str path;
};

struct watch *watch_open(const struct watch_options *options)
{
    assert(strlen(options->path) + strlen(options->selector) <= MAX_OPTIONS && options->page > 0);
    struct watch *watch = xcalloc(1, sizeof *watch);
    watch->options = *options;
    watch->options.path = xstrdup(options->path);
    watch->options.selector = xstrdup(options->selector);
    watch->due_ms = INT64_MIN;
    watch->random = options->seed;
    str_init(&watch->path, MAX_PATH);
    return watch;
}

void watch_close(struct watch *watch)
{
    if (!watch)
        return;
    free((char *)watch->options.path);
    free((char *)watch->options.selector);
    free(watch->token);
    free(watch->version);
    str_free(&watch->path);
    free(watch);
}

/* ---- requests ---- */

static void stream_succeeded(struct watch *watch)
{
    watch->stream_failures = 0;
    watch->failing_since = 0;
}

/* "&name=value" with what RFC 3986 does not call unreserved as %XX. */
static void add_parameter(struct str *path, const char *name, const char *value)
{
    static const char unreserved[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    if (!value || !*value)
        return;
    str_printf(path, "&%s=", name);
    for (const char *c = value; *c; c++)
        str_printf(path, strchr(unreserved, *c) ? "%c" : "%%%02X", (unsigned char)*c);
}

/* Pages that expire again and again before the last one are asked for as one list: that has no
 * token that could expire. */
static int page_of(const struct watch *watch)
{
    enum { NO_LIMIT = 0, TRIES = 2 };
    bool pages_expire = watch->has_expired && watch->list_failures >= TRIES;
    return pages_expire ? NO_LIMIT : watch->options.page;
}

/* The page that begins at `token`; NULL: the first one. */
static void set_list_path(struct watch *watch, const char *token)
{
    str_clear(&watch->path);
    /* Without resourceVersion a list is consistent with etcd ("Most Recent" in the API concepts).
     * With resourceVersion=0 a lagging API server could show what was deleted long ago. */
    str_printf(&watch->path, "%s?limit=%d", watch->options.path, page_of(watch));
    add_parameter(&watch->path, "continue", token);
    add_parameter(&watch->path, "labelSelector", watch->options.selector);
    assert(!watch->path.truncated);
}

static void set_stream_path(struct watch *watch)
{
    str_clear(&watch->path);
    /* A bookmark carries nothing but a newer resourceVersion. Without bookmarks the version of a
     * quiet kind grows older than etcd's compaction (five minutes). Each reconnect would then end
     * in 410 and a list. */
    str_printf(&watch->path, "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%d",
               watch->options.path, watch->options.timeout_s);
    add_parameter(&watch->path, "resourceVersion", watch->version);
    add_parameter(&watch->path, "labelSelector", watch->options.selector);
    assert(!watch->path.truncated);
}

enum watch_action watch_next(struct watch *watch, int64_t now_ms, const char **ret_path)
{
    /* Nobody reports that a stream has settled: a kind that does not change sends no line for a
     * minute. So the next look at the clock counts it as success. */
    bool list = watch->state == LIST;
    if (watch->state == STREAMING && now_ms - watch->opened_ms >= SETTLED_MS)
        stream_succeeded(watch);
    if (now_ms < watch_due(watch))
        return WATCH_ACTION_NOTHING;
    if (list) {
        set_list_path(watch, watch->token);
    } else {
        set_stream_path(watch);
        watch->opened_ms = now_ms;
    }
    watch->state = list ? LISTING : STREAMING;
    *ret_path = str_text(&watch->path);
    return list ? WATCH_ACTION_LIST : WATCH_ACTION_STREAM;
}

int64_t watch_due(const struct watch *watch)
{
    return watch->state == LIST || watch->state == STREAM ? watch->due_ms : INT64_MAX;
}

static void plan(struct watch *watch, enum state state, int64_t due_ms)
{
    watch->state = state;
    watch->due_ms = due_ms;
}

/* ---- failures ---- */

/* When to try again after the last of `failures`. That the past is gone is no failure of the
 * server, unless it says so twice in a row. The server tells many clients the same time, so each
 * adds its backoff. */
static int64_t retry_ms(struct watch *watch, unsigned failures, const struct error *err,
                        int64_t asked_ms, int64_t now_ms)
{
    if (err->code == ERR_GONE && failures == 1)
        return now_ms;
    if (watch->failing_since == 0)
        watch->failing_since = now_ms ? now_ms : 1;
    watch->failure = *err;
    watch->rest_until_ms = now_ms + asked_ms;
    return watch->rest_until_ms + backoff_ms(watch->options.backoff_first_ms,
                                             watch->options.backoff_max_ms, failures,
                                             &watch->random);
}

/* Smaller pages, from here on for good: what is large now will be so in the next list. */
static void halve_page(struct watch *watch, const struct error *err, int64_t now_ms)
{
    watch->options.page /= 2;
    struct error less = *err;
    error_wrap(&less, "%d objects a page from now on", watch->options.page);
    watch->options.warn(watch->options.context, less.msg);
    watch->has_expired = false; /* it may have been one list, for that reason */
    plan(watch, LIST, now_ms);
}

static void list_failed(struct watch *watch, const struct error *err, int64_t asked_ms,
                        int64_t now_ms)
{
    /* A continue token names a revision of etcd and expires with it (410). The pages that were read
     * are no use then: the list begins anew. */
    watch->has_expired = watch->has_expired || (watch->token && err->code == ERR_GONE);
    if (err->code == ERR_GONE || err->code == ERR_INPUT)
        free(take(watch->token));
    if (err->code == ERR_LIMIT && watch->options.page > 1) {
        halve_page(watch, err, now_ms);
        return;
    }
    watch->refusals += err->code == ERR_FORBIDDEN;
    plan(watch, LIST, retry_ms(watch, ++watch->list_failures, err, asked_ms, now_ms));
}

static void stream_failed(struct watch *watch, const struct error *err, int64_t asked_ms,
                          int64_t now_ms)
{
    int64_t due_ms = retry_ms(watch, ++watch->stream_failures, err, asked_ms, now_ms);
    /* The stream cannot be resumed behind an event that could not be read: its version is unknown.
     * Only a list shows what it said. */
    bool lost = err->code == ERR_GONE || err->code == ERR_INPUT;
    plan(watch, lost || watch->stream_failures >= STREAM_TRIES ? LIST : STREAM, due_ms);
}

/* ---- lists ---- */

/* The text at `key`, NULL if there is none, it is empty or longer than `most` bytes. */
static const char *text_at(const struct json *object, const char *key, size_t most)
{
    const char *text = json_as_text(json_get(object, key));
    return text && *text && strlen(text) <= most ? text : NULL;
}

static void set_text(char **text, const char *value)
{
    free(*text);
    *text = value ? xstrdup(value) : NULL;
}

/* Only the first page begins a list: objects that no page of it named are deleted at its end. */
static void begin_page(struct watch *watch)
{
    if (!watch->token && !watch->in_page)
        watch->options.begin_list(watch->options.context);
    watch->in_page = true;
}

static const char *token_of(const struct json *page)
{
    return text_at(json_get(page, "metadata"), "continue", MAX_TOKEN);
}

const char *watch_feed_head(struct watch *watch, const struct json *head)
{
    assert(watch->state == LISTING && !watch->ahead);
    const char *token = token_of(head);
    if (!token)
        return NULL;
    set_list_path(watch, token);
    watch->ahead = true;
    return str_text(&watch->path);
}

void watch_feed_item(struct watch *watch, const struct json *item)
{
    assert(watch->state == LISTING);
    begin_page(watch);
    if (json_is_object(item))
        watch->options.put(watch->options.context, item);
    else
        watch->options.warn(watch->options.context, "an item of the list is no object");
}

/* A list says nothing of a stream that has failed: one may be allowed to list and not to watch, or
 * each stream may break at the same event. */
static void list_succeeded(struct watch *watch)
{
    watch->list_failures = 0;
    if (watch->stream_failures == 0)
        watch->failing_since = 0;
}

/* Go writes an empty list as [] or null; one that is not there at all is no list. */
static bool is_page(const struct json *answer)
{
    const struct json *items = json_get(answer, "items");
    const struct json *metadata = json_get(answer, "metadata");
    const char *token = json_as_text(json_get(metadata, "continue"));
    return (json_is_array(items) || json_is_null(items)) &&
           text_at(metadata, "resourceVersion", MAX_VERSION) &&
           (!token || strlen(token) <= MAX_TOKEN);
}

bool watch_feed_list(struct watch *watch, const struct json *answer, const struct error *err,
                     int64_t asked_ms, int64_t now_ms)
{
    assert(watch->state == LISTING);
    bool ahead = watch->ahead;
    watch->ahead = false;
    struct error unreadable;
    if (answer && !is_page(answer)) {
        error_set(&unreadable, ERR_INPUT, "GET %s: the answer is no list of objects",
                  watch->options.path);
        answer = NULL;
        err = &unreadable;
    }
    if (!answer) {
        watch->in_page = false;
        list_failed(watch, err, asked_ms, now_ms);
        return false;
    }
    struct json *item;
    begin_page(watch);
    json_each_item(item, json_get(answer, "items")) {
        watch_feed_item(watch, item);
    }
    watch->in_page = false;
    set_text(&watch->token, token_of(answer));
    watch->refusals = 0;
    if (!watch->token)
        watch->has_expired = false;
    if (!watch->has_expired) /* the first page of a list that expires is no success */
        list_succeeded(watch);
    if (watch->token) {
        if (!ahead)
            plan(watch, LIST, now_ms);
        return ahead;
    }
    /* All pages of a list have the version of its first one, so the watch misses nothing that
     * happened while the pages were read. */
    const struct json *metadata = json_get(answer, "metadata");
    set_text(&watch->version, text_at(metadata, "resourceVersion", MAX_VERSION));
    watch->options.end_list(watch->options.context);
    watch->synced = true;
    watch->heard_ms = now_ms;
    plan(watch, STREAM, now_ms);
    return false;
}

/* ---- streams ---- */

/* Takes one event; -1: the stream has failed with it. */
static int take_event(struct watch *watch, const struct json *event, struct error *err)
{
    const char *type = json_as_text(json_get(event, "type"));
    const struct json *object = json_get(event, "object");
    if (!type || !json_is_object(object))
        return error_set(err, ERR_INPUT, "watch of %s: an event without type or object",
                         watch->options.path);
    /* The answer's status was 200 long ago: what goes wrong later, an expired version above all,
     * comes as an event with a metav1.Status. */
    if (strcmp(type, "ERROR") == 0) {
        int64_t code = json_as_integer(json_get(object, "code"));
        const char *message = json_as_text(json_get(object, "message"));
        return error_set(err, code == HTTP_STATUS_GONE ? ERR_GONE : ERR_IO,
                         "watch of %s: %s (status %" PRId64 ")", watch->options.path,
                         message ? message : "an error without message", code);
    }
    const char *version = text_at(json_get(object, "metadata"), "resourceVersion", MAX_VERSION);
    if (!version)
        return error_set(err, ERR_INPUT, "watch of %s: %.20s event without resourceVersion",
                         watch->options.path, type);
    if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        watch->options.put(watch->options.context, object);
    else if (strcmp(type, "DELETED") == 0)
        watch->options.remove(watch->options.context, object);
    else if (strcmp(type, "BOOKMARK") != 0)
        return error_set(err, ERR_INPUT, "watch of %s: an event of unknown type \"%.20s\"",
                         watch->options.path, type);
    set_text(&watch->version, version);
    return 0;
}

bool watch_feed_line(struct watch *watch, const char *line, size_t bytes, int64_t now_ms)
{
    if (watch->state != STREAMING)
        return false;
    watch->heard_ms = now_ms;
    struct error err = {0};
    const char *const *left_out = watch->options.whole_events ? NULL : watch->options.left_out;
    struct json *event = json_parse_lenient(line, bytes, left_out, &err);
    int result =
        event ? take_event(watch, event, &err)
              : error_wrap(&err, "watch of %s: an event that is no JSON", watch->options.path);
    json_free(event);
    if (result == 0) {
        stream_succeeded(watch);
        return true;
    }
    stream_failed(watch, &err, 0, now_ms);
    return false;
}

void watch_feed_end(struct watch *watch, const struct error *err, int64_t asked_ms, int64_t now_ms)
{
    assert(watch->state == STREAMING);
    if (err->code != ERR_NONE) {
        stream_failed(watch, err, asked_ms, now_ms);
        return;
    }
    stream_succeeded(watch);
    /* A server or proxy that ends each stream at once, without an error, must not make us ask in a
     * loop. */
    int64_t earliest_ms = watch->opened_ms + watch->options.backoff_first_ms;
    plan(watch, STREAM, now_ms > earliest_ms ? now_ms : earliest_ms);
}

bool watch_relist_if_silent(struct watch *watch, int64_t since_ms, int64_t now_ms)
{
    return watch->state == STREAMING && watch->heard_ms < since_ms && watch_relist(watch, now_ms);
}

bool watch_relist(struct watch *watch, int64_t now_ms)
{
    if (watch_is_listing(watch))
        return false;
    bool rests = watch->state == STREAM && now_ms < watch->rest_until_ms;
    plan(watch, LIST, rests ? watch->due_ms : now_ms);
    return true;
}

/* ---- what people ask ---- */

bool watch_is_synced(const struct watch *watch)
{
    return watch->synced;
}

bool watch_is_refused(const struct watch *watch)
{
    return watch->refusals >= REFUSALS && watch->failure.code == ERR_FORBIDDEN;
}

bool watch_is_listing(const struct watch *watch)
{
    return watch->state == LIST || watch->state == LISTING;
}

bool watch_is_behind(const struct watch *watch, const struct json *object)
{
    int64_t told, asked;
    const char *version = text_at(json_get(object, "metadata"), "resourceVersion", MAX_VERSION);
    return watch->version && version && str_to_i64(watch->version, 0, INT64_MAX, &told) &&
           str_to_i64(version, 0, INT64_MAX, &asked) && told < asked;
}

int64_t watch_failing_since(const struct watch *watch, const struct error **ret_err)
{
    *ret_err = watch->failing_since ? &watch->failure : NULL;
    return watch->failing_since;
}
