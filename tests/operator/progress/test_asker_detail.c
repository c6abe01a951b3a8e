/* What an asker does for those who look at a job: it asks its agent for details. */
#include "base/mem.h"
#include "tests/operator/progress/asker_fixture.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

/* What is answered to so many looks, a second apart, at a job whose agent was heard. */
static void details_are_asked_for_by_who_looks(void **state)
{
    (void)state;
    static const struct {
        struct fake_answer answer;
        int details, asks;
    } rows[] = {
        {HTTP("200 OK", "{\"ranks\":[]}"), 3, 3},
        {HTTP("404 Not Found", "404 not found\n"), 0, 1}, /* an agent of before */
        {HTTP("302 Found", ""), 0, 1},
        {HTTP("503 Service Unavailable", ""), 0, 3}, /* it may start again */
        {{.bytes = "HTTP/1.1 200 OK\r\n", .then = FAKE_CLOSE}, 0, 3},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct fake_answer answers[] = {HTTP("200 OK", NUMBERS("1")), rows[i].answer,
                                              rows[i].answer, rows[i].answer};
        struct asker_fixture f;
        asker_open_fixture(&f, answers, array_length(answers));
        asker_ask_detail(f.asker, "ns/j"); /* nobody was heard yet */
        asker_ask_detail(f.asker, "ns/other");
        asker_pass(&f, ASKER_EVERY_MS);
        assert_int_equal(asker_requests(&f), 1);
        for (int look = 0; look < 3; look++) {
            asker_ask_detail(f.asker, "ns/j");
            asker_ask_detail(f.asker, "ns/j"); /* one is under way */
            struct error err;
            while (http_in_flight(f.http) > 0)
                assert_ok(http_poll(f.http, NULL, 0, 20, &err), &err);
        }
        if (f.details != rows[i].details || asker_requests(&f) != 1 + rows[i].asks)
            fail_msg("row %zu: %d details of %d asks", i, f.details, asker_requests(&f) - 1);
        auto_free char *request = fake_server_request(f.server, 1);
        assert_non_null(strstr(request, "GET /progress/detail HTTP/1.1\r\n"));
        assert_int_equal(asker_asks(f.asker), asker_requests(&f));
        assert_int_equal(asker_unanswered(f.asker), rows[i].asks - rows[i].details);
        assert_int_equal(f.news, 1);
        f.pod.restart_count++; /* another process may know them */
        asker_follow(f.asker, "ns/j", &f.snapshot);
        asker_ask_detail(f.asker, "ns/j");
        assert_int_equal(http_in_flight(f.http), 0);
        asker_close_fixture(&f);
    }
}

static void a_job_that_goes_cancels_the_ask_for_details(void **state)
{
    (void)state;
    static const struct fake_answer answers[] = {HTTP("200 OK", NUMBERS("1")),
                                                 {.bytes = "HTTP/1.1 200", .then = FAKE_HOLD}};
    struct asker_fixture f;
    struct error err;
    asker_open_fixture(&f, answers, array_length(answers));
    asker_pass(&f, ASKER_EVERY_MS);
    asker_ask_detail(f.asker, "ns/j");
    assert_int_equal(http_in_flight(f.http), 1);
    assert_ok(http_poll(f.http, NULL, 0, 20, &err), &err);
    asker_forget_all(f.asker);
    assert_int_equal(http_in_flight(f.http), 0);
    assert_int_equal(f.details, 0);
    asker_close_fixture(&f);
}

int main(void)
{
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* is no way to a pod */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(details_are_asked_for_by_who_looks),
        cmocka_unit_test(a_job_that_goes_cancels_the_ask_for_details),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
