/* The launcher starts this very program again for each rank: `test_launch rank HOW FILE`. The file
 * (under a temporary directory) is where ranks leave word for each other and for the test. */
#include "tests/agent/launched.h"
#include "tests/support.h"

#include "agent/launch/heartbeat.h"
#include "base/contract.h"
#include "base/mem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a rank ---- */

/* Each round leaves one word; only the round after two others is good. */
static int start_again(const char *how, const char *file, int rank)
{
    int attempt = launched_number("TORCHELASTIC_RESTART_COUNT");
    if (attempt != launched_number("SHOAL_RESTART_COUNT") - 4)
        return 7;
    if (strcmp(getenv("SHOAL_RUN_ID"), "a1") != 0 ||
        strcmp(getenv("SHOAL_RUN_SECRET"), "told") != 0)
        return 6;
    if (rank != 6)
        return attempt == 2 ? 0 : launched_pause_until_signal() == SIGTERM ? 8 : 9;
    launched_leave_word(file, ".");
    return strcmp(how, "wrong") == 0 ? 2 : attempt == 2 ? 0 : 5;
}

/* Who has lost rank 6 is gone before rank 6 is. */
static int lose_peer(const char *how, int rank)
{
    if (rank == 7)
        return EXIT_RETRYABLE;
    launched_pause_until_signal();
    return rank == 8 ? EXIT_TERMINATED : strcmp(how, "lost") == 0 ? 1 : EXIT_CONFIG;
}

static int beat(const char *how)
{
    bool is_stuck = strcmp(how, "stuck") == 0;
    struct heartbeat heartbeat = heartbeat_inherit();
    signal(SIGTERM, SIG_IGN);
    heartbeat_send(&heartbeat, SUPPORT_PATIENCE_MS, "");
    heartbeat_send(&heartbeat, is_stuck ? 200 : 0, "");
    usleep(400000);
    return is_stuck ? launched_pause_until_signal() : 6;
}

static int say(const char *how, const char *file)
{
    char line[200];
    if (strcmp(how, "secret") == 0)
        snprintf(line, sizeof line, "%s\n", getenv("SHOAL_RUN_SECRET"));
    else
        snprintf(line, sizeof line, "%s/%s %s/%s\n", getenv("RANK"), getenv("WORLD_SIZE"),
                 getenv("LOCAL_RANK"), getenv("LOCAL_WORLD_SIZE"));
    launched_leave_word(file, line);
    return 0;
}

static int rank_main(const char *how, const char *file)
{
    int rank = launched_number("RANK");
    alarm(SUPPORT_PATIENCE_S);
    signal(SIGTERM, strcmp(how, "deaf") == 0 ? SIG_IGN : launched_on_signal);
    signal(SIGUSR1, launched_on_signal);
    if (strcmp(how, "tell") == 0 || strcmp(how, "secret") == 0)
        return say(how, file);
    if (strcmp(how, "again") == 0 || strcmp(how, "wrong") == 0)
        return start_again(how, file, rank);
    launched_leave_word(file, ".");
    launched_wait_for_words(file, LAUNCHED_RANKS);
    if (strncmp(how, "lost", 4) == 0)
        return lose_peer(how, rank);
    if (strcmp(how, "signal") == 0)
        return launched_pause_until_signal() == SIGUSR1 ? 0 : 9;
    if (strcmp(how, "stay") == 0 || rank != 6)
        return launched_pause_until_signal() == SIGTERM ? 8 : 9; /* 8 must not hide rank 6's */
    if (strcmp(how, "killed") == 0)
        raise(SIGKILL);
    return strcmp(how, "stuck") == 0 || strcmp(how, "ended") == 0 ? beat(how) : 5;
}

/* ---- the tests ---- */

static int launch(const char *how, const char *file)
{
    return launched_run("test_launch", how, file, 0, (struct launch_output_spec){0});
}

/* The launcher in a process of its own, for signals. */
static pid_t launch_apart(const char *how, const char *file)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(launch(how, file));
    return pid;
}

static int compare_lines(const void *a, const void *b)
{
    return memcmp(a, b, 8);
}

static void test_ranks_are_told_who_they_are(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    assert_int_equal(launch("tell", place.file), 0);
    char text[200] = "";
    auto_fclose FILE *file = fopen(place.file, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text - 1, file), LAUNCHED_RANKS * 8);
    qsort(text, LAUNCHED_RANKS, 8, compare_lines);
    assert_string_equal(text, "6/9 0/3\n7/9 1/3\n8/9 2/3\n");
    launched_place_close(&place);
}

static void test_the_first_failure_stops_the_others_and_is_returned(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int expected;
    } rows[] = {{"fail", 5},  {"killed", 128 + SIGKILL},
                {"deaf", 5},  {"stuck", EXIT_RETRYABLE},
                {"ended", 6}, {"lost", 1}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct launched_place place = launched_place_open();
        assert_int_equal(launch(rows[i].how, place.file), rows[i].expected);
        launched_place_close(&place);
    }
}

static void test_signals_reach_every_rank(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    int status;
    pid_t pid = launch_apart("signal", place.file);
    launched_wait_for_words(place.file, LAUNCHED_RANKS);
    kill(pid, SIGUSR1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    launched_place_close(&place);
}

static void test_all_start_again_as_often_as_they_may(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int max_restarts, expected, rounds;
    } rows[] = {{"again", 5, 0, 3}, {"again", 2, 0, 3}, {"again", 1, 5, 2},
                {"again", 0, 5, 1}, {"wrong", 5, 2, 1}, {"lost for good", 5, 2, LAUNCHED_RANKS},
                /* a round in which each leaves a word */};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct launched_place place = launched_place_open();
        assert_int_equal(launched_run("test_launch", rows[i].how, place.file, rows[i].max_restarts,
                                      (struct launch_output_spec){0}),
                         rows[i].expected);
        assert_int_equal(launched_size(place.file), rows[i].rounds);
        launched_place_close(&place);
    }
}

static int count_open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* In a process of its own, which may start no other. */
static int launch_without_processes(void)
{
    const struct rlimit none = {0, 0};
    struct topology t = {
        .local_size = LAUNCHED_RANKS, .world_size = LAUNCHED_RANKS, .host = "127.0.0.1", .port = 1};
    char *argv[] = {(char *)"test_launch", NULL};
    const struct launch_options options = {.topology = &t, .argv = argv};
    struct error err = {.code = ERR_NONE};
    int exit_code, before = count_open_files();
    if (setrlimit(RLIMIT_NPROC, &none) || (geteuid() == 0 && setuid(65534)))
        return 1; /* the limit does not hold for root */
    if (launch_local_ranks(&options, &exit_code, &err) == 0 || err.code != ERR_IO)
        return 2;
    return count_open_files() == before ? 0 : 3;
}

static void test_a_rank_that_cannot_start_leaves_no_open_file(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(launch_without_processes());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Orphans come to us, so that their end can be waited for. */
static void test_ranks_die_with_the_launcher(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    int status, killed = 0;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t pid = launch_apart("stay", place.file);
    launched_wait_for_words(place.file, LAUNCHED_RANKS);
    kill(pid, SIGKILL);
    for (int i = 0; i < LAUNCHED_RANKS + 1; i++) {
        assert_true(waitpid(-1, &status, 0) > 0);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    assert_int_equal(killed, LAUNCHED_RANKS + 1);
    launched_place_close(&place);
}

/* secret: what the launcher was told. ret: the word of a single rank. */
static void secret_of(int nodes, const char *secret, bool is_set, char ret[128])
{
    struct launched_place place = launched_place_open();
    struct topology t = {.world_size = nodes,
                         .local_size = 1,
                         .nodes = nodes,
                         .host = "127.0.0.1",
                         .port = 1,
                         .run_id = "a1",
                         .is_secret_set = is_set};
    snprintf(t.secret, sizeof t.secret, "%s", secret);
    char *argv[] = {(char *)"test_launch", (char *)"rank", (char *)"secret", place.file, NULL};
    const struct launch_options options = {.topology = &t, .argv = argv};
    struct error err;
    int exit_code = -1;
    assert_ok(launch_local_ranks(&options, &exit_code, &err), &err);
    assert_int_equal(exit_code, 0);
    auto_fclose FILE *words = fopen(place.file, "re");
    assert_non_null(words);
    assert_non_null(fgets(ret, 128, words));
    ret[strcspn(ret, "\n")] = '\0';
    launched_place_close(&place);
}

static void test_ranks_of_one_launcher_have_a_secret_of_their_own(void **state)
{
    (void)state;
    char first[128], second[128];
    secret_of(1, "a1", false, first); /* an id that others can know */
    secret_of(1, "a1", false, second);
    assert_int_equal(strlen(first), 32);
    assert_string_not_equal(first, second);
    secret_of(1, "told", true, first);
    assert_string_equal(first, "told");
    secret_of(2, "a1", false, first); /* what the other node's ranks know, too */
    assert_string_equal(first, "a1");
    secret_of(2, "", false, first);
    assert_string_equal(first, "");
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return rank_main(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_are_told_who_they_are),
        cmocka_unit_test(test_the_first_failure_stops_the_others_and_is_returned),
        cmocka_unit_test(test_signals_reach_every_rank),
        cmocka_unit_test(test_all_start_again_as_often_as_they_may),
        cmocka_unit_test(test_a_rank_that_cannot_start_leaves_no_open_file),
        cmocka_unit_test(test_ranks_die_with_the_launcher),
        cmocka_unit_test(test_ranks_of_one_launcher_have_a_secret_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
