#include "tests/support.h"

#include "agent/report/progress.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const struct progress_report report = {
    .epoch = 2,
    .epochs = 3,
    .step = 240,
    .steps = 705,
    .loss = 0.5,
    .samples_per_s = 2048,
    .seconds_left = 58.5,
    .world_size = 4,
};
static const char report_text[] =
    "{\"epoch\":2,\"epochs\":3,\"step\":240,\"steps\":705,\"loss\":0.5,"
    "\"samplesPerSecond\":2048.0,\"secondsLeft\":58.5,\"worldSize\":4}";

static void a_report_is_one_json_object(void **state)
{
    (void)state;
    auto_str struct str text;
    str_init(&text, 1024);
    progress_format(&report, &text);
    assert_string_equal(str_text(&text), report_text);
    struct progress_report served = report;
    served.url = "http://127.0.0.1:9401/";
    str_clear(&text);
    progress_format(&served, &text);
    assert_non_null(
        strstr(str_text(&text), ",\"worldSize\":4,\"url\":\"http://127.0.0.1:9401/\"}"));
    served.epoch = 0; /* before any step */
    str_clear(&text);
    progress_format(&served, &text);
    assert_string_equal(str_text(&text), "{\"worldSize\":4,\"url\":\"http://127.0.0.1:9401/\"}");
}

static void what_is_not_a_number_is_null(void **state)
{
    (void)state;
    struct progress_report diverged = report;
    diverged.loss = (double)NAN;
    auto_str struct str text;
    str_init(&text, 1024);
    progress_format(&diverged, &text);
    assert_non_null(strstr(str_text(&text), "\"loss\":null"));
}

static void reports_arrive_and_a_full_queue_blocks_nobody(void **state)
{
    (void)state;
    auto_free char *directory = support_temp_dir();
    auto_free char *path = xasprintf("%s/s", directory);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    struct progress *progress = progress_open(path);
    for (int i = 0; i < 10000; i++)
        progress_send(progress, &report);
    char text[1024] = "";
    assert_int_equal(recv(fd, text, sizeof text - 1, 0), strlen(report_text));
    assert_string_equal(text, report_text);
    progress_close(progress);
    support_remove_tree(directory);
}

static void nobody_listening_is_normal(void **state)
{
    (void)state;
    const char *paths[] = {NULL, "", "/nonexistent/socket"};
    for (size_t i = 0; i < array_length(paths); i++) {
        struct progress *progress = progress_open(paths[i]);
        progress_send(progress, &report);
        progress_close(progress);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_is_one_json_object),
        cmocka_unit_test(what_is_not_a_number_is_null),
        cmocka_unit_test(reports_arrive_and_a_full_queue_blocks_nobody),
        cmocka_unit_test(nobody_listening_is_normal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
