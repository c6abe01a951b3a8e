/* Progress for a TrainJob: what is posted, how often, and that no failure is more than a line. */
#include "agent/telemetry/trainjob_status.h"

#include "base/clock.h"
#include "base/mem.h"
#include "tests/agent/run_fixture.h"
#include "tests/fake_server.h"
#include "tests/pki.h"
#include "tests/support.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void expect(const struct run_state *s, bool is_done, const char *text)
{
    auto_str struct str out;
    str_init(&out, 4096);
    trainjob_status_format(s, is_done, &out);
    assert_string_equal(str_text(&out), text);
}

static void the_body_tells_what_is_known(void **state)
{
    (void)state;
    struct run_state s;
    const struct run_facts facts = run_fixture_facts(); /* of 100 steps */
    run_state_init(&s, &facts, RUN_FIXTURE_WALL_US);
    expect(&s, false,
           "{\"trainerStatus\":{\"lastUpdatedTime\":\"2025-06-17T16:24:52Z\","
           "\"progressPercentage\":0,\"metrics\":[]}}");
    struct run_numbers numbers = run_fixture_numbers(25);
    numbers.grad_norm = (double)NAN;
    run_state_step(&s, &numbers, RUN_FIXTURE_WALL_US + 1000000);
    expect(&s, false,
           "{\"trainerStatus\":{\"lastUpdatedTime\":\"2025-06-17T16:24:53Z\","
           "\"progressPercentage\":25,\"estimatedRemainingSeconds\":38,\"metrics\":["
           "{\"name\":\"loss\",\"value\":\"2.5\"},"
           "{\"name\":\"learning_rate\",\"value\":\"0.0001\"},"
           "{\"name\":\"epoch\",\"value\":\"0.25\"},"
           "{\"name\":\"tokens_per_second\",\"value\":\"8192\"},"
           "{\"name\":\"samples_per_second\",\"value\":\"16\"}]}}");
    s.facts.steps = 25; /* all steps, but the end is not told: the last save is not done */
    s.window.steps = 0;
    s.steps_per_s = s.tokens_per_s = s.samples_per_s = 0;
    expect(&s, false,
           "{\"trainerStatus\":{\"lastUpdatedTime\":\"2025-06-17T16:24:53Z\","
           "\"progressPercentage\":99,\"metrics\":[{\"name\":\"loss\",\"value\":\"2.5\"},"
           "{\"name\":\"learning_rate\",\"value\":\"0.0001\"},"
           "{\"name\":\"epoch\",\"value\":\"0.25\"}]}}");
    s.facts.steps = 0; /* nobody knows how many there will be */
    s.eval =
        (struct run_eval){.step = 25, .loss = 2.25, .perplexity = 9.5, .accuracy = (double)NAN};
    expect(&s, true,
           "{\"trainerStatus\":{\"lastUpdatedTime\":\"2025-06-17T16:24:53Z\","
           "\"progressPercentage\":100,\"estimatedRemainingSeconds\":0,\"metrics\":["
           "{\"name\":\"loss\",\"value\":\"2.5\"},"
           "{\"name\":\"learning_rate\",\"value\":\"0.0001\"},"
           "{\"name\":\"epoch\",\"value\":\"0.25\"},"
           "{\"name\":\"eval_loss\",\"value\":\"2.25\"},"
           "{\"name\":\"eval_perplexity\",\"value\":\"9.5\"}]}}");
}

/* ---- over HTTPS ---- */

struct place {
    struct pki_pair ca, server;
    struct fake_server *fake;
    char *url, *ca_file, *token_file;
};

static void write_text(const char *path, const char *text)
{
    auto_fclose FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
}

static void open_place(struct place *p, const struct fake_answer *answer, const char *directory)
{
    int64_t now_ms = clock_now_ms(), hour_ms = 3600000;
    pki_make("ca", NULL, now_ms - hour_ms, now_ms + hour_ms, &p->ca);
    pki_make("server", &p->ca, now_ms - hour_ms, now_ms + hour_ms, &p->server);
    p->fake = fake_server_open(
        answer, 1, &(struct fake_tls){.certificate = p->server.certificate, .key = p->server.key});
    p->url = xasprintf("https://localhost:%d/apis/status", fake_server_port(p->fake));
    p->ca_file = xasprintf("%s/ca.crt", directory);
    p->token_file = xasprintf("%s/token", directory);
    write_text(p->ca_file, p->ca.certificate);
    write_text(p->token_file, "first\n");
}

static void close_place(struct place *p)
{
    fake_server_close(p->fake);
    pki_free(&p->ca);
    pki_free(&p->server);
    free(p->url);
    free(p->ca_file);
    free(p->token_file);
}

static struct trainjob_status *open_status(const struct place *p, int interval_ms)
{
    struct trainjob_status *s = NULL;
    struct error err;
    const struct trainjob_status_setting setting = {p->url, p->ca_file, p->token_file, interval_ms};
    assert_ok(trainjob_status_open(&s, &setting, &err), &err);
    return s;
}

static void await_requests(const struct place *p, size_t count)
{
    support_wait_until(fake_server_request_count(p->fake) >= count);
    assert_int_equal(fake_server_request_count(p->fake), count);
}

static void expect_request(const struct place *p, size_t index, const char *token, const char *body)
{
    auto_free char *seen = fake_server_request(p->fake, index);
    auto_free char *bearer = xasprintf("\r\nAuthorization: Bearer %s\r\n", token);
    auto_free char *end = xasprintf("\r\n\r\n%s", body);
    const char *const parts[] = {"POST /apis/status HTTP/", bearer, end,
                                 "\r\nContent-Type: application/json\r\n"};
    for (size_t i = 0; i < array_length(parts); i++)
        if (!strstr(seen, parts[i]))
            fail_msg("no \"%s\" in: %s", parts[i], seen);
}

static void the_last_word_is_posted_with_the_token_of_the_day(void **state)
{
    static const struct fake_answer answer = {.bytes = FAKE_OK(2, "{}")};
    struct place p;
    open_place(&p, &answer, *state);
    struct trainjob_status *s = open_status(&p, 3600000);
    trainjob_status_publish(s, "{\"n\":1}");
    await_requests(&p, 1);
    write_text(p.token_file, "second");
    trainjob_status_publish(s, "{\"n\":2}"); /* its time has not come */
    trainjob_status_publish(s, "{\"n\":3}");
    trainjob_status_close(s);
    await_requests(&p, 2);
    expect_request(&p, 0, "first", "{\"n\":1}");
    expect_request(&p, 1, "second", "{\"n\":3}");
    close_place(&p);
}

enum { LOG_BYTES = 4096 };

static void await_log(const char *path)
{
    struct stat st = {0};
    support_wait_until(stat(path, &st) == 0 && st.st_size > 0);
}

/* What the thread logs of two bodies, each with an attempt of its own: it goes to a
 * file meanwhile. */
static void log_of_two(const struct place *p, const char *directory, char text[LOG_BYTES])
{
    auto_free char *path = xasprintf("%s/log", directory);
    int before = dup(STDERR_FILENO), there = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_true(before >= 0 && there >= 0 && dup2(there, STDERR_FILENO) >= 0);
    struct trainjob_status *s = open_status(p, 0);
    trainjob_status_publish(s, "{}");
    await_log(path);
    trainjob_status_publish(s, "{}");
    trainjob_status_close(s); /* the last word is tried */
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    close(there);
    auto_fclose FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, LOG_BYTES - 1, file)] = '\0';
}

static void a_failure_is_told_once(void **state)
{
    static const struct fake_answer refusal = {
        .bytes = "HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nforbidden"};
    for (int way = 0; way < 3; way++) {
        struct place p;
        open_place(&p, &refusal, *state);
        struct pki_pair other = {0};
        if (way == 1) {
            pki_make("other", NULL, clock_now_ms() - 3600000, clock_now_ms() + 3600000, &other);
            write_text(p.ca_file, other.certificate);
        }
        if (way == 2)
            assert_int_equal(remove(p.token_file), 0);
        char text[LOG_BYTES];
        log_of_two(&p, *state, text);
        if (way == 0)
            await_requests(&p, 2);
        const char *line = strstr(text, "the TrainJob does not show this run's progress");
        assert_non_null(line);
        assert_null(strstr(line + 1, "the TrainJob does not"));
        static const char *const why[] = {"HTTP 403: forbidden", "certificate", "token"};
        assert_non_null(strstr(line, why[way]));
        pki_free(&other);
        close_place(&p);
    }
}

static void all_three_variables_are_needed(void **state)
{
    (void)state;
    struct trainjob_status *s;
    struct error err;
    const struct trainjob_status_setting setting = {.url = "https://there/", .ca_file = "ca"};
    assert_fails(trainjob_status_open(&s, &setting, &err), &err, ERR_CONFIG,
                 "without KUBEFLOW_TRAINER_SERVER_CA_CERT and KUBEFLOW_TRAINER_SERVER_TOKEN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_body_tells_what_is_known),
        cmocka_unit_test_setup_teardown(the_last_word_is_posted_with_the_token_of_the_day,
                                        support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(a_failure_is_told_once, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test(all_three_variables_are_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
