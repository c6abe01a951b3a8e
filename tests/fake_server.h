/* A dumb HTTP/1.1 server on 127.0.0.1 for tests of clients, with a thread per connection. It keeps
 * the text of each request and answers the n-th with the n-th of the bytes it was given (the last
 * one again when they run out), whatever was asked, but for answers that are kept for requests that
 * begin in some way. Failures abort. */
#ifndef SHOAL_TESTS_FAKE_SERVER_H
#define SHOAL_TESTS_FAKE_SERVER_H

#include <stdbool.h>
#include <stddef.h>

/* Starts of answers: a whole body of n bytes; chunks, which follow. */
#define FAKE_OK(n, body)                                                                           \
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " #n "\r\n\r\n" body
#define FAKE_CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

enum fake_then {
    FAKE_KEEP,  /* the connection, for the next request */
    FAKE_CLOSE, /* it */
    FAKE_HOLD,  /* it open and silent, until the client hangs up */
};

struct fake_answer {
    const char *bytes; /* borrowed while the server is open */
    size_t count;      /* 0: all of the text */
    bool pause;        /* after pause_at bytes, until fake_server_go */
    size_t pause_at;
    enum fake_then then;
    const char *to; /* NULL; else the answer to every request that begins with this */
};

/* PEM texts, copied. */
struct fake_tls {
    const char *certificate, *key;
    const char *client_ca; /* asks for a certificate of it; NULL: does not */
};

struct fake_server;

/* tls NULL: plain. */
struct fake_server *fake_server_open(const struct fake_answer *answers, size_t count,
                                     const struct fake_tls *tls);
void fake_server_close(struct fake_server *server);
int fake_server_port(const struct fake_server *server);

/* An eventfd whose number is that of the pauses reached. */
int fake_server_pauses(const struct fake_server *server);
void fake_server_go(struct fake_server *server); /* lets one paused answer go on, or the next */

/* What was seen so far. The text of a request starts with a line of our own over TLS: "client=NAME
 * sni=NAME alpn=OFFERED". The caller frees it. */
size_t fake_server_request_count(struct fake_server *server);
char *fake_server_request(struct fake_server *server, size_t index);
size_t fake_server_connection_count(struct fake_server *server);
size_t fake_server_most_at_once(struct fake_server *server); /* requests being answered */
#endif
