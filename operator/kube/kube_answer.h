/* What an API server's answer means: an object, an error that is final, or a reason to try again.
 * Pure. Codes are those of kubernetes.io/docs/reference/using-api/api-concepts and of
 * metav1.Status. */
#ifndef SHOAL_OPERATOR_KUBE_KUBE_ANSWER_H
#define SHOAL_OPERATOR_KUBE_KUBE_ANSWER_H

#include "base/http.h"

#ifdef __cplusplus
extern "C" {
#endif

struct json_t;

enum kube_verdict {
    KUBE_DONE,   /* it was answered: with an object, or with err */
    KUBE_RETRY,  /* connection trouble, 408, 429, 5xx: another try may help; else err */
    KUBE_REFUSE, /* 401: newer credentials may help; else err */
};

/* *ret_object: the answer's object, which the caller releases; NULL if there is none, and then err
 * is "VERB PATH: the server's message (409 AlreadyExists)" with the codes of kube.h. An answer of
 * status 2xx that was streamed has neither. */
enum kube_verdict kube_answer_read(const struct http_answer *answer, bool is_stream,
                                   const char *method, const char *path, struct json_t **ret_object,
                                   struct error *err);

/* How long to wait after the n-th failure (n >= 1): what the server asks for (Retry-After, cut to
 * a minute) and our own backoff on top, so that those who were told the same do not
 * come at once. */
int64_t kube_answer_wait_ms(const struct http_answer *answer, int64_t first_ms, int64_t max_ms,
                            unsigned failures, uint64_t *random);

#ifdef __cplusplus
}
#endif
#endif
