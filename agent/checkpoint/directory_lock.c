#include "agent/checkpoint/directory_lock.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { OWNER_BYTES = 512 };

void directory_owner_self(const char *run, struct directory_owner *ret_owner)
{
    *ret_owner = (struct directory_owner){.pid = getpid()};
    if (gethostname(ret_owner->host, sizeof ret_owner->host - 1))
        ret_owner->host[0] = '\0';
    snprintf(ret_owner->run, sizeof ret_owner->run, "%s", run ? run : "");
}

/* For people and for the next process. A text that cannot be written costs them the name alone. */
static void write_owner(int fd, const struct directory_owner *owner)
{
    char text[OWNER_BYTES];
    int length = snprintf(text, sizeof text, "host=%s\npid=%lld\nrun=%s\n", owner->host,
                          (long long)owner->pid, owner->run);
    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, text, (size_t)length, 0);
}

static void read_owner(int fd, struct directory_owner *ret_owner)
{
    char text[OWNER_BYTES + 1];
    long long pid = 0;
    *ret_owner = (struct directory_owner){0};
    ssize_t length = pread(fd, text, OWNER_BYTES, 0);
    if (length <= 0)
        return;
    text[length] = '\0';
    if (sscanf(text, "host=%255[^\n]\npid=%lld\nrun=%63[^\n]", ret_owner->host, &pid,
               ret_owner->run) < 2)
        *ret_owner = (struct directory_owner){0};
    ret_owner->pid = pid;
}

/* The file of another user may be there to read only, which is enough for flock() on a local file
 * system; NFS then answers EBADF. */
static int open_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == EACCES)
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd;
}

enum directory_lock_state directory_lock(const char *dir, const struct directory_owner *self,
                                         int (*flock)(int fd, int operation), int *ret_fd,
                                         struct directory_owner *ret_owner, struct error *err)
{
    auto_free char *path = xasprintf("%s/" DIRECTORY_LOCK_FILE, dir);
    *ret_fd = -1;
    auto_close int fd = open_file(path);
    /* The file is never removed: between another's open() and flock() it would be a different file,
     * and two could hold "the" lock. */
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        write_owner(fd, self);
        *ret_fd = take_fd(fd);
        return DIRECTORY_LOCKED;
    }
    if (fd >= 0 && errno == EWOULDBLOCK) {
        read_owner(fd, ret_owner);
        return DIRECTORY_BUSY;
    }
    error_errno(err, errno, "lock %s", path);
    return DIRECTORY_HAS_NO_LOCK;
}
