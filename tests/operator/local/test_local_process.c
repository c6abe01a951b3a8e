/* Guarded processes: the exit codes that come back, what is refused, and that nothing outlives its
 * container. */
#include "operator/local/local_process.h"
#include "tests/support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const environment[] = {"PATH=/nowhere:/usr/bin:/bin", "GREETING=hello", NULL};

/* Runs `sh -c script` with its output in out; returns its exit code. */
static int run_script(const char *script, const char *directory, char *out, size_t out_bytes)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const char *argv[] = {"sh", "-c", script, NULL};
    struct local_process process = {
        .argv = argv, .env = environment, .directory = directory, .output = ends[1]};
    struct error err;
    pid_t guard;
    assert_ok(local_process_start(&process, &guard, &err), &err);
    close(ends[1]);
    size_t length = 0;
    ssize_t count;
    while ((count = read(ends[0], out + length, out_bytes - 1 - length)) > 0)
        length += (size_t)count;
    out[length] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(guard, &status, 0), guard);
    return local_process_exit_code(status);
}

static void test_exit_codes(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int code;
    } rows[] = {{"exit 0", 0},         {"exit 1", 1},          {"exit 138", 138},
                {"exit 255", 255},     {"kill -KILL $$", 137}, {"kill -TERM $$", 143},
                {"kill -SEGV $$", 139}};
    char out[64];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(run_script(rows[i].script, NULL, out, sizeof out), rows[i].code);
}

static void test_surroundings(void **state)
{
    (void)state;
    char out[256];
    assert_int_equal(
        run_script("echo $GREETING; pwd; cat; echo error >&2", "/usr", out, sizeof out), 0);
    assert_string_equal(out, "hello\n/usr\nerror\n");
    /* no file of ours is open in it but stdin, stdout and stderr: 3 is ls's own */
    assert_int_equal(run_script("echo $(ls /proc/self/fd)", NULL, out, sizeof out), 0);
    assert_string_equal(out, "0 1 2 3\n");
    assert_int_equal(run_script("trap", NULL, out, sizeof out), 0);
    assert_string_equal(out, "");
}

/* The pipe ends only when the last process that holds it is gone: run_script would hang. */
static void test_container_takes_its_processes_along(void **state)
{
    (void)state;
    char out[64];
    assert_int_equal(
        run_script("sleep 1000 & (setsid sleep 1000 &); exit 7", NULL, out, sizeof out), 7);
}

static void test_orders(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        void (*order)(pid_t guard);
        int code;
    } rows[] = {
        {"trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done", local_process_terminate,
         3},
        {"trap '' TERM; echo ready; sleep 1000", local_process_kill, 137},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        const char *argv[] = {"/bin/sh", "-c", rows[i].script, NULL};
        struct local_process process = {.argv = argv, .env = environment, .output = ends[1]};
        struct error err;
        pid_t guard;
        assert_ok(local_process_start(&process, &guard, &err), &err);
        char byte;
        assert_int_equal(read(ends[0], &byte, 1), 1);
        rows[i].order(guard);
        int status;
        assert_int_equal(waitpid(guard, &status, 0), guard);
        assert_int_equal(local_process_exit_code(status), rows[i].code);
        close(ends[0]);
        close(ends[1]);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    char *folder = support_temp_dir();
    static const struct {
        const char *program, *directory, *message;
    } rows[] = {
        {"no-such-program", NULL, "command no-such-program: not found on the PATH"},
        {"/no/such/program", NULL, "command /no/such/program: not found on this machine"},
        {"/etc", NULL, "command /etc: is a folder"},
        {"/etc/passwd", NULL, "command /etc/passwd: is not executable; chmod +x it"},
        {"/dev/null", NULL, "command /dev/null: is not a file that can be executed"},
        {"./here", "/usr", "command ./here: not found on this machine"},
        {"sh", "/no/such", "working directory /no/such: not found on this machine"},
        {"sh", "/etc/passwd", "working directory /etc/passwd: is not a folder"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *argv[] = {rows[i].program, NULL};
        struct local_process process = {
            .argv = argv, .env = environment, .directory = rows[i].directory, .output = 1};
        struct error err;
        pid_t guard;
        assert_fails(local_process_start(&process, &guard, &err), &err, ERR_NOT_FOUND,
                     rows[i].message);
    }
    /* it is there and may be executed, but is no program */
    char path[256];
    snprintf(path, sizeof path, "%s/text", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    assert_int_equal(write(fd, "no program", 10), 10);
    close(fd);
    const char *argv[] = {path, NULL};
    struct local_process process = {.argv = argv, .env = environment, .output = 1};
    struct error err;
    pid_t guard;
    assert_fails(local_process_start(&process, &guard, &err), &err, ERR_IO, "Exec format error");
    assert_int_equal(waitpid(-1, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
    support_remove_tree(folder);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_surroundings),
        cmocka_unit_test(test_container_takes_its_processes_along),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
