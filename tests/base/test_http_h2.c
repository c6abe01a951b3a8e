#include "tests/base/client.h"
#include "tests/pki.h"
#include "tests/support.h"

#include "base/clock.h"
#include "base/mem.h"

#include <libwebsockets.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_BYTES = 1 << 20 };

/* An HTTP/2 server: "/hold" promises more than the line that it gives. */
struct server {
    struct lws_context *context;
    pthread_t thread;
    atomic_bool stop;
    atomic_bool hang_up; /* asks it to end its HTTP/2 connection */
    struct lws *h2;      /* the last one of HTTP/2, NULL: none; the thread's */
    atomic_int connections, h2_ended;
    int port;
    struct pki_pair ca, pair;
};

struct exchange {
    bool hold, sent;
};

static int on_http(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                   size_t bytes)
{
    (void)bytes;
    struct server *s = lws_context_user(lws_get_context(wsi));
    struct exchange *x = user;
    unsigned char buffer[LWS_PRE + 512], *start = buffer + LWS_PRE, *at = start;
    if (reason == LWS_CALLBACK_FILTER_NETWORK_CONNECTION)
        atomic_fetch_add(&s->connections, 1);
    if (reason == LWS_CALLBACK_EVENT_WAIT_CANCELLED && s->h2 && atomic_load(&s->hang_up))
        lws_set_timeout(s->h2, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    if (reason == LWS_CALLBACK_WSI_DESTROY && wsi == s->h2) {
        s->h2 = NULL;
        atomic_store(&s->hang_up, false);
        atomic_fetch_add(&s->h2_ended, 1);
    }
    if (reason == LWS_CALLBACK_HTTP) {
        if (lws_get_network_wsi(wsi) != wsi)
            s->h2 = lws_get_network_wsi(wsi);
        *x = (struct exchange){.hold = strcmp(in, "/hold") == 0};
        if (lws_add_http_common_headers(wsi, 200, "text/plain", x->hold ? HELD_BYTES : 4, &at,
                                        buffer + sizeof buffer) ||
            lws_finalize_write_http_header(wsi, start, &at, buffer + sizeof buffer))
            return -1;
        lws_callback_on_writable(wsi);
    }
    if (reason == LWS_CALLBACK_HTTP_WRITEABLE && !x->sent) {
        x->sent = true;
        memcpy(start, "one\n", 4);
        if (lws_write(wsi, start, 4, x->hold ? LWS_WRITE_HTTP : LWS_WRITE_HTTP_FINAL) != 4)
            return -1;
        if (x->hold)
            lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
        return !x->hold && lws_http_transaction_completed(wsi) ? -1 : 0;
    }
    return 0;
}

static void *serve(void *arg)
{
    struct server *s = arg;
    while (!atomic_load(&s->stop) && lws_service(s->context, 0) >= 0)
        continue;
    return NULL;
}

static int set_up(void **state)
{
    static const struct lws_protocols protocols[] = {
        {.name = "http", .callback = on_http, .per_session_data_size = sizeof(struct exchange)},
        {0},
    };
    struct server *s = xcalloc(1, sizeof *s);
    int64_t now_ms = clock_now_ms();
    pki_make("ca", NULL, now_ms - 3600000, now_ms + 3600000, &s->ca);
    pki_make("api.test", &s->ca, now_ms - 3600000, now_ms + 3600000, &s->pair);
    struct lws_context_creation_info info = {
        .protocols = protocols,
        .user = s,
        .iface = "127.0.0.1",
        .options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_DISABLE_IPV6,
        .server_ssl_cert_mem = s->pair.certificate,
        .server_ssl_cert_mem_len = (unsigned)strlen(s->pair.certificate),
        .server_ssl_private_key_mem = s->pair.key,
        .server_ssl_private_key_mem_len = (unsigned)strlen(s->pair.key),
        .alpn = "h2",
    };
    lws_set_log_level(0, NULL);
    s->context = lws_create_context(&info);
    assert_non_null(s->context);
    s->port = lws_get_vhost_listen_port(lws_get_vhost_by_name(s->context, "default"));
    *state = s;
    return pthread_create(&s->thread, NULL, serve, s);
}

static int tear_down(void **state)
{
    struct server *s = *state;
    atomic_store(&s->stop, true);
    lws_cancel_service(s->context);
    pthread_join(s->thread, NULL);
    lws_context_destroy(s->context);
    pki_free(&s->ca);
    pki_free(&s->pair);
    free(s);
    return 0;
}

static void get(struct client *client, struct http *http, const struct server *s, const char *path,
                int64_t idle_timeout_ms, bool stream)
{
    auto_free char *url = client_url("https", s->port, path);
    client_send(client, http,
                &(struct http_call){.method = "GET",
                                    .url = url,
                                    .idle_timeout_ms = idle_timeout_ms,
                                    .line = stream ? client_line : NULL});
}

/* One connection for all requests, where what ends one leaves the others alone, and one for each
 * streamed answer. */
static void requests_share_a_connection_and_end_alone(void **state)
{
    struct server *s = *state;
    struct http *http = client_http();
    http_set_tls(http, &(struct http_tls){.ca = s->ca.certificate});
    struct client held = {0}, idle = {0}, cancelled = {0}, last = {0}, watch = {0};
    get(&held, http, s, "/hold", 0, false);
    get(&idle, http, s, "/hold", 100, false);
    get(&cancelled, http, s, "/hold", 0, false);
    client_wait(&idle);
    client_assert_fails(&idle, ERR_TIMEOUT, "nothing received for 100 ms");
    http_cancel(http, cancelled.request);
    get(&last, http, s, "/", 0, false);
    client_wait(&last);
    assert_ok(last.answer.err.code, &last.answer.err);
    assert_string_equal(str_text(&last.body), "one\n");
    assert_int_equal(http_in_flight(http), 1);
    assert_int_equal(atomic_load(&s->connections), 1);
    get(&watch, http, s, "/hold", 0, true);
    client_wait_lines(&watch, 1);
    assert_int_equal(atomic_load(&s->connections), 2);
    assert_int_equal(held.done + cancelled.done + watch.done, 0);
    http_close(http);
    struct client *all[] = {&held, &idle, &cancelled, &last, &watch};
    for (size_t i = 0; i < array_length(all); i++)
        client_free(all[i]);
}

/* As a balancer does, or an API server with --goaway-chance, or libcurl itself after two idle
 * minutes: the requests' connection goes while watches go on. The next request needs a connection
 * that is no watch's. */
static void requests_do_not_wait_behind_a_stream(void **state)
{
    enum { WATCHES = 3, ROUNDS = 3 };
    struct server *s = *state;
    struct http *http = client_http();
    http_set_tls(http, &(struct http_tls){.ca = s->ca.certificate});
    struct client watches[WATCHES] = {0};
    for (int i = 0; i < WATCHES; i++) {
        get(&watches[i], http, s, "/hold", 0, true);
        client_wait_lines(&watches[i], 1);
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct client first = {0}, after[WATCHES] = {0};
        get(&first, http, s, "/", SUPPORT_PATIENCE_MS, false);
        client_wait(&first);
        assert_ok(first.answer.err.code, &first.answer.err);
        client_free(&first);
        atomic_store(&s->hang_up, true);
        while (atomic_load(&s->h2_ended) <= round) {
            lws_cancel_service(s->context); /* again: lws may be about to set a timeout itself */
            client_poll(http, 1);
        }
        for (int i = 0; i < WATCHES; i++)
            get(&after[i], http, s, "/", SUPPORT_PATIENCE_MS, false);
        for (int i = 0; i < WATCHES; i++) {
            client_wait(&after[i]);
            assert_ok(after[i].answer.err.code, &after[i].answer.err);
            assert_string_equal(str_text(&after[i].body), "one\n");
            client_free(&after[i]);
        }
    }
    for (int i = 0; i < WATCHES; i++)
        assert_ok(watches[i].done ? -1 : 0, &watches[i].answer.err);
    http_close(http);
    for (int i = 0; i < WATCHES; i++)
        client_free(&watches[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_share_a_connection_and_end_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(requests_do_not_wait_behind_a_stream, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
