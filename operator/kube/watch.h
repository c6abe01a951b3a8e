/* One list-and-watch as a pure state machine (the protocol of
 * kubernetes.io/docs/reference/using-api/api-concepts, "Efficient detection of changes"): list in
 * pages, watch from the list's resourceVersion with bookmarks, list again on 410. It is given bytes
 * and errors and says what to request next; it does no I/O and reads no clock.
 *
 *   list (pages) -> stream <-> stream again after a backoff -> list, when the stream's past is gone
 *
 * What fails is tried again after a backoff with jitter, from where it was; a stream that fails
 * three times in a row gives way to a list. now_ms is a clock that does not jump. */
#ifndef SHOAL_OPERATOR_KUBE_WATCH_H
#define SHOAL_OPERATOR_KUBE_WATCH_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct json_t;
struct watch;

struct watch_options {
    const char *path;     /* of the collection, without query, e.g. "/api/v1/pods" */
    const char *selector; /* labelSelector, unescaped; "" for none */
    int page;             /* objects a page, e.g. 500; halved when a page is too large to be read */
    int timeout_s;        /* asked of the server for each watch, e.g. 290 */
    int64_t backoff_first_ms, backoff_max_ms;
    uint64_t seed; /* of the jitter */
    /* What it learns; called from within watch_feed_*. `object` is borrowed. */
    void (*begin_list)(void *context); /* a list starts: what is not put until end_list is gone */
    void (*put)(void *context, const struct json_t *object);
    void (*remove)(void *context, const struct json_t *object);
    void (*end_list)(void *context);
    /* An object that makes no sense: said and skipped. A page that was too large. */
    void (*warn)(void *context, const char *message);
    void *context;
};

enum watch_want {
    WATCH_WANT_NOTHING, /* a request is in flight, or it backs off until watch_due */
    WATCH_WANT_LIST,    /* send a GET of the path; its answer goes to watch_feed_list */
    WATCH_WANT_STREAM,  /* open a stream of the path; lines go to watch_feed_line, the end to
                           watch_feed_end */
};

/* Copies the texts. path and selector together have at most 1000 bytes. */
struct watch *watch_open(const struct watch_options *options);
void watch_close(struct watch *watch); /* NULL-safe */

/* What to do now. Taking a want (not NOTHING) makes it in flight. *ret_path lives until the next
 * call. */
enum watch_want watch_next(struct watch *watch, int64_t now_ms, const char **ret_path);
int64_t watch_due(const struct watch *watch); /* INT64_MAX: only an answer moves it */

/* The answer to WATCH_WANT_LIST. NULL: it failed with err (ERR_GONE: the continue token is too old,
 * so the list begins anew; ERR_LIMIT: the page is asked for again, at once, with half as many
 * objects, as long as there is a half). */
void watch_feed_list(struct watch *watch, const struct json_t *answer, const struct error *err,
                     int64_t now_ms);
/* One event as JSON text. Returns false if the stream must be cancelled (an ERROR event, or one
 * that cannot be read): the machine has decided what to do instead, and watch_feed_end is not
 * called. */
bool watch_feed_line(struct watch *watch, const char *line, size_t bytes, int64_t now_ms);
/* The stream ended: err->code ERR_NONE if in good order, which it does after timeout_s. Streams are
 * opened no faster than one in backoff_first_ms. */
void watch_feed_end(struct watch *watch, const struct error *err, int64_t now_ms);

/* What was changed at since_ms, as the server has told, should have been heard by now. Returns
 * whether the stream has said nothing at all since then: it is taken for dead, though its
 * connection may be well, and must be cancelled (watch_feed_end is not called); the machine lists
 * again. Seen with a server whose own caches had stopped. */
bool watch_relist_if_silent(struct watch *watch, int64_t since_ms, int64_t now_ms);

/* Whether a first list is complete. */
bool watch_is_synced(const struct watch *watch);
/* Whether it may not list, so that what is known grows old. Who may list and not watch still knows.
 * One refusal is not believed, nor are five: an API server that has just started refuses everybody
 * until it has read who may do what. */
bool watch_is_refused(const struct watch *watch);
/* Whether it lists, or is about to. */
bool watch_is_listing(const struct watch *watch);
/* Since when it has been failing, and how (lives until it is fed again); 0: it is not. For people:
 * "PyTorchJob CRD missing". A stream is known to be well again by its first event or bookmark, or
 * by having lived for 15 s: longer than it takes to fail. */
int64_t watch_failing_since(const struct watch *watch, const struct error **ret_err);

#ifdef __cplusplus
}
#endif
#endif
