/* Memory that a launcher opens for its ranks: on each system that has it, and no other file. */
#include "agent/launch/rank_memory.h"
#include "tests/agent/memfd_rules.h"
#include "tests/support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a process whose system is like that; the exit code. */
static int open_apart(unsigned mask, unsigned value, int number)
{
    int status = -1, fd;
    struct error err;
    pid_t pid = fork();
    if (pid == 0) {
        if (number)
            memfd_refuse(mask, value, number);
        if (rank_memory_open(3, &fd, &err))
            _exit(err.code == ERR_IO && strstr(err.msg, "memory for local rank 3: ") ? 1 : 2);
        rank_memory_set_inheritable(fd);
        _exit(rank_memory_inherit() == fd ? 0 : 3);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void each_system_that_has_it_gives_it(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned mask, value;
        int number, expected;
    } rows[] = {
        {"this one", 0, 0, 0, 0},
        {"only what is not executable (vm.memfd_noexec=2)", MEMFD_NOEXEC_SEAL, 0, EACCES, 0},
        {"a kernel that does not know the flag", MEMFD_NOEXEC_SEAL, MEMFD_NOEXEC_SEAL, EINVAL, 0},
        {"refused", 0, 0, EPERM, 1},
        {"too many files", 0, 0, EMFILE, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int code = open_apart(rows[i].mask, rows[i].value, rows[i].number);
        if (code != rows[i].expected)
            fail_msg("%s: %d", rows[i].name, code);
    }
}

/* A variable that was passed on names a file of somebody else: it is not cut. */
static void no_other_file_is_taken(void **state)
{
    (void)state;
    char path[] = "/dev/shm/shoal-test-XXXXXX", text[16];
    int plain = memfd_create("not a rank's", MFD_CLOEXEC), pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    int shared = mkstemp(path);
    assert_true(plain > 0 && shared > 0);
    assert_true(fcntl(shared, F_GET_SEALS) >= 0); /* as that of memory has */
    unlink(path);
    const int fds[] = {2, plain, shared, pipes[0], 0, -1, 99999};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        snprintf(text, sizeof text, "%d", fds[i]);
        setenv("SHOAL_MEMORY_FD", text, 1);
        if (rank_memory_inherit() != 0)
            fail_msg("descriptor %d was taken (row %zu)", fds[i], i);
    }
    unsetenv("SHOAL_MEMORY_FD");
    close(plain), close(shared), close(pipes[0]), close(pipes[1]);
}

/* What lies in front is given back, and what is behind keeps its place. */
static void the_front_is_given_back(void **state)
{
    (void)state;
    const int64_t page = sysconf(_SC_PAGESIZE), pages = 16;
    int fd;
    struct error err;
    void *memory;
    assert_int_equal(rank_memory_begin(0), 0);
    assert_false(rank_memory_gives_back(0));
    assert_int_equal(rank_memory_open(0, &fd, &err), 0);
    assert_int_equal(rank_memory_begin(fd), 0);
    assert_true(rank_memory_gives_back(fd));
    assert_int_equal(rank_memory_map(fd, 0, pages * page, &memory, &err), 0);
    memset(memory, 1, (size_t)(pages * page));
    rank_memory_unmap(memory, pages * page);
    rank_memory_keep(fd, 4 * page, 12 * page);
    assert_int_equal(rank_memory_begin(fd), 4 * page);
    assert_int_equal(rank_memory_size(fd), 12 * page);
    assert_int_equal(rank_memory_used(fd), 8 * page);
    assert_int_equal(rank_memory_map(fd, 4 * page, pages * page, &memory, &err), 0);
    assert_int_equal(((const char *)memory)[8 * page - 1], 1);
    assert_int_equal(((const char *)memory)[8 * page], 0);
    assert_int_equal(rank_memory_used(fd), pages * page);
    rank_memory_unmap(memory, pages * page);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_system_that_has_it_gives_it),
        cmocka_unit_test(the_front_is_given_back),
        cmocka_unit_test(no_other_file_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
