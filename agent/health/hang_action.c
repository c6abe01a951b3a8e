#include "agent/health/hang_action.h"

#include "base/str.h"

#include <limits.h>

enum hang_action hang_action_now(enum hang_action asked, const char *attempt, const char *most)
{
    int64_t done = 0, granted = 0;
    bool is_left = attempt && most && str_to_i64(attempt, 0, INT_MAX, &done) &&
                   str_to_i64(most, 0, INT_MAX, &granted) && done < granted;
    return asked == HANG_RESTART && !is_left ? HANG_REPORT : asked;
}
