/* What is published and when, asked for over a real socket. */
#include "tests/support.h"

#include "base/listen.h"
#include "base/mem.h"
#include "operator/serve.h"
#include "tests/free_port.h"
#include "tests/operator/page.h"

#include <stdio.h>
#include <string.h>

static void assert_answer(int port, const char *path, const char *status, const char *part)
{
    auto_free char *text = page_get(port, path);
    if (strncmp(text + strlen("HTTP/1.1 "), status, strlen(status)) != 0 || !strstr(text, part))
        fail_msg("%s: not %s with \"%s\" but\n%s", path, status, part, text);
}

/* Both at one address, or apart. */
static void readiness_and_metrics_are_told(void **state)
{
    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        int health = free_port(), metrics = apart ? free_port() : health;
        auto_free char *health_address = xasprintf("127.0.0.1:%d", health);
        auto_free char *metrics_address = xasprintf("127.0.0.1:%d", metrics);
        const struct operator_config config = {.health_probe_bind_address = health_address,
                                               .metrics_bind_address = metrics_address};
        struct serve *serve;
        struct error err;
        assert_ok(serve_open(&serve, &config, &err), &err);
        assert_answer(health, "/healthz", "200", "ok");
        assert_answer(health, "/readyz", "503", "not filled yet");
        assert_answer(metrics, "/metrics", "404", "");
        struct metrics *numbers = metrics_open();
        struct metrics_view view = {.ready = true, .jobs = 7};
        serve_publish(serve, numbers, &view);
        assert_answer(health, "/readyz", "200", "ok");
        assert_answer(metrics, "/metrics", "200", "shoal_operator_jobs 7\n");
        assert_answer(metrics, "/metrics/more", "404", "");
        metrics_job_deleted(numbers, "ns"); /* printed as it is when somebody asks */
        assert_answer(metrics, "/metrics", "200", "jobs_deleted_total{job_namespace=\"ns\"");
        view.ready = false;
        serve_publish(serve, numbers, &view);
        assert_answer(health, "/readyz", "503", "not filled yet");
        if (apart)
            assert_answer(metrics, "/readyz", "404", "");
        metrics_close(numbers);
        serve_close(serve);
    }
}

static void nothing_is_served_at_0(void **state)
{
    (void)state;
    const struct operator_config config = {.health_probe_bind_address = "0",
                                           .metrics_bind_address = "0"};
    struct serve *serve;
    struct error err;
    struct metrics *numbers = metrics_open();
    assert_ok(serve_open(&serve, &config, &err), &err);
    serve_publish(serve, numbers, &(struct metrics_view){.ready = true});
    serve_close(serve);
    metrics_close(numbers);
}

static void an_address_that_is_taken_is_named_with_its_flag(void **state)
{
    (void)state;
    struct error err;
    auto_close int fd = -1;
    assert_ok(listen_tcp("127.0.0.1", 0, &fd, &err), &err);
    auto_free char *taken = xasprintf("127.0.0.1:%d", listen_port(fd));
    const struct operator_config rows[] = {
        {.health_probe_bind_address = taken, .metrics_bind_address = "0"},
        {.health_probe_bind_address = "0", .metrics_bind_address = taken},
    };
    static const char *const flags[] = {"--health-probe-bind-address", "--metrics-bind-address"};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct serve *serve = NULL;
        assert_fails(serve_open(&serve, &rows[i], &err), &err, ERR_EXISTS, flags[i]);
        serve_close(serve);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readiness_and_metrics_are_told),
        cmocka_unit_test(nothing_is_served_at_0),
        cmocka_unit_test(an_address_that_is_taken_is_named_with_its_flag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
