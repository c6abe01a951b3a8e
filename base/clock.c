#include "base/clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_now_ms(void)
{
    return read_ns(CLOCK_REALTIME) / 1000000;
}

int64_t clock_now_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

int64_t clock_monotonic_ms(void)
{
    return read_ns(CLOCK_MONOTONIC) / 1000000;
}

int64_t clock_monotonic_us(void)
{
    return read_ns(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_monotonic_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t clock_until_ms(int64_t then_ms, int64_t now_ms)
{
    if (then_ms == INT64_MAX)
        return INT64_MAX;
    return then_ms > now_ms ? then_ms - now_ms : 0;
}

struct clock_run clock_run_open(const struct clocks *clocks)
{
    return (struct clock_run){.clocks = clocks,
                              .ahead_ms = clocks->wall_ms() - clocks->steady_ms()};
}

int64_t clock_run_ms(const struct clock_run *run)
{
    /* Wall time as of the start, moved on by the steady clock: durations between two stamps stay
     * right when the wall clock is set. */
    return run->clocks->steady_ms() + run->ahead_ms;
}

const struct clocks clocks_system = {clock_now_ms, clock_monotonic_ms};

void clock_format_rfc3339(int64_t wall_ms, char *out, size_t out_bytes)
{
    assert(out_bytes >= 32);
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(out, out_bytes, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

void clock_format_micro(int64_t wall_ms, char *out, size_t out_bytes)
{
    char seconds[32];
    clock_format_rfc3339(wall_ms, seconds, sizeof seconds);
    seconds[strlen(seconds) - 1] = '\0'; /* its Z */
    snprintf(out, out_bytes, "%s.%03d000Z", seconds, (int)(wall_ms % 1000));
}

/* "Z", or "+HH:MM" or "-HH:MM" of at most 23:59: what the written time is ahead of UTC, in
 * seconds. */
static bool parse_offset(const char *text, int64_t *ret_s)
{
    *ret_s = 0;
    if (strcmp(text, "Z") == 0)
        return true;
    if (strlen(text) != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' ||
        strspn(text + 1, "0123456789") != 2 || strspn(text + 4, "0123456789") != 2)
        return false;
    int hours = 10 * (text[1] - '0') + text[2] - '0',
        minutes = 10 * (text[4] - '0') + text[5] - '0';
    *ret_s = (text[0] == '-' ? -60 : 60) * (hours * 60 + minutes);
    return hours < 24 && minutes < 60;
}

bool clock_parse_micro(const char *text, int64_t *ret_wall_ms)
{
    struct tm parts = {0};
    int64_t offset_s, ms = 0;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (!rest)
        return false;
    size_t digits = *rest == '.' ? strspn(rest + 1, "0123456789") : 0;
    for (size_t i = 0; i < 3; i++)
        ms = 10 * ms + (i < digits ? rest[1 + i] - '0' : 0);
    if (!parse_offset(rest + (digits > 0 ? 1 + digits : 0), &offset_s))
        return false;
    *ret_wall_ms = ((int64_t)timegm(&parts) - offset_s) * 1000 + ms;
    return true;
}

bool clock_parse_rfc3339(const char *text, int64_t *ret_wall_ms)
{
    int64_t wall_ms;
    if (!clock_parse_micro(text, &wall_ms))
        return false;
    *ret_wall_ms = wall_ms - ((wall_ms % 1000) + 1000) % 1000;
    return true;
}
