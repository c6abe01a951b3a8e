/* When to do nothing, as another operator works on the same jobs: for a minute after its last
 * write. A job at rest is not written, so that silence may mean that it is gone or that nothing
 * happened: each time that it writes again soon after, the pause is twice as long, up to an hour.
 * Pure: no clock, no I/O. Times are of the steady clock. */
#ifndef SHOAL_OPERATOR_STAND_ASIDE_H
#define SHOAL_OPERATOR_STAND_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

#define STAND_ASIDE_FIRST_MS (60 * INT64_C(1000))
#define STAND_ASIDE_MAX_MS   (60 * STAND_ASIDE_FIRST_MS)

struct stand_aside {
    int64_t until_ms; /* 0: nobody was seen yet */
    int64_t pause_ms; /* after the last write */
};

/* The other operator wrote at now_ms. Returns whether a pause begins with it. */
bool stand_aside_begin(struct stand_aside *aside, int64_t now_ms);
/* For how long yet; 0: we work. */
int64_t stand_aside_left_ms(const struct stand_aside *aside, int64_t now_ms);
#endif
