/* A symmetric window as tests of it open and fill it. */
#ifndef SHOAL_TESTS_AGENT_NCCL_WINDOW_H
#define SHOAL_TESTS_AGENT_NCCL_WINDOW_H

#include "agent/comm/comm.h"

/* A window with room for a rank's slice, and for all of them. */
enum { COUNT = 1000, SLICE = 0, WHOLE = 1 << 16, WINDOW_BYTES = 1 << 20 };

static inline void *at(const struct comm_window *w, size_t offset)
{
    return (char *)w->memory + offset;
}

static inline int open_window(struct comm *c, struct stream *s, struct comm_window *w,
                              struct error *err)
{
    if (comm_open_window(c, s, WINDOW_BYTES, w, err))
        return -1;
    return w->memory ? 0 : error_set(err, ERR_INPUT, "no window: %s", w->why);
}
#endif
