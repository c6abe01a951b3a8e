/* Signals as file descriptors, so that the loop waits for everything in one poll. */
#ifndef SHOAL_BASE_SIGNALS_H
#define SHOAL_BASE_SIGNALS_H

#include "base/error.h"

struct signals {
    int child_fd; /* SIGCHLD */
    int stop_fd;  /* SIGINT, SIGTERM, SIGHUP */
};

/* Blocks them for the whole program, and ignores SIGPIPE. */
int signals_open(struct signals *signals, struct error *err);
void signals_close(struct signals *signals);

/* The next signal of one of the two, or 0; never waits. */
int signals_take(int fd);
#endif
