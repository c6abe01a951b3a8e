/* The launcher starts this very program again for each rank: `test_launch rank HOW FILE`. The file
 * (under a temporary directory) is where ranks leave word for each other and for the test. */
#include "tests/support.h"

#include "agent/launch.h"
#include "base/mem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3

/* ---- a rank ---- */

static volatile sig_atomic_t got;

static void on_signal(int number)
{
    got = number;
}

static void leave_word(const char *file, const char *text)
{
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    ssize_t n = write(fd, text, strlen(text));
    close(fd);
    if (n != (ssize_t)strlen(text))
        abort();
}

/* Waits until the file has so many bytes; the alarm ends a wait in vain. */
static void wait_for_words(const char *file, off_t bytes)
{
    struct stat st;
    while (stat(file, &st) < 0 || st.st_size < bytes)
        usleep(2000);
}

static int pause_until_signal(void)
{
    while (!got)
        usleep(2000);
    return got;
}

static int rank_main(const char *how, const char *file)
{
    int rank = atoi(getenv("RANK"));
    alarm(100);
    signal(SIGTERM, strcmp(how, "deaf") == 0 ? SIG_IGN : on_signal);
    signal(SIGUSR1, on_signal);
    if (strcmp(how, "tell") == 0) {
        char line[100];
        snprintf(line, sizeof line, "%s/%s %s/%s\n", getenv("RANK"), getenv("WORLD_SIZE"),
                 getenv("LOCAL_RANK"), getenv("LOCAL_WORLD_SIZE"));
        leave_word(file, line);
        return 0;
    }
    leave_word(file, ".");
    wait_for_words(file, RANKS);
    if (strcmp(how, "signal") == 0)
        return pause_until_signal() == SIGUSR1 ? 0 : 9;
    if (strcmp(how, "stay") == 0 || rank != 6)
        return pause_until_signal() == SIGTERM ? 8 : 9; /* 8 must not hide rank 6's code */
    if (strcmp(how, "killed") == 0)
        raise(SIGKILL);
    return 5;
}

/* ---- the tests ---- */

struct place {
    char *directory, *file;
};

static struct place place_open(void)
{
    struct place place = {.directory = support_temp_dir()};
    place.file = xasprintf("%s/words", place.directory);
    return place;
}

static void place_close(struct place *place)
{
    support_remove_tree(place->directory);
    free(place->directory);
    free(place->file);
}

static int launch(const char *how, const char *file)
{
    struct topology t = {.rank = 6, .world_size = 9, .local_size = RANKS};
    char *argv[] = {(char *)"test_launch", (char *)"rank", (char *)how, (char *)file, NULL};
    struct error err;
    int exit_code = -1;
    assert_ok(launch_local_ranks(&t, argv, &exit_code, &err), &err);
    return exit_code;
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
    struct place place = place_open();
    assert_int_equal(launch("tell", place.file), 0);
    char text[200] = "";
    auto_fclose FILE *file = fopen(place.file, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text - 1, file), RANKS * 8);
    qsort(text, RANKS, 8, compare_lines);
    assert_string_equal(text, "6/9 0/3\n7/9 1/3\n8/9 2/3\n");
    place_close(&place);
}

static void test_the_first_failure_stops_the_others_and_is_returned(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int expected;
    } rows[] = {{"fail", 5}, {"killed", 128 + SIGKILL}, {"deaf", 5}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct place place = place_open();
        assert_int_equal(launch(rows[i].how, place.file), rows[i].expected);
        place_close(&place);
    }
}

static void test_signals_reach_every_rank(void **state)
{
    (void)state;
    struct place place = place_open();
    int status;
    pid_t pid = launch_apart("signal", place.file);
    wait_for_words(place.file, RANKS);
    kill(pid, SIGUSR1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    place_close(&place);
}

/* Orphans come to us, so that their end can be waited for. */
static void test_ranks_die_with_the_launcher(void **state)
{
    (void)state;
    struct place place = place_open();
    int status, killed = 0;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t pid = launch_apart("stay", place.file);
    wait_for_words(place.file, RANKS);
    kill(pid, SIGKILL);
    for (int i = 0; i < RANKS + 1; i++) {
        assert_true(waitpid(-1, &status, 0) > 0);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    assert_int_equal(killed, RANKS + 1);
    place_close(&place);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return rank_main(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_are_told_who_they_are),
        cmocka_unit_test(test_the_first_failure_stops_the_others_and_is_returned),
        cmocka_unit_test(test_signals_reach_every_rank),
        cmocka_unit_test(test_ranks_die_with_the_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
