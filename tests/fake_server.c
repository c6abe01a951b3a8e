#include "tests/fake_server.h"

#include "base/mem.h"
#include "base/str.h"

#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 1024, REQUESTS_MAX = 4096, REQUEST_BYTES_MAX = 4 << 20 };

struct connection {
    struct fake_server *server;
    pthread_t thread;
    int fd;
    bool over; /* the thread does not use fd any more */
    SSL *ssl;  /* NULL: plain */
    char alpn[64];
};

struct fake_server {
    const struct fake_answer *answers;
    size_t answer_count;
    int listener, port, pauses;
    SSL_CTX *tls;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond; /* something below changed */
    bool stop;
    size_t go; /* how many pauses may end */
    struct connection *connections[CONNECTIONS_MAX];
    size_t connection_count;
    char *requests[REQUESTS_MAX];
    size_t request_count, at_once, most_at_once;
};

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    perror(what);
    ERR_print_errors_fp(stderr);
    abort();
}

/* ---- bytes ---- */

static ssize_t read_some(struct connection *c, char *out, size_t size)
{
    return c->ssl ? SSL_read(c->ssl, out, (int)size) : recv(c->fd, out, size, 0);
}

static bool write_all(struct connection *c, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n =
            c->ssl ? SSL_write(c->ssl, bytes, (int)count) : send(c->fd, bytes, count, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes += n;
        count -= (size_t)n;
    }
    return true;
}

/* One request with its body, if Content-Length tells of one. */
static bool read_request(struct connection *c, struct str *text)
{
    size_t whole = REQUEST_BYTES_MAX;
    while (text->length < whole) {
        char chunk[4096];
        ssize_t n = read_some(c, chunk, sizeof chunk);
        if (n <= 0)
            return false;
        str_add_bytes(text, chunk, (size_t)n);
        const char *end = strstr(text->text, "\r\n\r\n");
        const char *length = strcasestr(text->text, "\r\nContent-Length:");
        if (end)
            whole = (size_t)(end + 4 - text->text) +
                    (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
    }
    return true;
}

/* ---- answering ---- */

static void describe_client(struct connection *c, struct str *out)
{
    char name[128] = "none";
    X509 *certificate = SSL_get1_peer_certificate(c->ssl);
    if (certificate)
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                                  sizeof name);
    X509_free(certificate);
    const char *sni = SSL_get_servername(c->ssl, TLSEXT_NAMETYPE_host_name);
    str_printf(out, "client=%s sni=%s alpn=%s\n", name, sni ? sni : "none", c->alpn);
}

static const struct fake_answer *kept_for(const struct fake_server *s, const char *request)
{
    for (size_t i = 0; i < s->answer_count; i++)
        if (s->answers[i].to && strncmp(request, s->answers[i].to, strlen(s->answers[i].to)) == 0)
            return &s->answers[i];
    return NULL;
}

/* Keeps the request, and returns its answer. */
static const struct fake_answer *take_request(struct connection *c, const struct str *text)
{
    struct fake_server *s = c->server;
    auto_str struct str seen;
    str_init(&seen, REQUEST_BYTES_MAX + 1024);
    if (c->ssl)
        describe_client(c, &seen);
    str_add_bytes(&seen, text->text, text->length);
    pthread_mutex_lock(&s->mutex);
    must(s->request_count < REQUESTS_MAX, "too many requests");
    size_t index = s->request_count < s->answer_count ? s->request_count : s->answer_count - 1;
    s->requests[s->request_count++] = xstrdup(seen.text);
    s->at_once++;
    if (s->at_once > s->most_at_once)
        s->most_at_once = s->at_once;
    pthread_mutex_unlock(&s->mutex);
    const struct fake_answer *kept = kept_for(s, text->text);
    return kept ? kept : &s->answers[index];
}

static void pause_here(struct fake_server *s)
{
    uint64_t one = 1;
    must(write(s->pauses, &one, sizeof one) == sizeof one, "eventfd");
    pthread_mutex_lock(&s->mutex);
    while (!s->stop && s->go == 0)
        pthread_cond_wait(&s->cond, &s->mutex);
    if (s->go > 0)
        s->go--;
    pthread_mutex_unlock(&s->mutex);
}

/* Whether another request may follow. */
static bool answer(struct connection *c, const struct fake_answer *a)
{
    size_t count = a->count ? a->count : strlen(a->bytes), at = a->pause ? a->pause_at : 0;
    char byte;
    bool there = write_all(c, a->bytes, at);
    if (a->pause)
        pause_here(c->server);
    pthread_mutex_lock(&c->server->mutex); /* before the client can know */
    c->server->at_once--;
    pthread_mutex_unlock(&c->server->mutex);
    there = there && write_all(c, a->bytes + at, count - at);
    while (there && a->then == FAKE_HOLD)
        there = read_some(c, &byte, 1) > 0;
    return there && a->then == FAKE_KEEP;
}

static void *connection_main(void *arg)
{
    struct connection *c = arg;
    struct fake_server *s = c->server;
    bool open = !c->ssl || SSL_accept(c->ssl) == 1;
    while (open) {
        auto_str struct str text;
        str_init(&text, REQUEST_BYTES_MAX);
        open = read_request(c, &text) && answer(c, take_request(c, &text));
    }
    ERR_clear_error();
    pthread_mutex_lock(&s->mutex);
    c->over = true;
    SSL_free(c->ssl);
    close(c->fd);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void *server_main(void *arg)
{
    struct fake_server *s = arg;
    int fd;
    while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct connection *c = xcalloc(1, sizeof *c);
        c->server = s;
        c->fd = fd;
        if (s->tls) {
            c->ssl = SSL_new(s->tls);
            SSL_set_app_data(c->ssl, c);
            SSL_set_fd(c->ssl, fd);
        }
        pthread_mutex_lock(&s->mutex);
        must(s->connection_count < CONNECTIONS_MAX, "too many connections");
        s->connections[s->connection_count++] = c;
        must(pthread_create(&c->thread, NULL, connection_main, c) == 0, "pthread_create");
        pthread_mutex_unlock(&s->mutex);
    }
    return NULL;
}

/* ---- TLS ---- */

/* Remembers what the client offers and takes none of it: HTTP/1.1 then. */
static int see_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_bytes,
                    const unsigned char *in, unsigned in_bytes, void *arg)
{
    (void)out, (void)out_bytes, (void)arg;
    struct connection *c = SSL_get_app_data(ssl);
    auto_str struct str text;
    str_init(&text, sizeof c->alpn - 1);
    for (unsigned i = 0; i < in_bytes; i += 1u + in[i]) {
        str_add(&text, i ? "," : "");
        str_add_bytes(&text, (const char *)in + i + 1, in[i]);
    }
    snprintf(c->alpn, sizeof c->alpn, "%s", str_text(&text));
    return SSL_TLSEXT_ERR_NOACK;
}

static X509 *read_certificate(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    must(certificate, "certificate");
    return certificate;
}

static SSL_CTX *open_tls(const struct fake_tls *tls)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    X509 *certificate = read_certificate(tls->certificate);
    BIO *bio = BIO_new_mem_buf(tls->key, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    must(SSL_CTX_use_certificate(context, certificate) == 1 &&
             SSL_CTX_use_PrivateKey(context, key) == 1,
         "TLS");
    X509_free(certificate);
    EVP_PKEY_free(key);
    BIO_free(bio);
    if (tls->client_ca) {
        X509 *ca = read_certificate(tls->client_ca);
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca);
        X509_free(ca);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    }
    SSL_CTX_set_alpn_select_cb(context, see_alpn, NULL);
    return context;
}

/* ---- life ---- */

struct fake_server *fake_server_open(const struct fake_answer *answers, size_t count,
                                     const struct fake_tls *tls)
{
    struct fake_server *s = xcalloc(1, sizeof *s);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    s->answers = answers;
    s->answer_count = count;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->cond, NULL);
    s->tls = tls ? open_tls(tls) : NULL;
    s->pauses = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(bind(s->listener, (struct sockaddr *)&address, bytes) == 0 &&
             listen(s->listener, 128) == 0 &&
             getsockname(s->listener, (struct sockaddr *)&address, &bytes) == 0,
         "listen");
    s->port = ntohs(address.sin_port);
    must(pthread_create(&s->thread, NULL, server_main, s) == 0, "pthread_create");
    return s;
}

void fake_server_close(struct fake_server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_cond_broadcast(&s->cond);
    for (size_t i = 0; i < s->connection_count; i++)
        if (!s->connections[i]->over)
            shutdown(s->connections[i]->fd, SHUT_RDWR);
    pthread_mutex_unlock(&s->mutex);
    for (size_t i = 0; i < s->connection_count; i++) {
        pthread_join(s->connections[i]->thread, NULL);
        free(s->connections[i]);
    }
    for (size_t i = 0; i < s->request_count; i++)
        free(s->requests[i]);
    close(s->pauses);
    SSL_CTX_free(s->tls);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->cond);
    free(s);
}

int fake_server_port(const struct fake_server *s)
{
    return s->port;
}

int fake_server_pauses(const struct fake_server *s)
{
    return s->pauses;
}

void fake_server_go(struct fake_server *s)
{
    pthread_mutex_lock(&s->mutex);
    s->go++;
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->mutex);
}

/* ---- what was seen ---- */

static size_t read_count(struct fake_server *s, const size_t *count)
{
    pthread_mutex_lock(&s->mutex);
    size_t value = *count;
    pthread_mutex_unlock(&s->mutex);
    return value;
}

size_t fake_server_request_count(struct fake_server *s)
{
    return read_count(s, &s->request_count);
}

size_t fake_server_connection_count(struct fake_server *s)
{
    return read_count(s, &s->connection_count);
}

size_t fake_server_most_at_once(struct fake_server *s)
{
    return read_count(s, &s->most_at_once);
}

char *fake_server_request(struct fake_server *s, size_t index)
{
    pthread_mutex_lock(&s->mutex);
    must(index < s->request_count, "no such request");
    char *text = xstrdup(s->requests[index]);
    pthread_mutex_unlock(&s->mutex);
    return text;
}
