/* The threads of a process that stands still: by themselves, and seen from outside. */
#include "tests/support.h"

#include "agent/launch/thread_stacks.h"
#include "base/mem.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int pipe_ends[2];
static atomic_bool stands; /* a thread that begins takes no signals yet */

static void *stand_still(void *ignored)
{
    char byte;
    atomic_store(&stands, true);
    /* a read() that the signal interrupts goes on */
    return read(pipe_ends[0], &byte, 1) == 1 && byte == 'x' ? ignored : NULL;
}

static void test_every_thread_writes_its_stack_and_goes_on(void **state)
{
    (void)state;
    static char text[65536];
    pthread_t thread;
    int is_well;
    void *result;
    assert_int_equal(pipe(pipe_ends), 0);
    thread_stacks_install();
    assert_int_equal(pthread_create(&thread, NULL, stand_still, &is_well), 0);
    pthread_setname_np(thread, "stands still");
    support_wait_until(atomic_load(&stands));
    support_stderr_begin();
    thread_stacks_print(3);
    support_stderr_end(text, sizeof text);
    assert_non_null(strstr(text, "shoal-agent: rank 3: thread "));
    assert_non_null(strstr(text, "(stands still), called from:\n"));
    assert_null(strstr(text, "(main)")); /* the one that asks */
#ifdef __SANITIZE_THREAD__               /* which holds signals back as long as read() waits */
    const char *shown = "sleeping";
#else
    const char *shown = "[0x"; /* a frame */
#endif
    assert_non_null(strstr(strstr(text, "(stands still)"), shown));
    assert_int_equal(write(pipe_ends[1], "x", 1), 1);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &is_well);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

#ifndef __SANITIZE_THREAD__
static int begun[2]; /* a pipe: a byte each time that the thread waits */

static int wait_for_end(void *ignored)
{
    char byte;
    (void)ignored;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no process behind */
    return write(begun[1], "x", 1) == 1 && read(pipe_ends[0], &byte, 1) == 1 ? 0 : 1;
}

/* As a thread that waits in a driver, its parent takes no signals until it has ended. */
static void *wait_as_in_a_driver(void *ignored)
{
    static _Alignas(16) char stack[65536];
    int status;
    for (int round = 1; round <= 2; round++) {
        pid_t pid = clone(wait_for_end, stack + sizeof stack, CLONE_VFORK | SIGCHLD, NULL);
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            return NULL;
    }
    return ignored;
}

static int ways_shown(char *text)
{
    int times = 0;
    for (const char *at = strstr(text, "(in a driver): "); at;
         at = strstr(at + 1, "(in a driver): "))
        times++;
    return times;
}

static void test_an_answer_that_comes_late_is_nobody_elses(void **state)
{
    (void)state;
    static char text[65536];
    pthread_t thread;
    void *result;
    int is_well;
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(pipe(begun), 0);
    thread_stacks_install();
    assert_int_equal(pthread_create(&thread, NULL, wait_as_in_a_driver, &is_well), 0);
    pthread_setname_np(thread, "in a driver");
    for (int round = 1; round <= 2; round++) {
        char byte;
        assert_int_equal(read(begun[0], &byte, 1), 1);
        support_stderr_begin();
        thread_stacks_print(3);
        support_stderr_end(text, sizeof text);
        assert_int_equal(ways_shown(text), 1);
        assert_int_equal(write(pipe_ends[1], "x", 1), 1); /* now it answers */
    }
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &is_well);
    for (int i = 0; i < 2; i++)
        close(pipe_ends[i]), close(begun[i]);
}
#endif

static void test_a_stopped_process_is_seen_as_such(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    auto_str struct str text;
    str_init(&text, 65536);
    thread_stacks_describe(pid, &text);
    assert_non_null(strstr(str_text(&text), "(main): stopped"));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    str_clear(&text);
    thread_stacks_describe(pid, &text);
    assert_int_equal(text.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_thread_writes_its_stack_and_goes_on),
#ifndef __SANITIZE_THREAD__ /* which holds signals back */
        cmocka_unit_test(test_an_answer_that_comes_late_is_nobody_elses),
#endif
        cmocka_unit_test(test_a_stopped_process_is_seen_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
