/* Convolutions. 3x3 kernels over many channels go to Winograd's transform; the others become matrix
 * products: the patch under the kernel of each output place is copied to a row of a matrix, one
 * image at a time. */
#include "kernels/cpu/conv2d.h"

#include "kernels/cpu/gemm.h"

#include <omp.h>
#include <string.h>

static bool fits_winograd(const struct conv2d_shape *s)
{
    return s->KH == 3 && s->KW == 3 && s->C_in % WINOGRAD_CHANNELS == 0 &&
           s->C_out % WINOGRAD_CHANNELS == 0;
}

/* Sizes of the matrices of one image. */
struct sizes {
    int64_t OW, places; /* output width; output places */
    int64_t patch;      /* C_in * KH * KW, in the order of w */
};

static struct sizes sizes_of(const struct conv2d_shape *s)
{
    int64_t OW = s->W - s->KW + 1;
    return (struct sizes){OW, (s->H - s->KH + 1) * OW, s->C_in * s->KH * s->KW};
}

/* patches: [places, patch] of the image x: [H, W, C_in]. */
static void copy_patches(float *patches, const float *x, const struct conv2d_shape *s)
{
    struct sizes z = sizes_of(s);
    for (int64_t p = 0; p < z.places; p++) {
        const float *corner = x + (p / z.OW * s->W + p % z.OW) * s->C_in;
        for (int64_t i = 0; i < s->C_in; i++)
            for (int64_t h = 0; h < s->KH; h++)
                for (int64_t w = 0; w < s->KW; w++)
                    *patches++ = corner[(h * s->W + w) * s->C_in + i];
    }
}

static void add_patches(float *dx, const float *patches, const struct conv2d_shape *s)
{
    struct sizes z = sizes_of(s);
    for (int64_t p = 0; p < z.places; p++) {
        float *corner = dx + (p / z.OW * s->W + p % z.OW) * s->C_in;
        for (int64_t i = 0; i < s->C_in; i++)
            for (int64_t h = 0; h < s->KH; h++)
                for (int64_t w = 0; w < s->KW; w++)
                    corner[(h * s->W + w) * s->C_in + i] += *patches++;
    }
}

/* Room for an image's patches for each thread. */
static float *patches_scratch(const struct conv2d_args *a)
{
    struct sizes z = sizes_of(&a->shape);
    return cpu_scratch(a->s, (size_t)(omp_get_max_threads() * z.places * z.patch) * sizeof(float));
}

static void add_bias(float *y, const struct conv2d_args *a, int64_t places)
{
    for (int64_t p = 0; p < places; p++)
        for (int64_t o = 0; o < a->shape.C_out; o++, y++) {
            float sum = a->bias ? *y + a->bias[o] : *y;
            *y = a->relu && sum < 0 ? 0 : sum;
        }
}

static void forward_run(void *args)
{
    const struct conv2d_args *a = args;
    const struct conv2d_shape *s = &a->shape;
    if (fits_winograd(s)) {
        winograd_forward(a);
        return;
    }
    struct sizes z = sizes_of(s);
    float *scratch = patches_scratch(a);
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < s->B; b++) {
        float *patches = scratch + omp_get_thread_num() * z.places * z.patch;
        float *y = a->y + b * z.places * s->C_out;
        copy_patches(patches, a->x + b * s->H * s->W * s->C_in, s);
        cpu_gemm('N', 'T', z.places, s->C_out, z.patch, patches, a->w, 0, y, s->C_out);
        add_bias(y, a, z.places);
    }
}

static void check(const struct conv2d_shape *s)
{
    assert(s->KH >= 1 && s->KW >= 1 && s->H >= s->KH && s->W >= s->KW);
    assert(s->B >= 0 && s->C_in >= 1 && s->C_out >= 1);
}

void cpu_conv2d_forward(struct stream *s, float *y, const float *x, const float *w,
                        const float *bias, bool relu, const struct conv2d_shape *shape)
{
    check(shape);
    cpu_call(s, forward_run, struct conv2d_args, .s = s, .y = y, .x = x, .w = w, .bias = bias,
             .relu = relu, .shape = *shape);
}

static void backward_data_run(void *args)
{
    const struct conv2d_args *a = args;
    const struct conv2d_shape *s = &a->shape;
    if (fits_winograd(s)) {
        winograd_backward_data(a);
        return;
    }
    struct sizes z = sizes_of(s);
    int64_t image = s->H * s->W * s->C_in;
    float *scratch = patches_scratch(a);
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < s->B; b++) {
        float *patches = scratch + omp_get_thread_num() * z.places * z.patch;
        memset(a->dx + b * image, 0, (size_t)image * sizeof *a->dx);
        cpu_gemm('N', 'N', z.places, z.patch, s->C_out, a->dy + b * z.places * s->C_out, a->w, 0,
                 patches, z.patch);
        add_patches(a->dx + b * image, patches, s);
    }
}

void cpu_conv2d_backward_data(struct stream *s, float *dx, const float *dy, const float *w,
                              const struct conv2d_shape *shape)
{
    check(shape);
    cpu_call(s, backward_data_run, struct conv2d_args, .s = s, .dx = dx, .dy = dy, .w = w,
             .shape = *shape);
}

static void backward_weights_run(void *args)
{
    const struct conv2d_args *a = args;
    const struct conv2d_shape *s = &a->shape;
    struct sizes z = sizes_of(s);
    if (a->dbias)
        cpu_sum_rows(a->dbias, DTYPE_F32, a->dy, s->B * z.places, s->C_out, s->C_out,
                     a->accumulate);
    if (fits_winograd(s)) {
        winograd_backward_weights(a);
        return;
    }
    float *patches = patches_scratch(a);
    for (int64_t b = 0; b < s->B; b++) { /* in order: they add up in dw */
        copy_patches(patches, a->x + b * s->H * s->W * s->C_in, s);
        cpu_gemm('T', 'N', s->C_out, z.patch, z.places, a->dy + b * z.places * s->C_out, patches,
                 b > 0 || a->accumulate ? 1 : 0, a->dw, z.patch);
    }
}

void cpu_conv2d_backward_weights(struct stream *s, float *dw, float *dbias, const float *x,
                                 const float *dy, const struct conv2d_shape *shape, bool accumulate)
{
    check(shape);
    assert(shape->B >= 1);
    cpu_call(s, backward_weights_run, struct conv2d_args, .s = s, .dw = dw, .dbias = dbias, .x = x,
             .dy = dy, .shape = *shape, .accumulate = accumulate);
}
