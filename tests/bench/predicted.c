#include "tests/bench/predicted.h"

#include <stdio.h>
#include <stdlib.h>

static const double ms = 1e3;

const struct time_device *predicted_device(const char *program)
{
    const char *name = getenv("PREDICT_FOR");
    const struct time_device *device;
    struct error err;
    if (!name || !name[0])
        return NULL;
    if (time_device_find(name, &device, &err) < 0) {
        fprintf(stderr, "%s: PREDICT_FOR: %s\n", program, err.msg);
        exit(2);
    }
    return device;
}

double predicted_linear_ms(const struct time_device *d, enum dtype t, const struct linear_shape *l,
                           int which)
{
    int value = (int)dtype_bytes(t);
    struct time_product p = {.value_bytes = value, .out_bytes = value, .speed = 1};
    double s = 0;
    p.unaligned = l->y_stride * value % 16 != 0 || l->in * value % 16 != 0;
    p.M = l->rows, p.N = l->out, p.K = l->in;
    s += d && which & PREDICT_FORWARD ? time_of_product(d, &p) : 0;
    p.N = l->in, p.K = l->out;
    s += d && which & PREDICT_DATA ? time_of_product(d, &p) : 0;
    p.M = l->out, p.K = l->rows, p.out_bytes = (int)sizeof(float), p.adds = true;
    s += d && which & PREDICT_WEIGHTS ? time_of_product(d, &p) : 0;
    return ms * s;
}

double predicted_attention_ms(const struct time_device *d, const struct time_attention *rates,
                              const struct attention_shape *z, bool backward)
{
    const struct time_attention_call call = {.rows = z->B,
                                             .heads = z->heads,
                                             .hd = z->hd,
                                             .queries = z->T_q,
                                             .keys = z->T_k,
                                             .causal = z->causal,
                                             .backward = backward};
    const double *rate = rates ? (backward ? rates->backward : rates->forward) : NULL;
    return d && rate && rate[0] > 0 ? ms * time_of_attention(d, rates, &call) : 0;
}

double predicted_op_ms(const struct time_device *d, double flops, double bytes)
{
    const double efficiency = 0.9; /* [guess] of most kernels; time_step*.c has each one's */
    double moved_s = d ? time_of_pass(d, bytes, efficiency) : 0;
    double computed_s = d ? flops / (d->fp32 * time_convolution) : 0;
    return ms * (moved_s > computed_s ? moved_s : computed_s);
}
