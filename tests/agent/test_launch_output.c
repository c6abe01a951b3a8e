/* Where the output of ranks goes; their launcher starts this very program for each rank. */
#include "tests/agent/speaking_ranks.h"
#include "tests/support.h"

#include "agent/launch/launch_output.h"
#include "base/mem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void assert_text(const char *path, const char *expected)
{
    char text[1000] = "";
    auto_fclose FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_string_equal(text, expected);
}

static int compare_pointers(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lines of several ranks come in any order. */
static void assert_lines(const char *path, const char *expected)
{
    char text[1000] = "", sorted[1000] = "";
    char *lines[16];
    size_t count = 0;
    auto_fclose FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line && count < 16;
         line = strtok_r(NULL, "\n", &rest))
        lines[count++] = line;
    qsort(lines, count, sizeof lines[0], compare_pointers);
    for (size_t i = 0; i < count; i++)
        strcat(strcat(sorted, lines[i]), "\n");
    assert_string_equal(sorted, expected);
}

static void test_output_goes_where_it_is_sent(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    auto_free char *out = xasprintf("%s/out", place.directory);
    auto_free char *err = xasprintf("%s/err", place.directory);
    auto_free char *first = xasprintf("%s/logs/blue/attempt_0/0/stdout.log", place.directory);
    auto_free char *second = xasprintf("%s/logs/blue/attempt_0/1/stderr.log", place.directory);
    auto_free char *third = xasprintf("%s/logs/blue/attempt_0/2/stdout.log", place.directory);
    auto_free char *logs = xasprintf("%s/logs", place.directory);
    assert_int_equal(
        speaking_ranks_launch("test_launch_output", &place, "speak", 0,
                              (struct launch_output_spec){
                                  .log_dir = logs, .run = "blue", .redirects = "3", .tee = "1:3"}),
        0);
    assert_text(first, "out of 6\nand no end");
    assert_text(second, "err of 7\n");
    assert_text(third, "out of 8\nand no end");
    assert_lines(out, "[default1]:and no end\n[default1]:out of 7\n");
    assert_lines(err, "[default1]:err of 7\n");
    launched_place_close(&place);
}

static void test_output_can_be_told_without_files(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    auto_free char *err = xasprintf("%s/err", place.directory);
    assert_int_equal(speaking_ranks_launch("test_launch_output", &place, "speak", 0,
                                           (struct launch_output_spec){.tee = "2"}),
                     0);
    assert_lines(err, "[default0]:err of 6\n[default1]:err of 7\n[default2]:err of 8\n");
    launched_place_close(&place);
}

/* As when a terminal is held: ranks wait in their writes, and the launcher goes on. */
static void test_who_does_not_read_stderr_does_not_stop_the_launcher(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    int ends[2], status;
    char text[4096];
    size_t lines = 0;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        _exit(launched_run("test_launch_output", "answer", place.file, 0,
                           (struct launch_output_spec){0}));
    }
    struct pollfd full = {.fd = ends[1], .events = POLLOUT};
    launched_wait_for_words(place.file, LAUNCHED_RANKS);
    support_wait_until(poll(&full, 1, 0) == 0);
    kill(pid, SIGUSR1);
    launched_wait_for_words(place.file, 2L * LAUNCHED_RANKS);
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0;)
        for (ssize_t i = 0; i < n; i++)
            lines += text[i] == '\n';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(lines, LAUNCHED_RANKS * SPEAKING_RANKS_LINES);
    launched_place_close(&place);
}

/* A rank, or a process that it has left behind: the launcher still hears signals, and ends. */
static int read_from_one_who_writes_for_ever(void)
{
    static struct output_tail tail;
    struct launch_stream streams[2];
    struct error err;
    int fds[2], status;
    freopen("/dev/null", "w", stderr);
    alarm(SUPPORT_PATIENCE_S);
    if (launch_output_open(&(struct launch_output_spec){0}, 0, 0, &tail, streams, fds, &err))
        return 1;
    pid_t writer = fork();
    while (writer == 0)
        if (write(fds[1], "on and on\n", 10) < 0)
            _exit(1);
    launch_stream_read(&streams[1]);
    launch_stream_close(&streams[1], 0);
    kill(writer, SIGKILL);
    return waitpid(writer, &status, 0) != writer;
}

static void test_who_writes_for_ever_does_not_stop_the_launcher(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(read_from_one_who_writes_for_ever());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_wrong_outputs_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct launch_output_spec spec;
        const char *message;
    } rows[] = {
        {{.tee = "4"}, "runtime.tee: '4' is not 0, 1, 2, 3 or LOCAL_RANK:WHICH,..."},
        {{.tee = "0:3,x:1"}, "runtime.tee: '0:3,x:1'"},
        {{.tee = "0:"}, "runtime.tee: '0:'"},
        {{.redirects = "33", .log_dir = "d"}, "runtime.redirects: '33'"},
        {{.redirects = "3"}, "runtime.redirects needs runtime.log_dir"},
        {{.redirects = "0:0,1:2"}, "runtime.redirects needs runtime.log_dir"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error error;
        assert_fails(launch_output_check(&rows[i].spec, &error), &error, ERR_CONFIG,
                     rows[i].message);
    }
    /* torchrun's own default */
    static const char *const nothing[] = {NULL, "", "0", "0:0,1:0"};
    for (size_t i = 0; i < array_length(nothing); i++) {
        struct error error;
        const struct launch_output_spec spec = {.redirects = nothing[i]};
        assert_ok(launch_output_check(&spec, &error), &error);
    }
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return speaking_ranks_main(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_goes_where_it_is_sent),
        cmocka_unit_test(test_output_can_be_told_without_files),
        cmocka_unit_test(test_who_does_not_read_stderr_does_not_stop_the_launcher),
        cmocka_unit_test(test_who_writes_for_ever_does_not_stop_the_launcher),
        cmocka_unit_test(test_wrong_outputs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
