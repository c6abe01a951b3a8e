/* The threads of a process that stands still: by themselves, and seen from outside. */
#include "tests/support.h"

#include "agent/launch/thread_stacks.h"
#include "base/mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
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
        cmocka_unit_test(test_a_stopped_process_is_seen_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
