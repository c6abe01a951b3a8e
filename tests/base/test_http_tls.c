#include "tests/base/client.h"
#include "tests/fake_server.h"
#include "tests/pki.h"
#include "tests/support.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { HOUR_MS = 3600 * 1000 };

/* The server's authority and certificate ("api.test", 127.0.0.1), another authority, one that only
 * has the first one's name, an expired certificate, and a client's. */
struct world {
    struct pki_pair ca, server, other_ca, new_ca, expired, client;
    struct fake_server *fake;
    struct http *http;
};

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    int64_t now_ms = clock_now_ms(), from_ms = now_ms - HOUR_MS, until_ms = now_ms + HOUR_MS;
    pki_make("ca", NULL, from_ms, until_ms, &w->ca);
    pki_make("api.test", &w->ca, from_ms, until_ms, &w->server);
    pki_make("other", NULL, from_ms, until_ms, &w->other_ca);
    pki_make("ca", NULL, from_ms, until_ms, &w->new_ca);
    pki_make("api.test", &w->ca, from_ms - HOUR_MS, from_ms, &w->expired);
    pki_make("alice", &w->ca, from_ms, until_ms, &w->client);
    w->http = client_http();
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    struct pki_pair *all[] = {&w->ca,     &w->server,  &w->other_ca,
                              &w->new_ca, &w->expired, &w->client};
    http_close(w->http);
    if (w->fake)
        fake_server_close(w->fake);
    for (size_t i = 0; i < array_length(all); i++)
        pki_free(all[i]);
    free(w);
    return 0;
}

static void serve(struct world *w, const struct pki_pair *server, const char *client_ca)
{
    static const struct fake_answer answer = {.bytes = FAKE_OK(2, "ok")};
    w->fake = fake_server_open(&answer, 1,
                               &(struct fake_tls){.certificate = server->certificate,
                                                  .key = server->key,
                                                  .client_ca = client_ca});
}

static void get(struct world *w, struct client *client, const struct http_tls *tls)
{
    auto_free char *url = client_url("https", fake_server_port(w->fake), "/");
    http_set_tls(w->http, tls);
    client_send(client, w->http, &(struct http_call){.method = "GET", .url = url});
    client_wait(client);
}

static void assert_seen(struct world *w, size_t index, const char *start)
{
    auto_free char *seen = fake_server_request(w->fake, index);
    if (strncmp(seen, start, strlen(start)) != 0)
        fail_msg("no \"%s\" before: %s", start, seen);
}

static void get_well(struct world *w, const struct http_tls *tls, const char *seen)
{
    struct client client = {0};
    size_t index = fake_server_request_count(w->fake);
    get(w, &client, tls);
    assert_ok(client.answer.err.code, &client.answer.err);
    assert_string_equal(str_text(&client.body), "ok");
    assert_seen(w, index, seen);
    client_free(&client);
}

static void get_badly(struct world *w, const struct http_tls *tls, enum error_code code,
                      const char *part)
{
    struct client client = {0};
    get(w, &client, tls);
    client_assert_fails(&client, code, part);
    assert_int_equal(fake_server_request_count(w->fake), 0);
    client_free(&client);
}

static void a_server_of_our_authority_is_talked_to(void **state)
{
    struct world *w = *state;
    serve(w, &w->server, NULL);
    get_well(w, &(struct http_tls){.ca = w->ca.certificate},
             "client=none sni=none alpn=h2,http/1.1\n");
    get_well(w, &(struct http_tls){.ca = w->ca.certificate, .server_name = "api.test"},
             "client=none sni=api.test alpn=h2,http/1.1\n");
    /* who is asked is still the URL's host */
    auto_free char *seen = fake_server_request(w->fake, 1);
    assert_non_null(strstr(seen, "\r\nHost: 127.0.0.1:"));
}

static void others_are_not_talked_to(void **state)
{
    struct world *w = *state;
    serve(w, &w->server, NULL);
    get_badly(w, &(struct http_tls){0}, ERR_CONFIG, "SSL certificate problem: ");
    get_badly(w, &(struct http_tls){.ca = w->other_ca.certificate}, ERR_CONFIG,
              "SSL certificate problem: ");
    get_badly(w, &(struct http_tls){.ca = w->new_ca.certificate}, ERR_CONFIG,
              "SSL certificate problem: signed in the name of the given authority, but not by its");
    get_badly(w, &(struct http_tls){.ca = w->ca.certificate, .server_name = "other.test"},
              ERR_CONFIG, "certificate subject name matches target host name 'other.test'");
    get_badly(w, &(struct http_tls){.ca = "no PEM"}, ERR_CONFIG, "GET https://127.0.0.1:");
    get_badly(w, &(struct http_tls){.ca = w->ca.certificate, .server_name = "a b"}, ERR_CONFIG,
              "TLS server name a b");
}

static void an_expired_certificate_is_named_as_such(void **state)
{
    struct world *w = *state;
    serve(w, &w->expired, NULL);
    get_badly(w, &(struct http_tls){.ca = w->ca.certificate}, ERR_CONFIG,
              "certificate has expired");
}

static void the_clients_certificate_is_shown(void **state)
{
    struct world *w = *state;
    serve(w, &w->server, w->ca.certificate);
    struct http_tls tls = {.ca = w->ca.certificate};
    get_well(w, &tls, "client=none ");
    tls.certificate = w->client.certificate;
    tls.key = w->client.key;
    get_well(w, &tls, "client=alice "); /* on a new connection */
    get_well(w, &tls, "client=alice "); /* on the same */
    assert_int_equal(fake_server_connection_count(w->fake), 2);
}

static void a_key_of_another_certificate_is_told(void **state)
{
    struct world *w = *state;
    serve(w, &w->server, w->ca.certificate);
    get_badly(w,
              &(struct http_tls){.ca = w->ca.certificate,
                                 .certificate = w->client.certificate,
                                 .key = w->server.key},
              ERR_CONFIG, "key");
}

static void certificates_are_copied(void **state)
{
    struct world *w = *state;
    serve(w, &w->server, NULL);
    struct client client = {0};
    auto_free char *url = client_url("https", fake_server_port(w->fake), "/");
    auto_free char *ca = xstrdup(w->ca.certificate);
    http_set_tls(w->http, &(struct http_tls){.ca = ca});
    memset(ca, 'x', strlen(ca));
    client_send(&client, w->http, &(struct http_call){.method = "GET", .url = url});
    client_poll(w->http, 0);
    http_set_tls(w->http, &(struct http_tls){.ca = w->other_ca.certificate});
    client_wait(&client); /* it had left with the first */
    assert_ok(client.answer.err.code, &client.answer.err);
    client_free(&client);
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_server_of_our_authority_is_talked_to),  test(others_are_not_talked_to),
        test(an_expired_certificate_is_named_as_such), test(the_clients_certificate_is_shown),
        test(a_key_of_another_certificate_is_told),    test(certificates_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
