/* One list-and-watch as a pure state machine, by the protocol of
 * kubernetes.io/docs/reference/using-api/api-concepts, "Efficient detection of changes": list in
 * pages, watch from the list's resourceVersion with bookmarks, list again after 410 Gone. The
 * caller feeds bytes and errors and gets the next request to send. No I/O, no clock.
 *
 * list (pages) -> stream <-> stream again after a backoff -> list, after 410
 *
 * A failed request is retried from where it was, after a backoff with jitter and the time that the
 * server asked for. It is failing from the failure on, not from the end of that time. After three
 * failures in a row a stream is replaced by a list. now_ms is a clock that does not jump. */
#ifndef SHOAL_OPERATOR_KUBE_WATCH_H
#define SHOAL_OPERATOR_KUBE_WATCH_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct watch;

struct watch_options {
    const char *path;     /* of the collection, without query, e.g. "/api/v1/pods" */
    const char *selector; /* labelSelector, unescaped; "" for none */
    int page;             /* objects per page, e.g. 500; halved when a page is too large */
    int timeout_s;        /* timeoutSeconds of each watch request, e.g. 290 */
    int64_t backoff_first_ms, backoff_max_ms;
    uint64_t seed;               /* of the jitter */
    const char *const *left_out; /* of the objects, as in json_lenient.h; static */
    bool whole_events;           /* nothing is left out of the objects of events */
    /* Called from within watch_feed_*. `object` is borrowed. */
    void (*begin_list)(
        void *context); /* a list begins: objects not put until end_list do not exist */
    void (*put)(void *context, const struct json *object);
    void (*remove)(void *context, const struct json *object);
    void (*end_list)(void *context);
    /* A malformed object was skipped, or a page was too large. */
    void (*warn)(void *context, const char *message);
    void *context;
};

enum watch_action {
    WATCH_ACTION_NOTHING, /* a request is in flight, or in backoff until watch_due */
    WATCH_ACTION_LIST,    /* send a GET of the path; its answer goes to watch_feed_list */
    WATCH_ACTION_STREAM,  /* open a stream of the path; lines go to watch_feed_line, the end to
                           watch_feed_end */
};

/* Copies the texts. path and selector together have at most 1000 bytes. */
struct watch *watch_open(const struct watch_options *options);
void watch_close(struct watch *watch); /* NULL-safe */

/* The next request to send; it counts as in flight from then on (except NOTHING). *ret_path lives
 * until the next call. */
enum watch_action watch_next(struct watch *watch, int64_t now_ms, const char **ret_path);
int64_t watch_due(const struct watch *watch); /* INT64_MAX: only an answer changes it */

/* What stands before the items of the answer to WATCH_ACTION_LIST. Returns the path of the next
 * page, which may be sent at once, so that it is on its way while this one is fed; its answer is
 * the next one that is fed. NULL: nothing is sent ahead. Lives until the next call. */
const char *watch_feed_head(struct watch *watch, const struct json *head);
/* An item of the answer to WATCH_ACTION_LIST, which goes to watch_feed_list next without it: a page
 * need not be in memory as a whole. If the answer fails then, they were put all the same: each is
 * what was there. */
void watch_feed_item(struct watch *watch, const struct json *item);
/* The answer to WATCH_ACTION_LIST, with the items that were not fed before; NULL: it failed with
 * err, and the server asks for asked_ms of rest (Retry-After). ERR_GONE: the continue token has
 * expired, so the list begins again. ERR_LIMIT: the page is requested again at once, with half as
 * many objects. Returns whether what was sent ahead remains in flight; if not, the caller must
 * cancel it. */
bool watch_feed_list(struct watch *watch, const struct json *answer, const struct error *err,
                     int64_t asked_ms, int64_t now_ms);
/* One watch event as JSON text. Returns false if the caller must cancel the stream: an ERROR event,
 * or one that is malformed. watch_feed_end is then not called. */
bool watch_feed_line(struct watch *watch, const char *line, size_t bytes, int64_t now_ms);
/* The stream ended; err->code ERR_NONE: regularly, as after timeout_s; asked_ms as above. Streams
 * are opened once per backoff_first_ms at most. */
void watch_feed_end(struct watch *watch, const struct error *err, int64_t asked_ms, int64_t now_ms);

/* The API server confirmed a change at since_ms, so an event should have arrived by now. Returns
 * whether the stream has been silent since then. The caller must then cancel it, although its
 * connection may be healthy (watch_feed_end is not called), and the watch lists again. An API
 * server whose own watch cache had stopped behaved so. */
bool watch_relist_if_silent(struct watch *watch, int64_t since_ms, int64_t now_ms);
/* The same, whatever the stream said or fails by: what it began with was of the past. It lists once
 * the time is over that the server asked for. False: it lists already. */
bool watch_relist(struct watch *watch, int64_t now_ms);

/* Whether the first list is complete. */
bool watch_is_synced(const struct watch *watch);
/* Whether the API server keeps refusing the list, so that the cache becomes outdated. A refused
 * watch alone does not count, as lists go on. Neither do five refusals: an API server that has just
 * started refuses everybody until it has read the RBAC rules. */
bool watch_is_refused(const struct watch *watch);
/* Whether a list is in flight or about to be sent. */
bool watch_is_listing(const struct watch *watch);
/* Whether this object was written behind all that the watch has told. Versions are compared as
 * numbers, which Kubernetes promises from 1.35 on (KEP-5504) and etcd gives anyhow. Of an object of
 * another kind this holds where both are in one etcd; elsewhere the answer may be either. Of a
 * version that is no number it cannot be told: false. */
bool watch_is_behind(const struct watch *watch, const struct json *object);
/* Since when the watch has been failing, and the error, which lives until the watch is fed again;
 * 0: it is not failing. For messages. A stream has recovered with its first event or bookmark, or
 * after 15 s, longer than a failure takes. */
int64_t watch_failing_since(const struct watch *watch, const struct error **ret_err);
#endif
