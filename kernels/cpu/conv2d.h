/* The two ways to convolve: by Winograd's transform where it fits, else as a matrix product over
 * copied patches. conv2d.c chooses. */
#ifndef SHOAL_KERNELS_CPU_CONV2D_H
#define SHOAL_KERNELS_CPU_CONV2D_H

#include "kernels/cpu/cpu.h"

/* Those of the op that is run; the others are 0. See ops.h. */
struct conv2d_args {
    struct stream *s;
    float *y, *dx, *dw, *dbias;
    const float *x, *w, *bias, *dy;
    struct conv2d_shape shape;
    bool relu, accumulate;
};

enum { WINOGRAD_CHANNELS = 8 }; /* C_in and C_out must be multiples */

/* Of shapes with a 3x3 kernel. dbias is the caller's business. */
void winograd_forward(const struct conv2d_args *a);
void winograd_backward_data(const struct conv2d_args *a);
void winograd_backward_weights(const struct conv2d_args *a);

#endif
