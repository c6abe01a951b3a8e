/* For LD_PRELOAD: who commits a checkpoint (renames a folder to "...steps") goes on when the file
 * $HOLD_UNTIL is there; if that is a folder, when it has an entry of the checkpoint's name. So a
 * test can do something between a checkpoint and the end of a run, however slow it is and however
 * fast the run. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Another machine's wall clock, $CLOCK_AHEAD_S ahead of this one's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const char *ahead = clock == CLOCK_REALTIME ? getenv("CLOCK_AHEAD_S") : NULL;
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && ahead)
        now->tv_sec += atol(ahead);
    return result;
}

/* Rank $DIE_RANK dies as soon as it notes for its launcher that it is $DIE_WHERE: as of a batch
 * that no rank survives. */
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at)
{
    const char *where = getenv("DIE_WHERE"), *victim = getenv("DIE_RANK"), *rank = getenv("RANK");
    ssize_t result = syscall(SYS_pwrite64, fd, bytes, count, at);
    if (where && victim && rank && strcmp(victim, rank) == 0 &&
        memmem(bytes, count, where, strlen(where)))
        raise(SIGKILL);
    return result;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return pwrite64(fd, bytes, count, at);
}

enum { PAUSE_US = 10000, PATH_BYTES = 4096 };

static int may_go(const char *until, const char *checkpoint)
{
    char entry[PATH_BYTES];
    struct stat st;
    if (stat(until, &st))
        return 0;
    const char *slash = strrchr(checkpoint, '/');
    snprintf(entry, sizeof entry, "%s/%s", until, slash ? slash + 1 : checkpoint);
    return !S_ISDIR(st.st_mode) || access(entry, F_OK) == 0;
}

int rename(const char *from, const char *to)
{
    int (*really)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    const char *until = getenv("HOLD_UNTIL");
    size_t length = strlen(to);
    int result = really(from, to);
    if (result == 0 && until && length >= 5 && strcmp(to + length - 5, "steps") == 0)
        while (!may_go(until, to))
            usleep(PAUSE_US);
    return result;
}
