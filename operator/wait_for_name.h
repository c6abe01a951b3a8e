/* Waiting until a name resolves: what a worker's init container does, by the operator's own image,
 * which has no shell and no tools. */
#ifndef SHOAL_OPERATOR_WAIT_FOR_NAME_H
#define SHOAL_OPERATOR_WAIT_FOR_NAME_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define WAIT_FOR_NAME_PAUSE_MS 2000 /* between two look-ups */

/* How it looks and waits. */
struct wait_for_name {
    /* Whether the name resolves now; if not, *ret_why says why (static text). */
    bool (*resolves)(void *context, const char *name, const char **ret_why);
    void (*pause)(void *context, int64_t ms);
    void *context;
};

/* Looks `tries` times, or with 0 for ever, and logs each time that it waits. ERR_TIMEOUT if the
 * name never resolved. */
int wait_for_name(const struct wait_for_name *how, const char *name, int64_t tries,
                  struct error *err);

/* "NAME [--tries N]" as a program of its own, by the machine's resolver. Returns its exit code.
 * Without N it does not give up: the master's node may take as long as it likes. It ends at once on
 * SIGTERM, even as process 1 of a container, which without a handler would not. */
int wait_for_name_main(int argc, char *const *argv);
#endif
