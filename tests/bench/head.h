/* A language model's head over a chunk of rows, as agent/nn/nn_loss.c queues it: logits, loss, and
 * both gradients, of which the weights' is added to what is there. */
#ifndef SHOAL_TESTS_BENCH_HEAD_H
#define SHOAL_TESTS_BENCH_HEAD_H

#include "tests/bench/timing.h"

struct head {
    struct timing *timing;
    enum dtype t;
    int64_t rows, D, V;
    int64_t stride;            /* of the logits' rows: V, or nn_logit_stride(), as in training */
    void *x, *dx, *w, *logits; /* [rows, D], [rows, D], [V, D], [rows, stride]; the caller's */
    float *dw;                 /* [V, D] */
    double *sums;
    int32_t *ids; /* [rows], the targets */
};

enum head_op { HEAD_FORWARD, HEAD_LOSS, HEAD_DATA, HEAD_WEIGHTS, HEAD_OPS };

void head_run(const struct head *h, enum head_op op); /* queues it */
struct work head_work(const struct head *h, enum head_op op);
double head_predicted_ms(const struct head *h, enum head_op op); /* 0: not predicted */
#endif
