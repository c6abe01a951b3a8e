/* For LD_PRELOAD: ranks that meet at MASTER_PORT are held before the last of them joins. Who has
 * answered the rendezvous puts a file "joined.RANK.PID" into the folder $HOLD_MEETING. Rank
 * $HOLD_RANK goes there only when the folder has a file "go". So a test can kill a rank which has
 * joined and is not welcome yet. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAUSE_US = 10000, PATH_BYTES = 4096 };

/* Of a rank, not of its launcher, which meets others there before. */
static int is_the_meetings(const struct sockaddr *address)
{
    const char *port = getenv("MASTER_PORT");
    return getenv("HOLD_MEETING") && getenv("LOCAL_RANK") && port &&
           address->sa_family == AF_INET &&
           ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port) == atoi(port);
}

int connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    int (*really)(int, const struct sockaddr *, socklen_t) =
        (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
    const char *held = getenv("HOLD_RANK"), *rank = getenv("RANK");
    char go[PATH_BYTES];
    if (is_the_meetings(address) && held && rank && strcmp(held, rank) == 0) {
        snprintf(go, sizeof go, "%s/go", getenv("HOLD_MEETING"));
        while (access(go, F_OK))
            usleep(PAUSE_US);
    }
    return really(fd, address, bytes);
}

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    ssize_t (*really)(int, const void *, size_t, int) =
        (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    static _Atomic int has_joined; /* what a rank sends later are heartbeats and questions */
    struct sockaddr_storage peer;
    struct sockaddr *address = (struct sockaddr *)&peer;
    socklen_t size = sizeof peer;
    char path[PATH_BYTES];
    ssize_t sent = really(fd, data, bytes, flags);
    if (sent == (ssize_t)bytes && getpeername(fd, address, &size) == 0 &&
        is_the_meetings(address) && !has_joined++) {
        snprintf(path, sizeof path, "%s/joined.%s.%d", getenv("HOLD_MEETING"), getenv("RANK"),
                 (int)getpid());
        int file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (file >= 0)
            close(file);
    }
    return sent;
}
