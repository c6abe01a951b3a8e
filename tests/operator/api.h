/* A client of a fake API server, for tests of what goes over the wire: the server gives the answers
 * it was given, one after the other; the clock is the test's and jumps to when something is due. */
#ifndef SHOAL_TESTS_OPERATOR_API_H
#define SHOAL_TESTS_OPERATOR_API_H

#include "operator/kube/kube.h"
#include "operator/kube/kubeconfig.h"
#include "tests/fake_server.h"

/* An answer of an API server, with a JSON body, which ends the connection. */
#define API_TEXT(status, headers, body)                                                            \
    "HTTP/1.1 " status "\r\n" headers "Connection: close\r\n\r\n" body
#define API_ANSWER(status, headers, body)                                                          \
    {                                                                                              \
        .bytes = API_TEXT(status, headers, body), .then = FAKE_CLOSE                               \
    }
/* ... that is a metav1.Status. */
#define API_STATUS(status, reason, message)                                                        \
    API_ANSWER(status, "",                                                                         \
               "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"" message "\"}")

#define API_GOOD  API_ANSWER("200 OK", "", "{\"kind\":\"Pod\"}")
#define API_THERE API_STATUS("409 Conflict", "AlreadyExists", "p is there")
#define API_BUSY  API_STATUS("500 Internal Server Error", "InternalError", "etcd is away")

#define API_NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */
enum { API_WAITS_MAX = 64 };

struct api {
    char *directory; /* with "config", and "token", whose token is "first" */
    struct fake_server *server;
    bool has_tls;
    struct kubeconfig *config;
    struct http *http;
    struct kube *kube;
    int64_t now_ms;                  /* starts at API_NOW_MS */
    int64_t waits_ms[API_WAITS_MAX]; /* how far the clock jumped, each time */
    size_t wait_count;
};

/* user: of the kubeconfig, in YAML; NULL: the token file. */
void api_open(struct api *api, const struct fake_answer *answers, size_t count, const char *user);
/* The same in two steps, for what is to be put into the directory before: the server, over TLS if
 * tls is given (put its authority there as "ca.crt"); the client. */
void api_prepare(struct api *api, const struct fake_answer *answers, size_t count,
                 const struct fake_tls *tls);
void api_connect(struct api *api, const char *user);
void api_close(struct api *api);
void api_write_file(const struct api *api, const char *name, const char *text);

/* What came of a request. */
struct api_result {
    bool is_done;
    char *answer; /* as compact JSON with sorted keys; NULL: none. Freed by api_forget. */
    struct error err;
    int64_t asked_ms; /* what kube_asked_ms said then */
    const struct kube *kube;
};
struct kube_request *api_send(struct api *api, const struct kube_call *call,
                              struct api_result *result);
/* Lets things happen until *is_done; when nothing is in flight the clock jumps to what is due. */
void api_wait(struct api *api, const bool *is_done);
/* Lets things happen until the server has seen so many requests; until none is in flight. Nothing
 * that failed is decided about. */
void api_wait_requests(struct api *api, size_t count);
void api_wait_answers(struct api *api);
void api_forget(struct api_result *result);

/* One request from start to end: api_open, api_send and api_wait; api_forget and api_close. */
void api_ask(struct api *api, const struct fake_answer *answers, size_t count,
             const struct kube_call *call, struct api_result *result);
void api_end(struct api *api, struct api_result *result);

/* Whether the text of the index-th request that the server saw has this part. */
bool api_request_has(struct api *api, size_t index, const char *part);
#endif
