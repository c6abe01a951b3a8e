#include "tests/support.h"

#include "agent/launch/crash.h"
#include "base/mem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls itself until the stack is used up. */
static int fall(volatile int depth)
{
    volatile char room[4096];
    room[0] = (char)depth;
    return depth < 0 ? 0 : fall(depth + 1) + room[0];
}

/* In a process of its own: without cmocka's handler. file: for its stderr. */
static void listen_alone(int number, const char *file)
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(number, SIG_DFL);
    dup2(open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), STDERR_FILENO);
    crash_install_handlers(3);
}

/* 0: by the signal itself. */
static void die(int number, bool by_itself, const char *file)
{
    listen_alone(number, file);
    if (by_itself && number == SIGABRT)
        abort();
    _exit(by_itself ? fall(1) : raise(number));
}

/* By a sanitizer, which tells more. */
static bool taken[32];

static void note_taken(void)
{
    struct sigaction now;
    for (int i = 1; i < (int)array_length(taken); i++)
        taken[i] = sigaction(i, NULL, &now) == 0 && now.sa_handler != SIG_DFL;
}

static void a_crash_tells_where_it_was_and_stays_one(void **state)
{
    (void)state;
    static const struct {
        int number;
        bool by_itself;
        const char *head;
    } rows[] = {
        {SIGSEGV, false, "shoal-agent: rank 3: SIGSEGV, called from:\n"},
        {SIGSEGV, true, "shoal-agent: rank 3: SIGSEGV, called from:\n"},
        {SIGBUS, false, "shoal-agent: rank 3: SIGBUS, called from:\n"},
        {SIGFPE, false, "shoal-agent: rank 3: SIGFPE, called from:\n"},
        {SIGILL, false, "shoal-agent: rank 3: SIGILL, called from:\n"},
        {SIGABRT, true, "shoal-agent: rank 3: SIGABRT, called from:\n"},
    };
    auto_free char *directory = support_temp_dir();
    auto_free char *file = xasprintf("%s/err", directory);
    for (size_t i = 0; i < array_length(rows); i++) {
        if (taken[rows[i].number])
            continue;
        int status;
        pid_t pid = fork();
        if (pid == 0)
            die(rows[i].number, rows[i].by_itself, file);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), rows[i].number);
        char text[8192] = "";
        auto_fclose FILE *told = fopen(file, "re");
        assert_non_null(told);
        text[fread(text, 1, sizeof text - 1, told)] = '\0';
        assert_memory_equal(text, rows[i].head, strlen(rows[i].head));
        assert_non_null(strstr(text, "test_crash(+0x"));
    }
    support_remove_tree(directory);
}

/* In a process of its own. */
static void read_what_is_gone(const char *data, const char *file)
{
    listen_alone(SIGBUS, file);
    int fd = open(data, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 1 << 20) < 0)
        _exit(1);
    const volatile char *bytes = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED || ftruncate(fd, 4096) < 0)
        _exit(1);
    _exit(bytes[1 << 19]);
}

static void a_file_that_was_cut_off_is_named(void **state)
{
    (void)state;
    if (taken[SIGBUS])
        skip();
    int status;
    auto_free char *directory = support_temp_dir();
    auto_free char *file = xasprintf("%s/err", directory),
                   *data = xasprintf("%s/data.bin", directory);
    auto_free char *expected = xasprintf("shoal-agent: %s: a part of it is gone: ", data);
    pid_t pid = fork();
    if (pid == 0)
        read_what_is_gone(data, file);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    char text[8192] = "";
    auto_fclose FILE *told = fopen(file, "re");
    assert_non_null(told);
    text[fread(text, 1, sizeof text - 1, told)] = '\0';
    assert_memory_equal(text, expected, strlen(expected));
    assert_non_null(strstr(text, "\nshoal-agent: rank 3: SIGBUS, called from:\n"));
    support_remove_tree(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crash_tells_where_it_was_and_stays_one),
        cmocka_unit_test(a_file_that_was_cut_off_is_named),
    };
    note_taken(); /* before cmocka has handlers of its own */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
