/* What an API server's answer means: an object, a final error, or a reason to retry. Pure. Status
 * codes are those of kubernetes.io/docs/reference/using-api/api-concepts and of metav1.Status. */
#ifndef SHOAL_OPERATOR_KUBE_KUBE_ANSWER_H
#define SHOAL_OPERATOR_KUBE_KUBE_ANSWER_H

#include "base/http.h"

struct json;
struct json_items;

enum kube_verdict {
    KUBE_DONE,   /* final: an object, or an error */
    KUBE_RETRY,  /* connection error, 408, 429, 5xx: a retry may succeed; err has the reason */
    KUBE_REFUSE, /* 401: new credentials may succeed; err has the reason */
};

/* ret_object: the answer's object, which the caller releases. If there is none, it is NULL and *err
 * is "VERB PATH: the server's message (409 AlreadyExists)" with a code of kube.h. The same failure
 * has the same text: addresses of the server's memory in it are "(0x...)". An answer with status
 * 2xx that is no JSON object is shown by its beginning, and by the place that is wrong, if one is.
 * A streamed answer with status 2xx has neither. items: who takes the items of a list, one by one,
 * which the object then has not (json_parse_lenient_list); NULL: they stay in it. */
enum kube_verdict kube_answer_read(const struct http_answer *answer, bool is_stream,
                                   const char *method, const char *path,
                                   const struct json_items *items, struct json **ret_object,
                                   struct error *err);

/* The server's Retry-After, a minute at most; 0: it has none. */
int64_t kube_answer_asked_ms(const struct http_answer *answer);

/* How long to wait after the n-th failure (n >= 1): kube_answer_asked_ms plus a backoff with
 * jitter, so that clients with the same Retry-After do not return at once. */
int64_t kube_answer_wait_ms(const struct http_answer *answer, int64_t first_ms, int64_t max_ms,
                            unsigned failures, uint64_t *random);
#endif
