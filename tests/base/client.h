/* A caller of base/http in tests: one request and all that its callbacks were told. Failures fail
 * the test. */
#ifndef SHOAL_TESTS_BASE_CLIENT_H
#define SHOAL_TESTS_BASE_CLIENT_H

#include "base/http.h"
#include "base/str.h"

struct client {
    struct http *http;
    struct http_request *request;
    struct str lines; /* each with "|" after it */
    size_t line_count;
    struct str body;
    struct http_answer answer; /* body is NULL: see above */
    size_t done;               /* times called */
    struct client *then;       /* NULL; else what `done` sends next: */
    struct http_call then_call;
    struct http_request **line_cancels, **done_cancels; /* NULL; else what these cancel */
};

/* Roomy limits. */
struct http *client_http(void);
struct http *client_http_with(const struct http_options *options);

/* For http_call's `line`: keeps it. */
void client_line(void *context, const char *line, size_t bytes);

/* Sends `call` with this client as its context and `done`. client_free afterwards. */
void client_send(struct client *client, struct http *http, const struct http_call *call);
/* GET of a path on this machine. */
void client_get(struct client *client, struct http *http, int port, const char *path);
/* The same, given out as lines. */
void client_stream(struct client *client, struct http *http, int port);
void client_free(struct client *client);

/* Polls until `done` was called. */
void client_wait(struct client *client);
/* Polls until `line` was called so often. */
void client_wait_lines(struct client *client, size_t count);
/* One round of http_poll. */
void client_poll(struct http *http, int timeout_ms);

/* That it got no answer, but this error. */
void client_assert_fails(const struct client *client, enum error_code code, const char *part);

/* "http://127.0.0.1:PORT/PATH". The caller frees. */
char *client_url(const char *scheme, int port, const char *path);
#endif
