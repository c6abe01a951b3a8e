/* One run at a time writes checkpoints into a directory. The run's rank 0 holds an advisory lock
 * (flock(2)) on "<directory>/.shoal-lock", and writes its name into that file. The lock ends with
 * the process, however that ends. The file stays: removing it would let two runs hold a lock on two
 * files of one name. Knows nothing of checkpoints; never waits. */
#ifndef SHOAL_AGENT_CHECKPOINT_DIRECTORY_LOCK_H
#define SHOAL_AGENT_CHECKPOINT_DIRECTORY_LOCK_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define DIRECTORY_LOCK_FILE ".shoal-lock"

/* Who holds a lock. "" and 0: not known. */
struct directory_owner {
    char host[256]; /* of a pod, the pod's name */
    int64_t pid;    /* on that host; in a container, the container's */
    char run[64];   /* the run's id, which stays the same when the run is restarted */
};

enum directory_lock_state {
    DIRECTORY_LOCKED,      /* ret_fd holds the lock until it is closed */
    DIRECTORY_BUSY,        /* another process holds it: *ret_owner */
    DIRECTORY_HAS_NO_LOCK, /* the file system has no locks (some mounts of NFS and Lustre): `err`
                              says what it answers */
};

/* This process, as the owner that directory_lock() writes down. run: its id; NULL or "": none. */
void directory_owner_self(const char *run, struct directory_owner *ret_owner);

/* Tries once to lock the directory, which exists. flock: flock(2), or what a test puts in its
 * place. Sets *ret_fd with DIRECTORY_LOCKED only, -1 else; *ret_owner with DIRECTORY_BUSY only. */
enum directory_lock_state directory_lock(const char *dir, const struct directory_owner *self,
                                         int (*flock)(int fd, int operation), int *ret_fd,
                                         struct directory_owner *ret_owner, struct error *err);
#endif
