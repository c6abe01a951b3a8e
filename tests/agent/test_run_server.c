/* The agent's server by itself: what who looks hears while nothing is published. */
#include "agent/telemetry/run_server.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/agent/run_fixture.h"
#include "tests/agent/served.h"
#include "tests/support.h"

static int64_t steady_us(void)
{
    return 1000 * clock_monotonic_ms();
}

/* A run of one rank tells nothing within a step of minutes; its page must not take it for gone. */
static void a_silent_run_gives_signs_of_life(void **state)
{
    (void)state;
    struct run_state run;
    struct run_server *server;
    struct error err;
    run_fixture_state(&run);
    const struct run_server_setting setting = {
        .host = "127.0.0.1", .healthy_within_s = 1e6, .sign_of_life_ms = 5, .steady_us = steady_us};
    assert_ok(run_server_open(&server, &setting, &run, &err), &err);
    auto_close int fd = served_listen(run_server_port(server), "/live");
    int64_t version = -1;
    for (int signs = 0; signs < 3;) {
        struct json *message = served_frame(fd);
        int64_t told = json_as_integer(json_get(message, "version"));
        if (!json_get(message, "jobs")) { /* what was told before is not told again */
            assert_int_equal(json_as_integer(json_get(message, "after")), told);
            assert_true(version < 0 || told == version);
            signs++;
        }
        version = told;
        json_free(message);
    }
    run_server_close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_run_gives_signs_of_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
