#include "tests/support.h"

#include "base/file.h"
#include "base/mem.h"
#include "operator/kube/command.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int run(const struct command *command, char **ret_output, size_t *ret_bytes,
               struct error *err)
{
    struct command_run *run;
    if (command_start(&run, command, err) < 0)
        return -1;
    while (!command_has_finished(run)) {
        struct pollfd fds[COMMAND_FDS_MAX];
        poll(fds, command_fds(run, fds), (int)command_left_ms(run));
    }
    return command_finish(run, ret_output, ret_bytes, err);
}

static int run_shell(const char *script, int64_t limit_ms, char **ret_output, size_t *ret_bytes,
                     struct error *err)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const char *const env[] = {"PATH=/usr/bin:/bin", "GIVEN=yes", NULL};
    struct command command = {.argv = argv, .env = env, .limit_ms = limit_ms};
    return run(&command, ret_output, ret_bytes, err);
}

static void output_is_whole(void **state)
{
    (void)state;
    auto_free char *output = NULL;
    size_t bytes;
    struct error err;
    assert_ok(run_shell("cat; echo $GIVEN$HOME; head -c 200000 /dev/zero; echo noise >&2",
                        SUPPORT_PATIENCE_MS, &output, &bytes, &err),
              &err);
    assert_int_equal(bytes, 200004);
    assert_memory_equal(output, "yes\n", 5);
    assert_int_equal(output[bytes], 0);
}

static void no_output_is_empty(void **state)
{
    (void)state;
    auto_free char *output = NULL;
    size_t bytes;
    struct error err;
    assert_ok(run_shell("exec >&- 2>&-; true", SUPPORT_PATIENCE_MS, &output, &bytes, &err), &err);
    assert_int_equal(bytes, 0);
    assert_string_equal(output, "");
}

static void failures_carry_the_last_words(void **state)
{
    (void)state;
    char *output;
    size_t bytes;
    struct error err;
    assert_fails(run_shell("echo first >&2; echo 'it is	broken' >&2; exit 7", SUPPORT_PATIENCE_MS,
                           &output, &bytes, &err),
                 &err, ERR_IO, "sh: exit code 7: first it is broken");
    assert_fails(run_shell("kill -9 $$", SUPPORT_PATIENCE_MS, &output, &bytes, &err), &err, ERR_IO,
                 "sh: killed by signal 9");
    assert_fails(run_shell("head -c 2000000 /dev/zero", SUPPORT_PATIENCE_MS, &output, &bytes, &err),
                 &err, ERR_LIMIT, "more than 1048576 bytes");
}

static void program_that_is_not_there(void **state)
{
    (void)state;
    const char *const argv[] = {"no-such-program", NULL}, *const env[] = {NULL};
    struct command command = {.argv = argv, .env = env, .limit_ms = SUPPORT_PATIENCE_MS};
    char *output;
    size_t bytes;
    struct error err;
    assert_fails(run(&command, &output, &bytes, &err), &err, ERR_NOT_FOUND, "no-such-program");
}

/* Orphans become our children (see main): waits for the end of this one and wants it
 * to be SIGKILL. */
static void assert_killed(pid_t pid)
{
    int status;
    assert_true(pid > 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* The child ignores SIGTERM. */
static void what_takes_too_long_is_killed_with_its_children(void **state)
{
    const char *directory = *state;
    auto_free char *path = xasprintf("%s/pid", directory);
    auto_free char *script = xasprintf("(trap '' TERM; sleep 1000) & echo $! >%s; wait", path);
    char *output;
    size_t bytes;
    struct error err;
    auto_free char *text = NULL;
    /* for a busy machine the time may be too short even to begin */
    for (int64_t limit_ms = 500; !text || !strchr(text, '\n');
         limit_ms = support_longer_ms(limit_ms)) {
        char expected[64];
        snprintf(expected, sizeof expected, "sh: timed out after %g s", (double)limit_ms / 1000);
        assert_fails(run_shell(script, limit_ms, &output, &bytes, &err), &err, ERR_TIMEOUT,
                     expected);
        free(text);
        text = NULL;
        (void)file_read(path, 100, &text, &bytes, &err);
    }
    assert_killed((pid_t)atoi(text));
}

static void what_is_given_up_is_killed(void **state)
{
    (void)state;
    const char *const argv[] = {"sleep", "1000", NULL}, *const env[] = {NULL};
    struct command command = {.argv = argv, .env = env, .limit_ms = SUPPORT_PATIENCE_MS};
    struct command_run *run;
    struct error err;
    assert_ok(command_start(&run, &command, &err), &err);
    assert_false(command_has_finished(run));
    assert_in_range(command_left_ms(run), 1, SUPPORT_PATIENCE_MS);
    command_cancel(run);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
    command_cancel(NULL);
}

/* It ends when the command ends, though a child of it goes on with the pipes in hand. */
static void children_left_behind_are_not_waited_for(void **state)
{
    (void)state;
    auto_free char *output = NULL;
    size_t bytes;
    struct error err;
    assert_ok(run_shell("(sleep 1000) & echo $!", SUPPORT_PATIENCE_MS, &output, &bytes, &err),
              &err);
    assert_killed((pid_t)atoi(output));
}

static void blocked_signals_are_free_again(void **state)
{
    (void)state;
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    auto_free char *output = NULL;
    size_t bytes;
    struct error err;
    int result = run_shell("trap 'echo got; exit 0' TERM; kill -TERM $$; echo missed",
                           SUPPORT_PATIENCE_MS, &output, &bytes, &err);
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_ok(result, &err);
    assert_string_equal(output, "got\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_is_whole),
        cmocka_unit_test(no_output_is_empty),
        cmocka_unit_test(failures_carry_the_last_words),
        cmocka_unit_test(program_that_is_not_there),
        cmocka_unit_test_setup_teardown(what_takes_too_long_is_killed_with_its_children,
                                        support_enter_dir, support_leave_dir),
        cmocka_unit_test(what_is_given_up_is_killed),
        cmocka_unit_test(children_left_behind_are_not_waited_for),
        cmocka_unit_test(blocked_signals_are_free_again),
    };
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
