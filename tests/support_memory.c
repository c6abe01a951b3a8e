#include "tests/support_memory.h"

#include "tests/support.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGEST_BYTES = 1 << 20 };

/* What was freed before can be had again. */
static void take_all(void)
{
    for (size_t bytes = LARGEST_BYTES; bytes; bytes /= 2)
        while (malloc(bytes))
            ;
}

static void run_without_memory(void (*run)(const void *context), const void *context, int fd)
{
    const struct rlimit none = {0};
    if (dup2(fd, STDERR_FILENO) < 0 || setrlimit(RLIMIT_CORE, &none) || setrlimit(RLIMIT_AS, &none))
        _exit(1);
    signal(SIGABRT, SIG_DFL); /* cmocka's would go on */
    take_all();
    run(context);
    _exit(2);
}

void support_assert_needs_memory(void (*run)(const void *context), const void *context)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    int fds[2], status;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0)
        run_without_memory(run, context, fds[1]);
    close(fds[1]);
    char told[256] = "";
    assert_true(read(fds[0], told, sizeof told - 1) >= 0);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    static const char begin[] = "shoal: out of memory (";
    assert_memory_equal(told, begin, sizeof begin - 1);
}
