/* What ranks say, to people and to their launcher, which starts this very program for each rank:
 * `test_launch_output rank HOW FILE`. */
#include "tests/agent/launched.h"
#include "tests/support.h"

#include "agent/launch/heartbeat.h"
#include "agent/launch/last_words.h"
#include "agent/launch/launch_output.h"
#include "agent/telemetry/termination_log.h"
#include "base/contract.h"
#include "base/file.h"
#include "base/mem.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHOUTED_LINES = 5000 }; /* more than a pipe holds */

/* ---- a rank ---- */

/* All ranks say why they end; only the first ends by itself. */
static int follow_peer(const char *how, const char *file, int rank)
{
    bool has_met = strcmp(how, "peer missing") != 0, diverged = strcmp(how, "peer diverged") == 0;
    struct error err;
    int pipe = launched_number("SHOAL_LAST_WORDS_FD");
    last_words_inherit();
    /* what the rank starts gets neither */
    if ((fcntl(pipe, F_GETFD) & FD_CLOEXEC) == 0 || getenv("SHOAL_LAST_WORDS_FD"))
        return 9;
    launched_leave_word(file, ".");
    launched_wait_for_words(file,
                            LAUNCHED_RANKS * (1 + launched_number("TORCHELASTIC_RESTART_COUNT")));
    error_set(&err,
              diverged  ? ERR_DIVERGED
              : has_met ? ERR_PEER
                        : ERR_TIMEOUT,
              "rank 1 is lost (connection closed)");
    last_words_send(&err, has_met);
    error_set(&err, ERR_IO, "not the cause");
    last_words_send(&err, true);
    if (rank == 6)
        return diverged ? EXIT_FAILED : EXIT_RETRYABLE;
    launched_pause_until_signal();
    return EXIT_TERMINATED;
}

/* Not by stdio, which loses what a signal interrupts. */
static void say(const char *text)
{
    for (ssize_t n; *text; text += n > 0 ? n : 0)
        n = write(STDERR_FILENO, text, strlen(text));
}

static void shout(void)
{
    char line[128];
    for (int i = 0; i < SHOUTED_LINES; i++) {
        snprintf(line, sizeof line, "line %d: of many words that nobody reads but those who seek\n",
                 i);
        say(line);
    }
    say("and no end");
}

static const char *answer_file;

static void answer(int number)
{
    (void)number;
    launched_leave_word(answer_file, "!");
}

/* Stopped, as by SIGSTOP: it could not even end itself. */
static int stand_still(void)
{
    struct heartbeat heartbeat = heartbeat_inherit();
    heartbeat_send(&heartbeat, 200, "phase data at step 12; its last collective: 17, all_gather");
    return raise(SIGSTOP);
}

static int rank_main(const char *how, const char *file)
{
    int rank = launched_number("RANK");
    answer_file = file;
    alarm(SUPPORT_PATIENCE_S);
    signal(SIGTERM, launched_on_signal);
    signal(SIGUSR1, answer);
    if (strcmp(how, "answer") == 0) {
        launched_leave_word(file, ".");
        shout();
        return 0;
    }
    if (strcmp(how, "speak") == 0) {
        printf("out of %d\nand no end", rank);
        fprintf(stderr, "err of %d\n", rank);
        return 0;
    }
    if (strncmp(how, "peer", 4) == 0)
        return follow_peer(how, file, rank);
    if (rank != 6)
        return launched_pause_until_signal() == SIGTERM ? 8 : 9;
    if (strcmp(how, "stuck") == 0)
        return stand_still();
    if (strncmp(how, "shout", 5) == 0)
        shout();
    if (strcmp(how, "killed") == 0 || strcmp(how, "shout, killed") == 0)
        raise(SIGKILL);
    return strcmp(how, "wrong") == 0 ? EXIT_CONFIG : 5;
}

/* ---- the tests ---- */

/* What ranks say decides whether they start again. */
static void test_what_would_repeat_is_not_tried_again(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int max_restarts, expected, rounds;
    } rows[] = {{"peer missing", 5, EXIT_RETRYABLE, 1}, /* nobody came: nor would they again */
                {"peer diverged", 5, EXIT_FAILED, 1},   /* as it would again */
                {"peer lost", 1, EXIT_RETRYABLE, 2}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct launched_place place = launched_place_open();
        assert_int_equal(launched_run("test_launch_output", rows[i].how, place.file,
                                      rows[i].max_restarts, (struct launch_output_spec){0}),
                         rows[i].expected);
        assert_int_equal(launched_size(place.file), rows[i].rounds * LAUNCHED_RANKS);
        launched_place_close(&place);
    }
}

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

/* Launches in a process of its own, whose output goes to `out` and `err` in the directory. */
static int launch_speakers(const struct launched_place *place, const char *how, int max_restarts,
                           struct launch_output_spec output)
{
    auto_free char *out = xasprintf("%s/out", place->directory);
    auto_free char *err = xasprintf("%s/err", place->directory);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open(out, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 1);
        dup2(open(err, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 2);
        _exit(launched_run("test_launch_output", how, place->file, max_restarts, output));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
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
        launch_speakers(&place, "speak", 0,
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
    assert_int_equal(launch_speakers(&place, "speak", 0, (struct launch_output_spec){.tee = "2"}),
                     0);
    assert_lines(err, "[default0]:err of 6\n[default1]:err of 7\n[default2]:err of 8\n");
    launched_place_close(&place);
}

static void test_a_death_by_a_signal_is_told(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    auto_free char *path = xasprintf("%s/err", place.directory);
    char text[1000] = "";
    assert_int_equal(launch_speakers(&place, "killed", 0, (struct launch_output_spec){0}),
                     128 + SIGKILL);
    auto_fclose FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_non_null(strstr(text, "shoal-agent: rank 6 (local rank 0, pid "));
    assert_non_null(strstr(text, ": signal 9\n"));
    launched_place_close(&place);
}

static const char *termination_log;

static void explain(const char *why, const char *lines)
{
    termination_log_explain(termination_log, why, lines);
}

/* The run's numbers stay, and a rank that has told its error has no need of its last lines. */
static void test_the_kubelet_is_told(void **state)
{
    (void)state;
    static const char numbers[] = "{\"steps\":4}";
    static const struct {
        const char *how, *has, *has_not;
    } rows[] = {
        {"shout, killed", ": signal 9\n    line 49", "rank 0 said"},
        {"fail", ": exit code 5\n{\"steps\":4}", "rank 0 said"},
        {"peer diverged", "rank 6 (local rank 0, pid ", "rank 0 said"},
        {"peer lost", "rank 0 said", "exit code"}, /* another pod tells */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct launched_place place = launched_place_open();
        auto_free char *path = xasprintf("%s/termination-log", place.directory);
        auto_fclose FILE *file = fopen(path, "we+");
        char text[TRAINING_MAX_BYTES + 1];
        assert_true(fprintf(file, "rank 0 said\n%s", numbers) > 0);
        assert_int_equal(fflush(file), 0);
        termination_log = path;
        launched_explain = explain;
        launch_speakers(&place, rows[i].how, 0, (struct launch_output_spec){0});
        launched_explain = NULL;
        rewind(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        size_t numbers_at = strlen(text) - strlen(numbers);
        if (!strstr(text, rows[i].has) || strstr(text, rows[i].has_not) ||
            strcmp(text + numbers_at, numbers) != 0)
            fail_msg("%s: %s", rows[i].how, text);
        launched_place_close(&place);
    }
}

#define STUCK                                                                                      \
    "shoal-agent: rank 6 (local rank 0, pid ...) is stuck: it gave no sign of life for 0.2 s, "    \
    "and is killed; it was in phase data at step 12; its last collective: 17, all_gather\n"        \
    "shoal-agent: rank 6, process ..., as the kernel shows it:\n"                                  \
    "  thread ... (main): ...\n"                                                                   \
    "shoal-agent: rank 6 (local rank 0, pid ...: it gave no sign of life, and was killed; it was " \
    "in phase data at step 12; its last collective: 17, all_gather\n"

/* Each line once, and of those that follow another's failure only what it was. */
static void test_the_cause_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int max_restarts;
        const char *expected; /* in which ... stands for anything */
    } rows[] = {
        {"peer lost", 1,
         "shoal-agent: a peer was lost (rank 1 is lost (connection closed)): all local ranks start "
         "again, 1 of 1 times\n"
         "shoal-agent: rank 6 (local rank 0, pid ...: exit code 138: rank 1 is lost (connection "
         "closed)\n"
         "shoal-agent: no restart is left of 1: ends with exit code 138\n"},
        {"peer missing", 1,
         "shoal-agent: rank 6 (local rank 0, pid ...: exit code 138: rank 1 is lost (connection "
         "closed)\n"},
        {"fail", 1,
         "shoal-agent: rank 6 (local rank 0, pid ...: exit code 5\n"
         "shoal-agent: all local ranks start again, 1 of 1 times\n"
         "shoal-agent: rank 6 (local rank 0, pid ...: exit code 5\n"
         "shoal-agent: no restart is left of 1: ends with exit code 5\n"},
        {"stuck", 1,
         STUCK "shoal-agent: all local ranks start again, 1 of 1 times\n" STUCK
               "shoal-agent: no restart is left of 1: ends with exit code 138\n"},
        {"wrong", 1, "shoal-agent: rank 6 (local rank 0, pid ...: exit code 2\n"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct launched_place place = launched_place_open();
        auto_free char *path = xasprintf("%s/err", place.directory);
        char text[2000] = "";
        launch_speakers(&place, rows[i].how, rows[i].max_restarts, (struct launch_output_spec){0});
        auto_fclose FILE *file = fopen(path, "re");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        auto_free char *pattern = xstrdup(rows[i].expected);
        for (char *at = pattern; (at = strstr(at, "..."));)
            memcpy(at, "*", 1), memmove(at + 1, at + 3, strlen(at + 3) + 1);
        if (fnmatch(pattern, text, 0))
            fail_msg("not as expected:\n%s", text);
        launched_place_close(&place);
    }
}

static size_t count_of(const char *text, const char *words)
{
    size_t count = 0;
    for (const char *at = strstr(text, words); at; at = strstr(at + 1, words))
        count++;
    return count;
}

static char *read_whole(const char *path)
{
    struct error err;
    char *text;
    size_t bytes;
    assert_ok(file_read(path, 1 << 20, &text, &bytes, &err), &err);
    return text;
}

/* Of a rank that could not tell its launcher why, its last lines are told, once, wherever they
 * went. */
static void test_the_last_lines_of_the_cause_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *how, *tee, *redirects;
        int max_restarts, exit_code;
        size_t lines, told; /* passed on; beside the cause */
    } rows[] = {
        {"shout, killed", "", "", 0, 128 + SIGKILL, SHOUTED_LINES, 1},
        {"shout", "", "", 1, 5, 2 * SHOUTED_LINES, 2},
        {"shout, killed", "2", "", 0, 128 + SIGKILL, SHOUTED_LINES, 1},
        {"shout, killed", "", "3", 0, 128 + SIGKILL, 0, 1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct launched_place place = launched_place_open();
        auto_free char *path = xasprintf("%s/err", place.directory);
        const struct launch_output_spec output = {
            .log_dir = place.directory, .tee = rows[i].tee, .redirects = rows[i].redirects};
        assert_int_equal(launch_speakers(&place, rows[i].how, rows[i].max_restarts, output),
                         rows[i].exit_code);
        auto_free char *text = read_whole(path);
        assert_int_equal(count_of(text, ": of many words"), rows[i].lines + 9 * rows[i].told);
        assert_int_equal(
            count_of(text, "shoal-agent: the last lines of rank 6:\n    line 4991: of"),
            rows[i].told);
        assert_int_equal(count_of(text,
                                  "\n    line 4999: of many words that nobody reads but those "
                                  "who seek\n    and no end\n"),
                         rows[i].told);
        launched_place_close(&place);
    }
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
    assert_int_equal(lines, LAUNCHED_RANKS * SHOUTED_LINES);
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

static void test_a_tail_keeps_the_last_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int times; /* that it is added */
        const char *expected;
    } rows[] = {
        {"", 1, ""},
        {"\n\n", 1, ""},
        {"one\n", 1, "    one\n"},
        {"one\ntwo", 1, "    one\n    two\n"},
        {"\033[1mbold\r\n", 1, "     [1mbold \n"},
        {"ab\n", 12,
         "    ab\n    ab\n    ab\n    ab\n    ab\n    ab\n    ab\n    ab\n    ab\n    ab\n"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct output_tail tail = {.total = 0};
        auto_str struct str text;
        str_init(&text, 4 * OUTPUT_TAIL_BYTES);
        for (int t = 0; t < rows[i].times; t++)
            output_tail_add(&tail, rows[i].text, strlen(rows[i].text));
        output_tail_print(&tail, &text);
        assert_string_equal(str_text(&text), rows[i].expected);
    }
}

/* What the ring has lost the beginning of is not shown. */
static void test_a_tail_shows_whole_lines(void **state)
{
    (void)state;
    enum { LINE = 1000 };
    char line[3 * OUTPUT_TAIL_BYTES];
    struct output_tail tail = {.total = 0};
    auto_str struct str text;
    str_init(&text, 4 * OUTPUT_TAIL_BYTES);
    for (int i = 0; i < 7; i++) {
        memset(line, 'a' + i, LINE);
        line[LINE - 1] = '\n';
        output_tail_add(&tail, line, LINE);
    }
    output_tail_print(&tail, &text);
    assert_int_equal(text.length, 4 * (LINE + 4));
    for (int i = 0; i < 4; i++)
        assert_int_equal(str_text(&text)[(size_t)i * (LINE + 4) + 4], 'd' + i);
    str_clear(&text);
    memset(line, 'x', sizeof line); /* all of it, of one line */
    output_tail_add(&tail, line, sizeof line);
    output_tail_print(&tail, &text);
    assert_int_equal(text.length, OUTPUT_TAIL_BYTES + 5);
    assert_int_equal(strspn(str_text(&text) + 4, "x"), OUTPUT_TAIL_BYTES);
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
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error error;
        assert_fails(launch_output_check(&rows[i].spec, &error), &error, ERR_CONFIG,
                     rows[i].message);
    }
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return rank_main(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_would_repeat_is_not_tried_again),
        cmocka_unit_test(test_output_goes_where_it_is_sent),
        cmocka_unit_test(test_output_can_be_told_without_files),
        cmocka_unit_test(test_a_death_by_a_signal_is_told),
        cmocka_unit_test(test_the_cause_is_told),
        cmocka_unit_test(test_the_kubelet_is_told),
        cmocka_unit_test(test_the_last_lines_of_the_cause_are_told),
        cmocka_unit_test(test_who_does_not_read_stderr_does_not_stop_the_launcher),
        cmocka_unit_test(test_who_writes_for_ever_does_not_stop_the_launcher),
        cmocka_unit_test(test_a_tail_keeps_the_last_lines),
        cmocka_unit_test(test_a_tail_shows_whole_lines),
        cmocka_unit_test(test_wrong_outputs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
