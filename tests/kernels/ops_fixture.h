/* What the tests of ops share: a device with a stream, arrays that go there and back with guards
 * behind them, and the two judgements. An op is written once more as a plain loop in double
 * precision (its reference); its output must be near the reference's, and its gradients must be
 * near the reference's slope along random directions. Nothing here knows which backend runs. */
#ifndef SHOAL_TESTS_KERNELS_OPS_FIXTURE_H
#define SHOAL_TESTS_KERNELS_OPS_FIXTURE_H

#include "base/mem.h"
#include "kernels/ops.h"
#include "tests/support.h"

struct world {
    struct device *device;
    struct stream *stream;
    const struct ops *ops;
    struct arena *arena; /* host memory of one test */
    uint64_t next_key;   /* random values: each array has its own */
};

int world_setup(void **state);
int world_setup_two_threads(void **state);
int world_teardown(void **state);

/* Host arrays of the world's arena. */
float *host_zeros(struct world *world, int64_t count);
float *host_random(struct world *world, int64_t count, float low, float high);
double *to_double(struct world *world, const float *values, int64_t count);

/* A copy of `bytes` host bytes on the device. */
void *to_device_bytes(struct world *world, const void *host, size_t bytes);
float *to_device(struct world *world, const float *host, int64_t count);

/* Copies back, fails if the op wrote behind the array, and frees. */
void from_device_bytes(struct world *world, void *host, void *memory, size_t bytes);
float *from_device(struct world *world, float *memory, int64_t count);

/* Each |got - want| <= tolerance * (1 + |want|); a NaN fails. */
void assert_near(const float *got, const double *want, int64_t count, double tolerance,
                 const char *what);

/* For what computes in the test's own thread on memory of its own: ThreadSanitizer has nothing to
 * see there, and would take most of a test's time. */
#define WITHOUT_TSAN __attribute__((no_sanitize("thread")))

/* An op in double precision: y = f(in[0], in[1], ...). */
enum { MAX_INPUTS = 4 };
struct reference {
    void (*forward)(const void *shape, double *y, double *const in[MAX_INPUTS]);
    const void *shape;
    int64_t y_count;
    double *in[MAX_INPUTS];
    int64_t in_count[MAX_INPUTS];
};
double *reference_run(struct world *world, const struct reference *r);

/* `gradient` must be the gradient of sum(dy * y) with respect to in[which]: along random
 * directions its slope equals the central difference of the reference. The step is small enough
 * that no relu or maximum changes sides (values are at random, double precision has room), so all
 * that is allowed for is the rounding of `gradient` itself: single precision sums. */
void assert_gradient(struct world *world, const struct reference *r, int which, const float *dy,
                     const float *gradient, const char *what);
#endif
