#include "agent/launch/rank_memory.h"

#include "agent/launch/inherited_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY_FD "SHOAL_MEMORY_FD"
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Nothing in it is executed. Systems may refuse memory that does not say so (vm.memfd_noexec), and
 * kernels before 6.3 do not know the word. */
static int create(const char *name)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create(name, flags) : fd;
}

int rank_memory_open_as(const char *name, int *ret_fd, struct error *err)
{
    *ret_fd = create(name);
    if (*ret_fd == 0) { /* standard input is closed: 0 means none */
        *ret_fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
        close(0);
    }
    return *ret_fd < 0 ? error_errno(err, errno, "%s", name) : 0;
}

int rank_memory_open(int local_rank, int *ret_fd, struct error *err)
{
    char name[32];
    snprintf(name, sizeof name, "shoal-rank-%d", local_rank);
    return rank_memory_open_as(name, ret_fd, err)
               ? error_wrap(err, "memory for local rank %d", local_rank)
               : 0;
}

void rank_memory_set_inheritable(int fd)
{
    if (fd > 0)
        inherited_file_give(MEMORY_FD, fd);
    else
        unsetenv(MEMORY_FD);
}

/* Only memory that was created so can be sealed: a file of /dev/shm has seals too, but takes
 * none. */
bool rank_memory_is(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    return fd > 0 && seals >= 0 && !(seals & F_SEAL_SEAL);
}

int rank_memory_inherit(void)
{
    int fd = inherited_file_take(MEMORY_FD, rank_memory_is);
    return fd > 0 ? fd : 0;
}

int64_t rank_memory_used(int fd)
{
    struct stat st;
    enum { BLOCK = 512 };
    return fd > 0 && fstat(fd, &st) == 0 ? (int64_t)st.st_blocks * BLOCK : 0;
}

int64_t rank_memory_size(int fd)
{
    struct stat st;
    return fd > 0 && fstat(fd, &st) == 0 ? (int64_t)st.st_size : 0;
}

int64_t rank_memory_begin(int fd)
{
    off_t begin = fd > 0 ? lseek(fd, 0, SEEK_DATA) : -1;
    return begin > 0 ? (int64_t)begin : 0;
}

int rank_memory_map(int fd, int64_t offset, int64_t bytes, void **ret_memory, struct error *err)
{
    int failure = ftruncate(fd, offset + bytes) ? errno : EINTR;
    /* All pages now: one that is missing later would kill the rank by SIGBUS. */
    while (failure == EINTR)
        failure = posix_fallocate(fd, offset, bytes);
    if (failure)
        return error_set(
            err, failure == ENOSPC || failure == ENOMEM || failure == EPERM ? ERR_MEMORY : ERR_IO,
            "memory that outlives the rank, %lld bytes: %s", (long long)bytes, strerror(failure));
    void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    if (memory == MAP_FAILED)
        return error_errno(err, errno, "map memory that outlives the rank, %lld bytes",
                           (long long)bytes);
    *ret_memory = memory;
    return 0;
}

void rank_memory_empty(int fd)
{
    if (ftruncate(fd, 0)) /* it stays as it is, until the launcher ends */
        return;
}

void rank_memory_keep(int fd, int64_t begin, int64_t end)
{
    (void)!ftruncate(fd, end);
    if (begin > 0)
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, begin);
}

bool rank_memory_gives_back(int fd)
{
    /* Behind its end, where there is nothing to lose. */
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, rank_memory_size(fd), 1) == 0;
}

void rank_memory_unmap(void *memory, int64_t bytes)
{
    if (memory)
        munmap(memory, (size_t)bytes);
}
