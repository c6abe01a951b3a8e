/* Progress reports from the socket: what counts as one, and that the folder goes with it. */
#include "base/contract.h"
#include "base/mem.h"
#include "cli/inbox.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REPORT                                                                                     \
    "{\"epoch\":2,\"epochs\":3,\"step\":10,\"steps\":30,\"loss\":-0.5,\"samplesPerSecond\":99.5,"  \
    "\"secondsLeft\":7,\"worldSize\":4}"

/* What a run tells operators, as well. */
#define ACCOUNT                                                                                    \
    "{\"step\":12,\"steps\":30,\"worldSize\":4,\"lastProgressTime\":\"2026-01-01T00:00:00Z\","     \
    "\"seconds\":{\"step\":1.5}}\n"

/* And what it knows of its ranks. */
#define RANKS                                                                                      \
    "{\"ranks\":[{\"rank\":0,\"state\":\"running\",\"phase\":\"step\",\"waits\":true,"             \
    "\"compute_ratio\":1.25},{\"rank\":7,\"state\":\"straggling\",\"phase\":\"\\u001b[31m and "    \
    "more words\",\"compute_ratio\":1e9},{\"state\":\"hung\"}]}"

static void test_parse(void **state)
{
    (void)state;
    struct progress progress;
    assert_true(inbox_parse(REPORT, strlen(REPORT), &progress));
    assert_true(progress.known && progress.has_loss);
    assert_int_equal(progress.epoch, 2);
    assert_int_equal(progress.epochs, 3);
    assert_int_equal(progress.step, 10);
    assert_int_equal(progress.steps, 30);
    assert_true(progress.loss == -0.5 && progress.samples_per_s == 99.5);
    assert_true(progress.seconds_left == 7);

    assert_true(inbox_parse("{\"step\":\"x\"}", 12, &progress));
    assert_int_equal(progress.step, -1);
    assert_false(progress.has_loss);

    static const struct {
        const char *text, *url;
    } urls[] = {
        {"{\"worldSize\":4,\"url\":\"http://127.0.0.1:9401/\"}", "http://127.0.0.1:9401/"},
        {"{\"url\":\"file:///etc\"}", ""},
        {"{\"url\":\"http://\\u001b[2J\"}", ""},
        {"{\"url\":7}", ""},
        {"{}", ""},
    };
    for (size_t i = 0; i < array_length(urls); i++) {
        assert_true(inbox_parse(urls[i].text, strlen(urls[i].text), &progress));
        assert_string_equal(progress.url, urls[i].url);
        assert_false(progress.known);
    }

    static const struct {
        const char *text;
        double seconds_left;
    } times[] = {
        {"{\"secondsLeft\":1e9}", 1e9},
        {"{\"secondsLeft\":1e10}", -1}, /* a view could not count its milliseconds */
        {"{\"secondsLeft\":1e300}", -1},
        {"{\"secondsLeft\":-5}", -5},
    };
    for (size_t i = 0; i < array_length(times); i++) {
        assert_true(inbox_parse(times[i].text, strlen(times[i].text), &progress));
        assert_true(progress.seconds_left == times[i].seconds_left);
    }

    static const char *const no_reports[] = {"", "{", "[]", "7", "{\"step\":1}x", "\xff"};
    for (size_t i = 0; i < array_length(no_reports); i++) {
        struct progress untouched = {.step = 5};
        assert_false(inbox_parse(no_reports[i], strlen(no_reports[i]), &untouched));
        assert_int_equal(untouched.step, 5);
    }
}

static void test_socket(void **state)
{
    (void)state;
    char *folder = support_temp_dir();
    setenv("XDG_RUNTIME_DIR", folder, 1);
    struct inbox inbox;
    struct error err;
    assert_ok(inbox_open(&inbox, &err), &err);
    struct reports reports = {0};
    assert_false(inbox_read(&inbox, &reports));

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, inbox.path, sizeof inbox.path);
    auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    static const char *const sent[] = {"{\"step\":1}", REPORT, ACCOUNT, RANKS, "nonsense"};
    for (size_t i = 0; i < array_length(sent); i++)
        assert_true(sendto(fd, sent[i], strlen(sent[i]), 0, (struct sockaddr *)&address,
                           sizeof address) > 0);
    assert_true(inbox_read(&inbox, &reports));
    assert_int_equal(reports.progress.step, 10); /* the last that was one */
    assert_int_equal(reports.training.step, 12);
    assert_int_equal(reports.training.spent_ms[TRAINING_SPENT_STEP], 1500);
    assert_int_equal(reports.ranks.count, 3);
    const struct rank_item *ranks = reports.ranks.items;
    assert_true(ranks[0].waits && !ranks[0].straggles && !ranks[0].hangs);
    assert_true(ranks[0].compute_ratio > 1.24 && ranks[0].compute_ratio < 1.26);
    assert_string_equal(ranks[0].phase, "step");
    assert_true(ranks[1].rank == 7 && ranks[1].straggles && !ranks[1].waits);
    assert_string_equal(ranks[1].phase, " [31m and more "); /* nothing that moves a cursor */
    assert_true(ranks[2].hangs);
    assert_false(inbox_read(&inbox, &reports));

    char path[sizeof inbox.path];
    memcpy(path, inbox.path, sizeof path);
    inbox_close(&inbox);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rmdir(folder), 0); /* empty */
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
