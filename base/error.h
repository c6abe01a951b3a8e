/* Errors as values. A function that can fail for a cause outside the program returns 0 or a
 * negative number. It describes the failure in its caller's `struct error`, always the last
 * argument. The text is fixed-size and lives on the caller's stack: nothing to free. A broken
 * precondition is a bug and is an assert, never an error. Only main, the loops and apply print
 * errors. */
#ifndef SHOAL_BASE_ERROR_H
#define SHOAL_BASE_ERROR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What kind of failure it is: enough for a caller to choose what to do, never a substitute for the
 * text. */
enum error_code {
    ERR_NONE = 0,
    ERR_INPUT,     /* a file, manifest or message from outside is wrong; trying again is useless */
    ERR_CONFIG,    /* a flag, variable or key is wrong; permanent */
    ERR_IO,        /* a system call failed */
    ERR_NO_SPACE,  /* the disk is full */
    ERR_NOT_FOUND, /* the named thing is not there */
    ERR_EXISTS,    /* the named thing is there already */
    ERR_CONFLICT,  /* it changed since it was read: read again */
    ERR_GONE,      /* what was asked for is too old to be had: start anew */
    ERR_FORBIDDEN, /* we may not: a right is missing, or the place is read-only */
    ERR_LIMIT,     /* larger than a stated cap */
    ERR_TIMEOUT,   /* a deadline passed */
    ERR_PEER,      /* another rank is gone or the collective was aborted; a restart may help */
    ERR_DEVICE,    /* this rank's GPU is lost or faulty; a restart may help */
    ERR_SHAPE,     /* tensors that do not fit together */
    ERR_MEMORY,    /* device memory is exhausted */
    ERR_UNSUPPORTED, /* understood, but not built */
    ERR_CANCELLED,   /* someone asked to stop */
    ERR_DIVERGED,    /* what is computed is no number any more */
    ERR_HARDWARE,    /* this machine's hardware is bad; another one may do */
};

struct error {
    enum error_code code;
    char msg[512]; /* one line, no newline at the end, cut if longer */
    bool shared;   /* all ranks of a job have this very error: one of them may report it for all */
};

/* Fills *err and returns -1, so that failing is one line: return error_set(err, ERR_IO, "open %s:
 * %s", ...). */
int error_set(struct error *err, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Like error_set with ": " and the text of errno_value added. ENOSPC and EDQUOT turn ERR_IO into
 * ERR_NO_SPACE. */
int error_errno(struct error *err, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text that is there; keeps the code; returns -1. For the way up. */
int error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
