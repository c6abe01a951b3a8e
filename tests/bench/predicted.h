/* What agent/plan/time_model.h predicts for a row of a bench, to stand beside what was measured.
 * The environment variable PREDICT_FOR names the GPU, as `shoal plan --device` takes it. */
#ifndef SHOAL_TESTS_BENCH_PREDICTED_H
#define SHOAL_TESTS_BENCH_PREDICTED_H

#include "agent/plan/time_model.h"
#include "kernels/ops.h"

/* NULL: PREDICT_FOR is not set. Ends the program with a line if no GPU is called so. */
const struct time_device *predicted_device(const char *program);

/* Milliseconds, 0 without a device. A linear layer's forward, the gradient of its input (not with
 * its bias), and that of its weights, which is added. */
enum { PREDICT_FORWARD = 1, PREDICT_DATA = 2, PREDICT_WEIGHTS = 4 };
double predicted_linear_ms(const struct time_device *device, enum dtype t,
                           const struct linear_shape *shape, int which);
double predicted_attention_ms(const struct time_device *device, const struct time_attention *rates,
                              const struct attention_shape *shape, bool backward);
/* Another op, by what takes longer: a pass over so many bytes, or so many FLOPs of fp32. */
double predicted_op_ms(const struct time_device *device, double flops, double bytes);
#endif
