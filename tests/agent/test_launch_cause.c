/* Why ranks end, as they and their launcher tell it; the launcher starts this very program for each
 * rank. */
#include "tests/agent/speaking_ranks.h"
#include "tests/support.h"

#include "agent/telemetry/termination_log.h"
#include "base/contract.h"
#include "base/file.h"
#include "base/mem.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

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
        assert_int_equal(launched_run("test_launch_cause", rows[i].how, place.file,
                                      rows[i].max_restarts, (struct launch_output_spec){0}),
                         rows[i].expected);
        assert_int_equal(launched_size(place.file), rows[i].rounds * LAUNCHED_RANKS);
        launched_place_close(&place);
    }
}

static void test_a_death_by_a_signal_is_told(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    auto_free char *path = xasprintf("%s/err", place.directory);
    char text[1000] = "";
    assert_int_equal(speaking_ranks_launch("test_launch_cause", &place, "killed", 0,
                                           (struct launch_output_spec){0}),
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
        speaking_ranks_launch("test_launch_cause", &place, rows[i].how, 0,
                              (struct launch_output_spec){0});
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
        speaking_ranks_launch("test_launch_cause", &place, rows[i].how, rows[i].max_restarts,
                              (struct launch_output_spec){0});
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
        {"shout, killed", "", "", 0, 128 + SIGKILL, SPEAKING_RANKS_LINES, 1},
        {"shout", "", "", 1, 5, 2 * SPEAKING_RANKS_LINES, 2},
        {"shout, killed", "2", "", 0, 128 + SIGKILL, SPEAKING_RANKS_LINES, 1},
        {"shout, killed", "", "3", 0, 128 + SIGKILL, 0, 1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct launched_place place = launched_place_open();
        auto_free char *path = xasprintf("%s/err", place.directory);
        const struct launch_output_spec output = {
            .log_dir = place.directory, .tee = rows[i].tee, .redirects = rows[i].redirects};
        assert_int_equal(speaking_ranks_launch("test_launch_cause", &place, rows[i].how,
                                               rows[i].max_restarts, output),
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

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return speaking_ranks_main(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_would_repeat_is_not_tried_again),
        cmocka_unit_test(test_a_death_by_a_signal_is_told),
        cmocka_unit_test(test_the_cause_is_told),
        cmocka_unit_test(test_the_kubelet_is_told),
        cmocka_unit_test(test_the_last_lines_of_the_cause_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
