/* The files that a launcher hands to its ranks: memory and pipes. It starts this very program for
 * each rank: `test_launch_files rank HOW FILE`. */
#include "tests/agent/launched.h"
#include "tests/agent/memfd_rules.h"
#include "tests/support.h"

#include "agent/launch/heartbeat.h"
#include "agent/launch/last_words.h"
#include "agent/launch/rank_memory.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a rank ---- */

/* Each attempt finds what the one before it left in its memory; all but the third are killed. */
static int remember(int rank, const char *file)
{
    int attempt = launched_number("TORCHELASTIC_RESTART_COUNT"), fd = rank_memory_inherit();
    void *memory;
    struct error err;
    if (fd <= 0 || (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0 ||
        rank_memory_map(fd, 0, 4096, &memory, &err))
        return 9;
    int *left = memory;
    if (*left != (attempt == 0 ? 0 : 100 * rank + attempt))
        return 6;
    *left = 100 * rank + attempt + 1;
    launched_leave_word(file, ".");
    launched_wait_for_words(file, (attempt + 1) * LAUNCHED_RANKS);
    if (attempt == 2)
        return 0;
    if (rank == 6)
        raise(SIGKILL);
    return launched_pause_until_signal() == SIGTERM ? 8 : 9;
}

/* Without memory; who may start again does so once. */
static int forget(void)
{
    bool may_again = launched_number("TORCHELASTIC_RESTART_COUNT") <
                     launched_number("TORCHELASTIC_MAX_RESTARTS") - 1;
    return rank_memory_inherit() > 0 ? 9 : may_again ? 5 : 0;
}

static int rank_main(const char *how, const char *file)
{
    alarm(SUPPORT_PATIENCE_S);
    signal(SIGTERM, launched_on_signal);
    return strcmp(how, "remember") == 0 ? remember(launched_number("RANK"), file) : forget();
}

/* ---- the tests ---- */

static int launch(const char *how, const char *file, int max_restarts)
{
    return launched_run("test_launch_files", how, file, max_restarts,
                        (struct launch_output_spec){0});
}

/* Memory outlives its rank, if the launcher may start that again; nobody else's is handed on. */
static void test_memory_outlives_its_rank(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    setenv("SHOAL_MEMORY_FD", "0", 1);
    assert_int_equal(launch("remember", place.file, 2), 0);
    assert_int_equal(launched_size(place.file), 3 * LAUNCHED_RANKS);
    assert_int_equal(launch("forget", place.file, 0), 0);
    setenv("SHOAL_MEMORY_FD", "2", 1); /* an open file, but no such memory */
    assert_int_equal(rank_memory_inherit(), 0);
    unsetenv("SHOAL_MEMORY_FD");
    launched_place_close(&place);
}

/* A system that refuses such memory costs nothing but that: the ranks run, and start again. */
static void test_ranks_run_without_memory(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        memfd_refuse(0, 0, EPERM);
        _exit(launch("forget", place.file, 2));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    launched_place_close(&place);
}

/* A variable that was passed on names a file of somebody else: nothing is written to it. */
static void test_no_other_file_is_taken_for_a_pipe(void **state)
{
    (void)state;
    static const char *const variables[] = {"SHOAL_HEARTBEAT_FD", "SHOAL_LAST_WORDS_FD"};
    const struct error err = {.code = ERR_PEER};
    int file = memfd_create("another's", MFD_CLOEXEC);
    char text[16];
    struct stat st;
    snprintf(text, sizeof text, "%d", file);
    for (size_t i = 0; i < array_length(variables); i++)
        setenv(variables[i], text, 1);
    struct heartbeat heartbeat = heartbeat_inherit();
    heartbeat_send(&heartbeat, 1, "");
    last_words_inherit();
    last_words_send(&err, true);
    assert_int_equal(fstat(file, &st), 0);
    assert_int_equal(st.st_size, 0);
    for (size_t i = 0; i < array_length(variables); i++)
        assert_null(getenv(variables[i]));
    close(file);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return rank_main(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_outlives_its_rank),
        cmocka_unit_test(test_ranks_run_without_memory),
        cmocka_unit_test(test_no_other_file_is_taken_for_a_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
