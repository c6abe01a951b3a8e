#include "operator/stand_aside.h"

bool stand_aside_begin(struct stand_aside *aside, int64_t now_ms)
{
    bool begins = stand_aside_left_ms(aside, now_ms) == 0;
    bool again = aside->until_ms && now_ms - aside->until_ms < STAND_ASIDE_MAX_MS;
    if (begins) {
        aside->pause_ms = again ? 2 * aside->pause_ms : STAND_ASIDE_FIRST_MS;
        if (aside->pause_ms > STAND_ASIDE_MAX_MS)
            aside->pause_ms = STAND_ASIDE_MAX_MS;
    }
    aside->until_ms = now_ms + aside->pause_ms;
    return begins;
}

int64_t stand_aside_left_ms(const struct stand_aside *aside, int64_t now_ms)
{
    return aside->until_ms > now_ms ? aside->until_ms - now_ms : 0;
}
