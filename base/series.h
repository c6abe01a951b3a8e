/* How a job's loss and rate went, in a bounded number of points: when it is full, every other one
 * goes, and from then on so many fewer come. The newest is always there. Pure. */
#ifndef SHOAL_BASE_SERIES_H
#define SHOAL_BASE_SERIES_H

#include <stdint.h>

struct json;

struct series_point {
    int64_t step;
    uint32_t time_s;    /* since 1970 */
    float loss, rate;   /* NaN: not known */
    int32_t world_size; /* ranks; 0: not known */
};

enum { SERIES_STEP_BITS = 44, SERIES_WORLD_BITS = 20 };
#define SERIES_STEP_MAX  ((INT64_C(1) << SERIES_STEP_BITS) - 1)
#define SERIES_WORLD_MAX ((1 << SERIES_WORLD_BITS) - 1)

/* A point as it is kept, in 20 bytes: there may be PAGE_POINTS_MAX of each job. */
struct series_kept {
    uint32_t time_s;
    float loss, rate;
    uint32_t low_step;                          /* its low bits, ... */
    uint32_t high_step : SERIES_STEP_BITS - 32; /* ... and the others */
    uint32_t world_size : SERIES_WORLD_BITS;
};

/* All zero: empty. */
struct series {
    struct series_kept *points; /* [size]; owned */
    int count, size;
    int stride; /* so many samples become a point; 0: one */
    int held;   /* samples that the last point stands for */
    int most;   /* points, which the owner may change at any time; 0: PAGE_POINTS_MAX */
};

void series_free(struct series *series); /* also empties */

/* A sample of the same step as the last one is none, nor is one beyond SERIES_STEP_MAX. Of more
 * ranks than SERIES_WORLD_MAX it is not known how many they are. */
void series_add(struct series *series, const struct series_point *sample);

/* The losses of at most `most` points, evenly spaced, the first and the last among them; NULL: none
 * is known. The caller owns it. */
struct json *series_losses(const struct series *series, int most);
/* {"unit":...,"time":[...],"step":[...],"loss":[...],"rate":[...],"worldSize":[...]}; NULL without
 * a point. */
struct json *series_json(const struct series *series, const char *unit);
#endif
