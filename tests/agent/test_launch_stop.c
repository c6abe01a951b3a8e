/* A launcher that is asked to end while its ranks fail and would start again. It starts this very
 * program for each rank: `test_launch_stop rank HOW FILE`. Ranks leave words in the file. */
#include "tests/agent/launched.h"
#include "tests/support.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 2

/* ---- a rank ---- */

static volatile sig_atomic_t got;

static void on_signal(int number)
{
    (void)number;
    got++;
}

static void await_signals(int count)
{
    while (got < count)
        usleep(2000);
}

static int rank_main(const char *how, const char *file)
{
    alarm(SUPPORT_PATIENCE_S);
    signal(SIGTERM, on_signal);
    if (str_starts_with(how, "when asked")) {
        launched_leave_word(file, ".");
        await_signals(1);
        return strstr(how, "lost peer") ? EXIT_RETRYABLE : 5;
    }
    if (launched_number("RANK") == 0) {
        launched_wait_for_words(file, 1); /* else a signal would kill the other */
        return 5;
    }
    launched_leave_word(file, ".");
    await_signals(1); /* the launcher has seen the other's end */
    launched_leave_word(file, ".");
    if (strcmp(how, "and another ends") == 0)
        await_signals(2);
    return 8;
}

/* ---- the test ---- */

static int launch(const char *how, const char *file, int max_restarts)
{
    struct topology t = {.world_size = RANKS, .local_size = RANKS, .host = "127.0.0.1", .port = 1};
    char *argv[] = {(char *)"test_launch_stop", (char *)"rank", (char *)how, (char *)file, NULL};
    const struct launch_options options = {.topology = &t,
                                           .argv = argv,
                                           .max_restarts = max_restarts,
                                           .restart_delay_s = 10 * SUPPORT_PATIENCE_S};
    struct error err;
    int exit_code = -1;
    return launch_local_ranks(&options, &exit_code, &err) ? 99 : exit_code;
}

static void the_end_is_as_asked(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int max_restarts, words, expected;
    } rows[] = {
        {"and it waits", 3, 2, EXIT_TERMINATED},
        {"and another ends", 3, 2, EXIT_TERMINATED},
        {"and another ends", 0, 2, 5}, /* nothing would have started again */
        {"when asked", 3, RANKS, 5},   /* the failure came after, and is told */
        {"when asked, by a lost peer", 3, RANKS, EXIT_TERMINATED},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct launched_place place = launched_place_open();
        int status;
        pid_t pid = fork();
        if (pid == 0)
            _exit(launch(rows[i].how, place.file, rows[i].max_restarts));
        launched_wait_for_words(place.file, rows[i].words);
        kill(pid, SIGTERM);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != rows[i].expected)
            fail_msg("%s, %d restarts: status %#x, not exit code %d", rows[i].how,
                     rows[i].max_restarts, (unsigned)status, rows[i].expected);
        launched_place_close(&place);
    }
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return rank_main(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_is_as_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
