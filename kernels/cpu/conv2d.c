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

/* The transpose of copy_patches: patches overlap, so each place of dx is the sum over all patches
 * that it is in. */
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

/* ---- bf16 tensors as floats ---- */

CPU_HOT static void to_floats(float *y, const bf16 *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = bf16_to_float(x[i]);
}

CPU_HOT static void from_floats(bf16 *y, const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = bf16_from_float(x[i]);
}

/* Elements `first` and on of a tensor: of an fp32 one where they are, else in `copy`, where those
 * of one that is read are put. */
static float *floats_of(enum dtype t, const void *x, bool read, int64_t first, int64_t count,
                        float *copy)
{
    if (!x)
        return NULL;
    if (t == DTYPE_F32)
        return (float *)x + first;
    if (read)
        to_floats(copy, (const bf16 *)x + first, count);
    return copy;
}

/* Elements of an image of x, and of y. */
static int64_t input_count(const struct conv2d_shape *s)
{
    return s->H * s->W * s->C_in;
}

static int64_t output_count(const struct conv2d_shape *s)
{
    return sizes_of(s).places * s->C_out;
}

float *conv2d_scratch(const struct conv2d_args *a, int64_t count, struct conv2d_floats *ret_floats)
{
    const struct conv2d_shape *s = &a->shape;
    int64_t weights = s->C_out * sizes_of(s).patch, copies = 0;
    if (a->t != DTYPE_F32)
        copies = weights + s->C_out + omp_get_max_threads() * (input_count(s) + output_count(s));
    float *scratch = cpu_scratch(a->s, (size_t)(count + copies) * sizeof(float));
    float *w = scratch + count, *bias = w + weights;
    *ret_floats = (struct conv2d_floats){
        .w = floats_of(a->t, a->w, true, 0, weights, w),
        .bias = floats_of(a->t, a->bias, true, 0, s->C_out, bias),
        .images = bias + s->C_out,
    };
    return scratch;
}

struct conv2d_image conv2d_open_image(const struct conv2d_args *a,
                                      const struct conv2d_floats *floats, int64_t b)
{
    int64_t in = input_count(&a->shape), out = output_count(&a->shape);
    float *in_copy = floats->images + omp_get_thread_num() * (in + out), *out_copy = in_copy + in;
    return (struct conv2d_image){
        .x = floats_of(a->t, a->x, true, b * in, in, in_copy),
        .dy = floats_of(a->t, a->dy, true, b * out, out, out_copy),
        .y = floats_of(a->t, a->y, false, b * out, out, out_copy),
        .dx = floats_of(a->t, a->dx, false, b * in, in, in_copy),
    };
}

void conv2d_close_image(const struct conv2d_args *a, const struct conv2d_image *image, int64_t b)
{
    int64_t in = input_count(&a->shape), out = output_count(&a->shape);
    if (a->t == DTYPE_F32)
        return;
    if (a->y)
        from_floats((bf16 *)a->y + b * out, image->y, out);
    if (a->dx)
        from_floats((bf16 *)a->dx + b * in, image->dx, in);
}

/* ---- products over patches ---- */

/* Room for an image's patches for each thread. */
static float *patches_scratch(const struct conv2d_args *a, struct conv2d_floats *ret_floats)
{
    struct sizes z = sizes_of(&a->shape);
    return conv2d_scratch(a, omp_get_max_threads() * z.places * z.patch, ret_floats);
}

static void add_bias(float *y, const float *bias, const struct conv2d_args *a, int64_t places)
{
    for (int64_t p = 0; p < places; p++)
        for (int64_t o = 0; o < a->shape.C_out; o++, y++) {
            float sum = bias ? *y + bias[o] : *y;
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
    struct conv2d_floats floats;
    float *scratch = patches_scratch(a, &floats);
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < s->B; b++) {
        float *patches = scratch + omp_get_thread_num() * z.places * z.patch;
        struct conv2d_image image = conv2d_open_image(a, &floats, b);
        copy_patches(patches, image.x, s);
        cpu_gemm('N', 'T', z.places, s->C_out, z.patch, patches, floats.w, 0, image.y, s->C_out);
        add_bias(image.y, floats.bias, a, z.places);
        conv2d_close_image(a, &image, b);
    }
}

static void check(const struct conv2d_shape *s)
{
    assert(s->KH >= 1 && s->KW >= 1 && s->H >= s->KH && s->W >= s->KW);
    assert(s->B >= 0 && s->C_in >= 1 && s->C_out >= 1);
}

void cpu_conv2d_forward(struct stream *s, enum dtype t, void *y, const void *x, const void *w,
                        const void *bias, bool relu, const struct conv2d_shape *shape)
{
    check(shape);
    cpu_call(s, forward_run, struct conv2d_args, .s = s, .t = t, .y = y, .x = x, .w = w,
             .bias = bias, .relu = relu, .shape = *shape);
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
    struct conv2d_floats floats;
    float *scratch = patches_scratch(a, &floats);
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < s->B; b++) {
        float *patches = scratch + omp_get_thread_num() * z.places * z.patch;
        struct conv2d_image image = conv2d_open_image(a, &floats, b);
        memset(image.dx, 0, (size_t)input_count(s) * sizeof *image.dx);
        cpu_gemm('N', 'N', z.places, z.patch, s->C_out, image.dy, floats.w, 0, patches, z.patch);
        add_patches(image.dx, patches, s);
        conv2d_close_image(a, &image, b);
    }
}

void cpu_conv2d_backward_data(struct stream *s, enum dtype t, void *dx, const void *dy,
                              const void *w, const struct conv2d_shape *shape)
{
    check(shape);
    cpu_call(s, backward_data_run, struct conv2d_args, .s = s, .t = t, .dx = dx, .dy = dy, .w = w,
             .shape = *shape);
}

static void backward_weights_run(void *args)
{
    const struct conv2d_args *a = args;
    const struct conv2d_shape *s = &a->shape;
    struct sizes z = sizes_of(s);
    if (a->dbias)
        cpu_sum_rows(a->dbias, a->t, a->dy, s->B * z.places, s->C_out, s->C_out, a->accumulate);
    if (fits_winograd(s)) {
        winograd_backward_weights(a);
        return;
    }
    struct conv2d_floats floats;
    float *patches = patches_scratch(a, &floats);
    for (int64_t b = 0; b < s->B; b++) { /* in order: they add up in dw */
        struct conv2d_image image = conv2d_open_image(a, &floats, b);
        copy_patches(patches, image.x, s);
        cpu_gemm('T', 'N', s->C_out, z.patch, z.places, image.dy, patches,
                 b > 0 || a->accumulate ? 1 : 0, a->dw, z.patch);
    }
}

void cpu_conv2d_backward_weights(struct stream *s, enum dtype t, float *dw, float *dbias,
                                 const void *x, const void *dy, const struct conv2d_shape *shape,
                                 bool accumulate)
{
    check(shape);
    assert(shape->B >= 1);
    cpu_call(s, backward_weights_run, struct conv2d_args, .s = s, .t = t, .dw = dw, .dbias = dbias,
             .x = x, .dy = dy, .shape = *shape, .accumulate = accumulate);
}
