/* One run at a time in a directory of checkpoints. */
#include "agent/checkpoint/directory_lock.h"

#include "base/file.h"
#include "base/mem.h"
#include "tests/support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct directory_owner first = {.host = "mnist-master-0", .pid = 7, .run = "uid-1"};

static void the_second_is_told_who_the_first_is(void **state)
{
    const char *dir = *state;
    struct directory_owner owner, second = {.host = "other", .pid = 8};
    struct error err;
    int held, fd;
    assert_int_equal(directory_lock(dir, &first, flock, &held, &owner, &err), DIRECTORY_LOCKED);
    assert_int_equal(directory_lock(dir, &second, flock, &fd, &owner, &err), DIRECTORY_BUSY);
    assert_int_equal(fd, -1);
    assert_string_equal(owner.host, first.host);
    assert_int_equal(owner.pid, first.pid);
    assert_string_equal(owner.run, first.run);
    close(held);
    assert_int_equal(directory_lock(dir, &second, flock, &held, &owner, &err), DIRECTORY_LOCKED);
    assert_int_equal(directory_lock(dir, &first, flock, &fd, &owner, &err), DIRECTORY_BUSY);
    assert_string_equal(owner.host, "other");
    assert_string_equal(owner.run, "");
    close(held);
}

/* What another program may have put there. */
static void an_owner_that_cannot_be_read_is_not_known(void **state)
{
    static const char *const texts[] = {"", "host=", "host=\npid=3\n", "pid=3\n", "\xff\xfe\x01"};
    const char *dir = *state;
    auto_free char *path = xasprintf("%s/" DIRECTORY_LOCK_FILE, dir);
    for (size_t i = 0; i < array_length(texts); i++) {
        struct directory_owner owner;
        struct error err;
        int held, fd;
        assert_int_equal(directory_lock(dir, &first, flock, &held, &owner, &err), DIRECTORY_LOCKED);
        assert_int_equal(truncate(path, 0), 0);
        FILE *file = fopen(path, "we");
        fputs(texts[i], file);
        fclose(file);
        assert_int_equal(directory_lock(dir, &first, flock, &fd, &owner, &err), DIRECTORY_BUSY);
        assert_string_equal(owner.host, "");
        assert_int_equal(owner.pid, 0);
        close(held);
    }
}

static void a_lock_ends_with_its_process(void **state)
{
    const char *dir = *state;
    struct directory_owner owner;
    struct error err;
    int fds[2], fd;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct directory_owner self;
        directory_owner_self("killed", &self);
        char ok = directory_lock(dir, &self, flock, &fd, &owner, &err) == DIRECTORY_LOCKED;
        (void)!write(fds[1], &ok, 1);
        for (;;)
            pause();
    }
    char locked = 0;
    assert_int_equal(read(fds[0], &locked, 1), 1);
    assert_int_equal(locked, 1);
    assert_int_equal(directory_lock(dir, &first, flock, &fd, &owner, &err), DIRECTORY_BUSY);
    assert_int_equal(owner.pid, pid);
    assert_string_equal(owner.run, "killed");
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(directory_lock(dir, &first, flock, &fd, &owner, &err), DIRECTORY_LOCKED);
    close(fd);
    close(fds[0]);
    close(fds[1]);
}

static int answer; /* what has_no_lock() fails with */

static int has_no_lock(int fd, int operation)
{
    (void)fd, (void)operation;
    errno = answer;
    return -1;
}

/* NFS without a lock daemon, Lustre without -o flock, a file that only another user may write. */
static void a_file_system_without_locks_is_told(void **state)
{
    static const int answers[] = {ENOLCK, ENOSYS, EOPNOTSUPP, EBADF};
    for (size_t i = 0; i < array_length(answers); i++) {
        struct directory_owner owner;
        struct error err;
        int fd;
        answer = answers[i];
        assert_int_equal(directory_lock(*state, &first, has_no_lock, &fd, &owner, &err),
                         DIRECTORY_HAS_NO_LOCK);
        assert_int_equal(fd, -1);
        assert_non_null(strstr(err.msg, "/" DIRECTORY_LOCK_FILE ": "));
        assert_non_null(strstr(err.msg, strerror(answers[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_second_is_told_who_the_first_is, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(an_owner_that_cannot_be_read_is_not_known,
                                        support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(a_lock_ends_with_its_process, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(a_file_system_without_locks_is_told, support_enter_dir,
                                        support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
