/* A name server that is silent: neither a time limit nor the end of a request waits for it. */
#include "tests/base/client.h"
#include "tests/support.h"

#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int asked, answered;
    bool may_answer;
} resolver = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* In the place of the C library's, which libcurl calls in a thread of its own. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_list)
{
    (void)name;
    (void)service;
    (void)hints;
    (void)ret_list;
    pthread_mutex_lock(&resolver.mutex);
    resolver.asked++;
    pthread_cond_broadcast(&resolver.changed);
    while (!resolver.may_answer)
        pthread_cond_wait(&resolver.changed, &resolver.mutex);
    resolver.answered++;
    pthread_cond_broadcast(&resolver.changed);
    pthread_mutex_unlock(&resolver.mutex);
    return EAI_AGAIN;
}

static void wait_until_asked(struct http *http, int count)
{
    for (bool is_asked = false; !is_asked;) {
        client_poll(http, 10);
        pthread_mutex_lock(&resolver.mutex);
        is_asked = resolver.asked >= count;
        pthread_mutex_unlock(&resolver.mutex);
    }
}

/* With a libcurl that waited, this test would not end: the name server answers only behind it. */
static void nothing_waits_for_a_name_server(void **state)
{
    (void)state;
    static const struct http_call call = {.method = "GET", .url = "http://name.test:1/"};
    struct http *http = client_http();
    struct client late = {0}, cancelled = {0};
    struct http_call brief = call;
    brief.timeout_ms = 50;
    client_send(&late, http, &brief);
    wait_until_asked(http, 1);
    client_wait(&late);
    client_assert_fails(&late, ERR_TIMEOUT, "name.test");
    client_send(&cancelled, http, &call);
    wait_until_asked(http, 2);
    http_cancel(http, cancelled.request);
    http_close(http);
    assert_int_equal(cancelled.done, 0);
    pthread_mutex_lock(&resolver.mutex);
    assert_int_equal(resolver.answered, 0);
    resolver.may_answer = true;
    pthread_cond_broadcast(&resolver.changed);
    while (resolver.answered <
           resolver.asked) /* the threads are libcurl's, and end by themselves */
        pthread_cond_wait(&resolver.changed, &resolver.mutex);
    pthread_mutex_unlock(&resolver.mutex);
    client_free(&late);
    client_free(&cancelled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_waits_for_a_name_server)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
