/* Two convolution algorithms: Winograd's where it fits, else a matrix product over copied patches
 * (im2col). conv2d.c chooses. Both compute in fp32, an image at a time: an image of a bf16 tensor
 * is converted when it is read, and its result is rounded when it is written. */
#ifndef SHOAL_KERNELS_CPU_CONV2D_H
#define SHOAL_KERNELS_CPU_CONV2D_H

#include "kernels/cpu/cpu.h"

/* Those of the op that is run; the others are 0. See ops.h. */
struct conv2d_args {
    struct stream *s;
    enum dtype t;
    void *y, *dx;
    float *dw, *dbias;
    const void *x, *w, *bias, *dy;
    struct conv2d_shape shape;
    bool relu, accumulate;
};

/* The op's tensors as floats: their own memory if they are fp32, else copies in scratch. */
struct conv2d_floats {
    const float *w, *bias; /* NULL where the op has none */
    float *images;         /* room for each thread's copies of an image */
};

/* Scratch for the op: `count` floats, returned, and what *ret_floats needs beside them. */
float *conv2d_scratch(const struct conv2d_args *a, int64_t count, struct conv2d_floats *ret_floats);

/* An image of what the op reads (x, dy) and of what it writes (y, dx), NULL where it has none. */
struct conv2d_image {
    const float *x, *dy;
    float *y, *dx;
};

/* Image b, for the calling thread until it opens another. What is to be written is not read. */
struct conv2d_image conv2d_open_image(const struct conv2d_args *a,
                                      const struct conv2d_floats *floats, int64_t b);
/* What was written is now the tensor's. */
void conv2d_close_image(const struct conv2d_args *a, const struct conv2d_image *image, int64_t b);

enum { WINOGRAD_CHANNELS = 8 }; /* C_in and C_out must be multiples */

/* Of shapes with a 3x3 kernel. dbias is the caller's business. */
void winograd_forward(const struct conv2d_args *a);
void winograd_backward_data(const struct conv2d_args *a);
void winograd_backward_weights(const struct conv2d_args *a);

#endif
