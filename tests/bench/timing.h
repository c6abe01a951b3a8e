/* What the benches of ops share: a device with a stream, the time that queued work takes on it, and
 * how far that is from the least the device could need. */
#ifndef SHOAL_TESTS_BENCH_TIMING_H
#define SHOAL_TESTS_BENCH_TIMING_H

#include "tests/bench/predicted.h"

struct timing {
    const char *program; /* for messages */
    struct device *device;
    struct stream *s;
    const struct ops *ops;
    double tflops, gbytes; /* a second: what the device can do at most; 0: not known */
    const struct time_device *predicted; /* whose times are predicted; NULL: nobody's */
};

/* What a row did, for its floor: the larger of the two times. 0: does not count. */
struct work {
    double flops; /* multiplications and additions */
    double bytes; /* read and written at least */
};

/* Reads [DEVICE [THREADS [TFLOPS GBYTES]]] ("cpu", 1, not known) and opens. Ends the program with a
 * line if it cannot. */
void timing_open(struct timing *ret_timing, const char *program, int argc, char **argv);
/* The same for benches that know DEVICE "none": PREDICT_FOR alone fills the rows. */
void timing_open_or_predict(struct timing *ret_timing, const char *program, int argc, char **argv);
bool timing_measures(const struct timing *t); /* there is a device */
void timing_close(struct timing *t);
/* BENCH_TINY is set: sizes are to be a fraction of the usual, for a device that is emulated. */
bool timing_is_tiny(void);

/* Device memory, and the same with what lies at `from`. Ends the program where there is none. */
void *timing_room(struct timing *t, size_t bytes);
void *timing_copy(struct timing *t, const void *from, size_t bytes);
/* Numbers from -1 to 1. */
bf16 *timing_random(struct timing *t, int64_t count);

/* Milliseconds of what run(ctx) queues: the best of several rounds, each of enough runs to take
 * longer than the clock's grain. One round goes before them, which does not count. */
double timing_ms(struct timing *t, void (*run)(void *ctx), void *ctx);

/* A line of a table, after its name and ms: the rate, the floor's share of ms, and what is
 * predicted; 0: nothing is. */
void timing_print_rate(const struct timing *t, const struct work *work, double ms,
                       double predicted_ms);
#endif
