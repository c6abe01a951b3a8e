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
    struct progress progress = {0};
    assert_false(inbox_read(&inbox, &progress));

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, inbox.path, sizeof inbox.path);
    auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    static const char *const sent[] = {"{\"step\":1}", REPORT, "nonsense"};
    for (size_t i = 0; i < array_length(sent); i++)
        assert_true(sendto(fd, sent[i], strlen(sent[i]), 0, (struct sockaddr *)&address,
                           sizeof address) > 0);
    assert_true(inbox_read(&inbox, &progress));
    assert_int_equal(progress.step, 10); /* the last that was one */
    assert_false(inbox_read(&inbox, &progress));

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
