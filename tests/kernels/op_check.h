/* The judge of differentiable ops in both dtypes. A row of a table says how to run the op and what
 * it is in double precision; the judge runs it on values at random and asserts that
 *  - in fp32, outputs are the reference's and gradients its slope (ops_fixture.h);
 *  - in bf16, both are what fp32 makes of the same values, but for the rounding of what is stored:
 *    fp32 inside leaves half a unit in the last place, and one more where the op's definition
 *    rounds in between; two are allowed;
 *  - two runs give the same bits, nothing is written that is not the op's, what was in outputs does
 *    not matter (it is NaN) unless they are added to. */
#ifndef SHOAL_TESTS_KERNELS_OP_CHECK_H
#define SHOAL_TESTS_KERNELS_OP_CHECK_H

#include "tests/kernels/ops_fixture.h"

enum { OUTPUT = MAX_INPUTS }; /* y, where an input's number is asked for */

struct op_row {
    const char *name;
    const void *shape; /* for the functions below */
    int inputs;
    int64_t in_count[MAX_INPUTS], y_count;
    int64_t saved_count;        /* floats that forward leaves for backward */
    bool parameter[MAX_INPUTS]; /* its gradient is fp32, and added to if accumulate */
    bool fp32[MAX_INPUTS];      /* is fp32 in every dtype; has no gradient */
    bool accumulate;
    bool y_is_x, dx_is_dy, dx_is_x; /* the same memory; x is input 0 */
    bool fp32_y;                    /* y, not dy, is fp32 in every dtype */
    bool may_differ;                /* from run to run, in bf16; else runs have equal bits */
    /* What goes wrong in bf16 alone, as without a barrier of the kernels for matrix units, is found
     * before fp32 and its reference, which take an emulated GPU longer. */
    bool bf16_first;
    float size; /* of the values; 0: 1 */
    /* Of bf16: outputs and gradients below are allowed the error of these; 0: 0.01 and 0.1. */
    float y_floor, floor;
    void (*reference)(const void *shape, double *y, double *const in[MAX_INPUTS]);
    /* Whether an element of an input (or y) is the op's; NULL: all are. Others are NaN. */
    bool (*used)(const void *shape, int which, int64_t i);
    void (*forward)(struct world *world, enum dtype t, const void *shape, void *y, float *saved,
                    void *const in[MAX_INPUTS]);
    /* NULL: only forward is checked. */
    void (*backward)(struct world *world, enum dtype t, const void *shape,
                     void *const gradient[MAX_INPUTS], const void *dy, const void *y,
                     const float *saved, void *const in[MAX_INPUTS]);
};

void check_op(struct world *world, const struct op_row *row);

/* Host floats as a tensor of dtype t on the device, and back. */
void *to_device_as(struct world *world, enum dtype t, const float *host, int64_t count);
float *from_device_as(struct world *world, enum dtype t, void *memory, int64_t count);
/* host[i] rounded to t, in place. Returns host. */
float *round_to(enum dtype t, float *host, int64_t count);

/* |got - want| <= units in bf16's last place of want, and near 0 that of `floor`. */
void assert_near_bf16(const float *got, const float *want, int64_t count, double units,
                      double floor, const char *what);
#endif
