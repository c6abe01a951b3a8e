/* File operations for tests: the real ones on a real directory, of which the n-th fails, or is the
 * last that a dying process did not get to do. After such a crash, what was never synced can be
 * taken off the disk, as a power cut may. */
#ifndef SHOAL_TESTS_SUPPORT_FILES_H
#define SHOAL_TESTS_SUPPORT_FILES_H

#include "base/durable.h"

#include <pthread.h>
#include <stdbool.h>

enum { FAULTY_MAX_CHANGES = 4096 };

enum faulty_change_kind { CHANGE_CREATE, CHANGE_RENAME, CHANGE_EXCHANGE, CHANGE_DATA };

/* A change that is not durable yet. */
struct faulty_change {
    enum faulty_change_kind kind;
    char *path, *from; /* from: renames only. Both follow later renames of directories above */
    char *replaced;    /* renames only: another name of the file that had this name, or NULL */
    int fd;            /* CHANGE_DATA: of its own, so that it outlives names */
};

enum faulty_loss {
    LOSE_NOTHING, /* the process died, the machine did not */
    LOSE_DATA,    /* names survive, data that was not synced does not */
    LOSE_ALL,     /* neither does */
};

struct faulty_files {
    struct file_ops ops; /* give this to the code under test; thread-safe */
    pthread_mutex_t mutex;
    int done;    /* operations asked for so far */
    int fail_at; /* this one (counted from 0) fails; -1: none */
    int error;   /* errno of the failure; 0: crash instead: nothing is done from then on */
    bool crashed;
    struct faulty_change changes[FAULTY_MAX_CHANGES];
    int change_count;
};

void faulty_init(struct faulty_files *f, int fail_at, int error);
/* What a crash leaves on the disk. */
void faulty_lose(struct faulty_files *f, enum faulty_loss loss);
void faulty_free(struct faulty_files *f);
#endif
