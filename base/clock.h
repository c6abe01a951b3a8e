/* The time. Called by main and the loops only: everything else is given the time as an argument. */
#ifndef SHOAL_BASE_CLOCK_H
#define SHOAL_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The two clocks, for whoever needs the time at any moment; tests bring their own. */
struct clocks {
    int64_t (*wall_ms)(void);
    int64_t (*steady_ms)(void); /* monotonic */
};
extern const struct clocks clocks_system;

int64_t clock_now_ms(void);       /* wall clock, milliseconds since 1970-01-01T00:00:00Z */
int64_t clock_monotonic_ms(void); /* never jumps; origin unspecified */
int64_t clock_monotonic_us(void);
int64_t clock_now_ns(void); /* the wall's, as clock_now_ms() */
int64_t clock_monotonic_ns(void);

/* The wall clock as it is when this is opened, moved on by the steady one: nobody sets it. For
 * delays and durations beside times that people are shown. */
struct clock_run {
    const struct clocks *clocks; /* borrowed */
    int64_t ahead_ms;            /* of the steady clock */
};
struct clock_run clock_run_open(const struct clocks *clocks);
int64_t clock_run_ms(const struct clock_run *run);

/* How long it is from now to then on the same clock: 0 if it is past; INT64_MAX stays (never). */
int64_t clock_until_ms(int64_t then_ms, int64_t now_ms);

/* Writes a wall clock time as RFC 3339 with whole seconds ("2026-11-21T11:06:00Z"): metav1.Time's
 * form. out has at least 32 bytes. */
void clock_format_rfc3339(int64_t wall_ms, char *out, size_t out_bytes);

/* The same with microseconds ("2026-11-21T11:06:00.250000Z"): metav1.MicroTime's form. */
void clock_format_micro(int64_t wall_ms, char *out, size_t out_bytes);

/* Reads RFC 3339, with Z or an offset from UTC ("+02:00"); a fraction of a second
 * (metav1.MicroTime) is dropped. False and nothing written if text is anything else. */
bool clock_parse_rfc3339(const char *text, int64_t *ret_wall_ms);

/* The same, but keeps the milliseconds of a fraction. */
bool clock_parse_micro(const char *text, int64_t *ret_wall_ms);
#endif
