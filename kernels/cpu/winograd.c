/* 3x3 convolutions by Winograd's minimal filtering F(2x2, 3x3) (Lavin and Gray, "Fast algorithms
 * for convolutional neural networks", 2016): 16 products where the plain sum needs 36.
 *
 * The output is cut into tiles of 2x2, each seen by 4x4 of the input. With the three transforms
 * of the paper, along both axes,
 *     forward           y = A' [ (B' x B) . (G w G') ] A
 * where the dot is, for each of the 16 points, a matrix product over channels. The backward passes
 * are the adjoints of the same steps:
 *     backward data    dx = B [ (A dy A') . (G w G')' ] B'     added up where tiles overlap
 *     backward weights dw = G' [ (B' x B)' . (A dy A') ] G     summed over tiles
 * The matrices are those of the paper's section 4.1:
 *
 *          1  0 -1  0          1    0    0          1  1  1  0
 *     B' = 0  1  1  0      G = 1/2  1/2  1/2   A' = 0  1 -1 -1
 *          0 -1  1  0          1/2 -1/2  1/2
 *          0  1  0 -1          0    0    1
 *
 * B and A hold only 0, 1 and -1: their transforms are additions, written out below. Transforms work
 * on 8 channels at a time, images being channels-last. Rounding differs from the plain sum's, by a
 * few units in the last place: F(2x2) is the tile size that stays that near; F(4x4) does not. */
#include "kernels/cpu/conv2d.h"
#include "kernels/cpu/gemm.h"

#include <omp.h>
#include <string.h>

enum { POINTS = 16, LANES = WINOGRAD_CHANNELS };
enum { BLOCK_TILES = 72 }; /* transformed together: their scratch stays in the L2 cache */

/* Any 8 floats in memory; one or two registers. */
typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t lane_bits __attribute__((vector_size(4 * LANES)));

/* A run of tiles of one image. */
struct tiles {
    int64_t cols;         /* tiles in a row of the image */
    int64_t first, count; /* row-major */
};

/* Offsets into an image [H, W, C] of the size x size pixels from (2 row, 2 col) of the tile on; -1
 * for those beyond the image. */
static void locate(const struct tiles *t, int64_t i, int size, int64_t H, int64_t W, int64_t C,
                   int64_t *ret_offsets)
{
    int64_t h = (t->first + i) / t->cols * 2, w = (t->first + i) % t->cols * 2;
    for (int row = 0; row < size; row++)
        for (int col = 0; col < size; col++)
            *ret_offsets++ = h + row < H && w + col < W ? ((h + row) * W + w + col) * C : -1;
}

/* The 1-D transforms. */
typedef void transform(lanes *out, const lanes *in);

static inline void input_transform(lanes *out, const lanes *in) /* B' */
{
    out[0] = in[0] - in[2];
    out[1] = in[1] + in[2];
    out[2] = in[2] - in[1];
    out[3] = in[1] - in[3];
}

static inline void input_adjoint(lanes *out, const lanes *in) /* B */
{
    out[0] = in[0];
    out[1] = in[1] - in[2] + in[3];
    out[2] = in[1] + in[2] - in[0];
    out[3] = -in[3];
}

static inline void output_transform(lanes *out, const lanes *in) /* A' */
{
    out[0] = in[0] + in[1] + in[2];
    out[1] = in[1] - in[2] - in[3];
}

static inline void output_adjoint(lanes *out, const lanes *in) /* A */
{
    out[0] = in[0];
    out[1] = in[0] + in[1];
    out[2] = in[0] - in[1];
    out[3] = -in[1];
}

/* [from][from] -> [to][to], both axes. */
static inline __attribute__((always_inline)) void both_axes(lanes *out, const lanes *in, int from,
                                                            int to, transform *along)
{
    lanes half[4][4], column[4];
    for (int i = 0; i < from; i++)
        along(half[i], in + i * from);
    for (int j = 0; j < to; j++) {
        lanes done[4];
        for (int i = 0; i < from; i++)
            column[i] = half[i][j];
        along(done, column);
        for (int i = 0; i < to; i++)
            out[i * to + j] = done[i];
    }
}

/* v: [POINTS, tiles, C] = B' x B; x: [H, W, C] */
CPU_HOT static void gather_input(float *v, const float *x, const struct tiles *t, int64_t H,
                                 int64_t W, int64_t C)
{
    int64_t offsets[16];
    for (int64_t tile = 0; tile < t->count; tile++) {
        locate(t, tile, 4, H, W, C, offsets);
        for (int64_t c = 0; c < C; c += LANES) {
            lanes in[16], out[16];
            for (int i = 0; i < 16; i++)
                in[i] = offsets[i] < 0 ? (lanes){0} : *(const lanes *)(x + offsets[i] + c);
            both_axes(out, in, 4, 4, input_transform);
            for (int i = 0; i < POINTS; i++)
                *(lanes *)(v + (i * t->count + tile) * C + c) = out[i];
        }
    }
}

/* dx: [H, W, C] += B n B'; n: [POINTS, tiles, C] */
CPU_HOT static void scatter_input(float *dx, const float *n, const struct tiles *t, int64_t H,
                                  int64_t W, int64_t C)
{
    int64_t offsets[16];
    for (int64_t tile = 0; tile < t->count; tile++) {
        locate(t, tile, 4, H, W, C, offsets);
        for (int64_t c = 0; c < C; c += LANES) {
            lanes in[16], out[16];
            for (int i = 0; i < POINTS; i++)
                in[i] = *(const lanes *)(n + (i * t->count + tile) * C + c);
            both_axes(out, in, 4, 4, input_adjoint);
            for (int i = 0; i < 16; i++)
                if (offsets[i] >= 0)
                    *(lanes *)(dx + offsets[i] + c) += out[i];
        }
    }
}

/* y: [OH, OW, C] = A' m A, then bias and relu; m: [POINTS, tiles, C] */
CPU_HOT static void scatter_output(float *y, const float *m, const float *bias, bool relu,
                                   const struct tiles *t, int64_t OH, int64_t OW, int64_t C)
{
    int64_t offsets[4];
    for (int64_t tile = 0; tile < t->count; tile++) {
        locate(t, tile, 2, OH, OW, C, offsets);
        for (int64_t c = 0; c < C; c += LANES) {
            lanes in[16], out[4];
            for (int i = 0; i < POINTS; i++)
                in[i] = *(const lanes *)(m + (i * t->count + tile) * C + c);
            both_axes(out, in, 4, 2, output_transform);
            lanes added = bias ? *(const lanes *)(bias + c) : (lanes){0};
            for (int i = 0; i < 4; i++) {
                lanes sum = out[i] + added;
                if (relu) /* a comparison gives all bits or none */
                    sum = (lanes)(~(sum < 0) & (lane_bits)sum);
                if (offsets[i] >= 0)
                    *(lanes *)(y + offsets[i] + c) = sum;
            }
        }
    }
}

/* d: [POINTS, tiles, C] = A dy A'; dy: [OH, OW, C] */
CPU_HOT static void gather_output(float *d, const float *dy, const struct tiles *t, int64_t OH,
                                  int64_t OW, int64_t C)
{
    int64_t offsets[4];
    for (int64_t tile = 0; tile < t->count; tile++) {
        locate(t, tile, 2, OH, OW, C, offsets);
        for (int64_t c = 0; c < C; c += LANES) {
            lanes in[4], out[16];
            for (int i = 0; i < 4; i++)
                in[i] = offsets[i] < 0 ? (lanes){0} : *(const lanes *)(dy + offsets[i] + c);
            both_axes(out, in, 2, 4, output_adjoint);
            for (int i = 0; i < POINTS; i++)
                *(lanes *)(d + (i * t->count + tile) * C + c) = out[i];
        }
    }
}

/* G of the paper. */
static const float weight_transform[4][3] = {
    {1, 0, 0}, {0.5f, 0.5f, 0.5f}, {0.5f, -0.5f, 0.5f}, {0, 0, 1}};

/* u: [POINTS, C_in, C_out] = G w G'; w: [C_out, C_in, 3, 3] */
static void transform_weights(float *u, const float *w, int64_t C_in, int64_t C_out)
{
    for (int64_t o = 0; o < C_out; o++)
        for (int64_t i = 0; i < C_in; i++, w += 9)
            for (int p = 0; p < POINTS; p++) {
                const float *row = weight_transform[p / 4], *col = weight_transform[p % 4];
                float sum = 0;
                for (int k = 0; k < 9; k++)
                    sum += row[k / 3] * col[k % 3] * w[k];
                u[(p * C_in + i) * C_out + o] = sum;
            }
}

/* dw: [C_out, C_in, 3, 3] (+)= G' du G */
static void transform_gradient(float *dw, const float *du, int64_t C_in, int64_t C_out,
                               bool accumulate)
{
    for (int64_t o = 0; o < C_out; o++)
        for (int64_t i = 0; i < C_in; i++)
            for (int k = 0; k < 9; k++, dw++) {
                float sum = accumulate ? *dw : 0;
                for (int p = 0; p < POINTS; p++)
                    sum += weight_transform[p / 4][k / 3] * weight_transform[p % 4][k % 3] *
                           du[(p * C_in + i) * C_out + o];
                *dw = sum;
            }
}

/* Floats of scratch. */
struct scratch {
    int64_t weights; /* all weights, transformed */
    int64_t thread;  /* one thread's transformed tiles: input's, then output's */
};

static struct scratch scratch_of(const struct conv2d_shape *s)
{
    return (struct scratch){.weights = POINTS * s->C_in * s->C_out,
                            .thread = POINTS * BLOCK_TILES * (s->C_in + s->C_out)};
}

/* What a pass does with a block of tiles of one image. v, d: its scratch for transformed input and
 * output. */
struct block {
    const struct conv2d_args *args;
    const struct conv2d_shape *shape;
    int64_t OH, OW;
    struct conv2d_image image;
    struct tiles tiles;
    const float *bias;
    float *u, *v, *d;
};

static void forward_block(const struct block *k)
{
    const struct conv2d_shape *s = k->shape;
    int64_t n = k->tiles.count;
    gather_input(k->v, k->image.x, &k->tiles, s->H, s->W, s->C_in);
    for (int p = 0; p < POINTS; p++)
        cpu_gemm('N', 'N', n, s->C_out, s->C_in, k->v + p * n * s->C_in,
                 k->u + p * s->C_in * s->C_out, 0, k->d + p * n * s->C_out, s->C_out);
    scatter_output(k->image.y, k->d, k->bias, k->args->relu, &k->tiles, k->OH, k->OW, s->C_out);
}

static void backward_data_block(const struct block *k)
{
    const struct conv2d_shape *s = k->shape;
    int64_t n = k->tiles.count;
    if (k->tiles.first == 0)
        memset(k->image.dx, 0, (size_t)(s->H * s->W * s->C_in) * sizeof *k->image.dx);
    gather_output(k->d, k->image.dy, &k->tiles, k->OH, k->OW, s->C_out);
    for (int p = 0; p < POINTS; p++)
        cpu_gemm('N', 'T', n, s->C_in, s->C_out, k->d + p * n * s->C_out,
                 k->u + p * s->C_in * s->C_out, 0, k->v + p * n * s->C_in, s->C_in);
    scatter_input(k->image.dx, k->v, &k->tiles, s->H, s->W, s->C_in);
}

static void backward_weights_block(const struct block *k)
{
    const struct conv2d_shape *s = k->shape;
    int64_t n = k->tiles.count;
    gather_input(k->v, k->image.x, &k->tiles, s->H, s->W, s->C_in);
    gather_output(k->d, k->image.dy, &k->tiles, k->OH, k->OW, s->C_out);
    for (int p = 0; p < POINTS; p++)
        cpu_gemm('T', 'N', s->C_in, s->C_out, n, k->v + p * n * s->C_in, k->d + p * n * s->C_out, 1,
                 k->u + p * s->C_in * s->C_out, s->C_out);
}

/* Runs `pass` over all blocks, an image by one thread. u: the transformed weights, all the same if
 * u_stride is 0, else each thread's own. */
static void for_each_block(const struct conv2d_args *a, const struct conv2d_floats *floats,
                           void (*pass)(const struct block *k), float *u, int64_t u_stride,
                           float *tiles)
{
    const struct conv2d_shape *s = &a->shape;
    int64_t OH = s->H - 2, OW = s->W - 2, cols = (OW + 1) / 2, count = (OH + 1) / 2 * cols;
    struct scratch size = scratch_of(s);
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < s->B; b++) {
        int thread = omp_get_thread_num();
        struct block k = {.args = a, .shape = s, .OH = OH, .OW = OW, .bias = floats->bias};
        k.image = conv2d_open_image(a, floats, b);
        k.u = u + thread * u_stride;
        k.v = tiles + thread * size.thread;
        k.d = k.v + POINTS * BLOCK_TILES * s->C_in;
        for (int64_t first = 0; first < count; first += BLOCK_TILES) {
            int64_t left = count - first;
            k.tiles = (struct tiles){cols, first, left < BLOCK_TILES ? left : BLOCK_TILES};
            pass(&k);
        }
        conv2d_close_image(a, &k.image, b);
    }
}

static void run_with_weights(const struct conv2d_args *a, void (*pass)(const struct block *k))
{
    const struct conv2d_shape *s = &a->shape;
    struct scratch size = scratch_of(s);
    struct conv2d_floats floats;
    float *u = conv2d_scratch(a, size.weights + omp_get_max_threads() * size.thread, &floats);
    transform_weights(u, floats.w, s->C_in, s->C_out);
    for_each_block(a, &floats, pass, u, 0, u + size.weights);
}

void winograd_forward(const struct conv2d_args *a)
{
    run_with_weights(a, forward_block);
}

void winograd_backward_data(const struct conv2d_args *a)
{
    run_with_weights(a, backward_data_block);
}

void winograd_backward_weights(const struct conv2d_args *a)
{
    const struct conv2d_shape *s = &a->shape;
    struct scratch size = scratch_of(s);
    int threads = omp_get_max_threads();
    struct conv2d_floats floats;
    float *du = conv2d_scratch(a, threads * (size.weights + size.thread), &floats);
    memset(du, 0, (size_t)(threads * size.weights) * sizeof *du);
    for_each_block(a, &floats, backward_weights_block, du, size.weights,
                   du + threads * size.weights);
    for (int64_t i = size.weights; i < threads * size.weights; i++)
        du[i % size.weights] += du[i];
    transform_gradient(a->dw, du, s->C_in, s->C_out, a->accumulate);
}
