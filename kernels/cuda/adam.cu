/* Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), as torch.optim. */
#include "kernels/cuda/map.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/random_run.h"

#include <math.h>

struct adam_args {
    void *w;
    const float *g;
    void *m, *v;
    int64_t count;
    float beta1, beta2, eps;
    float l2_decay;    /* added to the gradient: Adam's */
    float keep;        /* what decoupled decay leaves of a weight: AdamW's */
    float step_size;   /* lr / (1 - beta1^step) */
    float root_second; /* sqrt(1 - beta2^step) */
    uint64_t key, first;
};

/* Products and sums are fused here and nowhere else: the dtypes differ in what is stored alone. */
static __device__ inline void adam_element(const struct adam_args &a, float *w, float grad,
                                           float *m, float *v)
{
    float g = fmaf(a.l2_decay, *w, grad);
    *m = fmaf(1 - a.beta1, g - *m, *m);
    *v = fmaf((1 - a.beta2) * g, g, a.beta2 * *v);
    float update = *m / (sqrtf(*v) / a.root_second + a.eps);
    *w = fmaf(-a.step_size, update, a.keep * *w);
}

template <int N> static __device__ inline void fp32_step(const struct adam_args &a, int64_t i)
{
    float w[N], g[N], m[N], v[N];
    load(w, (float *)a.w + i);
    load(g, a.g + i);
    load(m, (float *)a.m + i);
    load(v, (float *)a.v + i);
#pragma unroll
    for (int j = 0; j < N; j++)
        adam_element(a, &w[j], g[j], &m[j], &v[j]);
    store((float *)a.w + i, w);
    store((float *)a.m + i, m);
    store((float *)a.v + i, v);
}

template <int N> static __global__ void adam_fp32(struct adam_args a)
{
    int64_t whole = a.count / N * N;
    for (int64_t i = grid_thread() * N; i < whole; i += grid_threads() * N)
        fp32_step<N>(a, i);
    if (grid_thread() < a.count - whole)
        fp32_step<1>(a, whole + grid_thread());
}

/* x, rounded stochastically, as it is stored. */
static __device__ inline float rounded(float x, float number)
{
    return bf16_to_float(bf16_stochastic(x, number));
}

template <int N>
static __device__ inline void bf16_step(const struct adam_args &a, int64_t i, const float *numbers)
{
    float w[N], g[N], m[N], v[N];
    load(w, (bf16 *)a.w + i);
    load(g, a.g + i);
    load(m, (bf16 *)a.m + i);
    load(v, (bf16 *)a.v + i);
#pragma unroll
    for (int j = 0; j < N; j++) {
        adam_element(a, &w[j], g[j], &m[j], &v[j]);
        w[j] = rounded(w[j], numbers[j]);
        m[j] = rounded(m[j], numbers[j]);
        v[j] = rounded(v[j], numbers[j]);
    }
    store((bf16 *)a.w + i, w);
    store((bf16 *)a.m + i, m);
    store((bf16 *)a.v + i, v);
}

/* A thread has RUN elements with neighbouring numbers, which begin at element 0 or before it. */
template <bool WIDE> static __global__ void adam_bf16(struct adam_args a, int64_t runs)
{
    uint64_t first_group = a.first / RANDOM_GROUP;
    int64_t skip = (int64_t)(a.first % RANDOM_GROUP);
    for (int64_t block = (int64_t)blockIdx.x * MAP_THREADS; block < runs;
         block += (int64_t)gridDim.x * MAP_THREADS) {
        int64_t run = block + threadIdx.x, i = run * RUN - skip;
        float numbers[RUN];
        random_run(numbers, a.key, first_group + (uint64_t)run / RUN_THREADS);
        if (WIDE && i >= 0 && i + RUN <= a.count) {
            bf16_step<RUN>(a, i, numbers);
            continue;
        }
#pragma unroll
        for (int j = 0; j < RUN; j++)
            if (i + j >= 0 && i + j < a.count)
                bf16_step<1>(a, i + j, numbers + j);
    }
}

static void launch_fp32(struct stream *s, const struct adam_args *a, bool wide)
{
    unsigned blocks = map_blocks(s, a->count, 4);
    if (wide)
        CUDA_LAUNCH(s, adam_fp32<4>, blocks, MAP_THREADS, 0, *a);
    else
        CUDA_LAUNCH(s, adam_fp32<1>, blocks, MAP_THREADS, 0, *a);
}

static void launch_bf16(struct stream *s, const struct adam_args *a, bool wide)
{
    int64_t runs = ((int64_t)(a->first % RANDOM_GROUP) + a->count + RUN - 1) / RUN;
    unsigned blocks = map_blocks(s, runs, 1);
    if (wide && a->first % RUN == 0)
        CUDA_LAUNCH(s, adam_bf16<true>, blocks, MAP_THREADS, 0, *a, runs);
    else
        CUDA_LAUNCH(s, adam_bf16<false>, blocks, MAP_THREADS, 0, *a, runs);
}

void cuda_adam(struct stream *s, enum dtype t, void *w, const float *g, void *m, void *v,
               int64_t count, const struct adam_step *step, uint64_t key, uint64_t first)
{
    assert(step->step >= 1);
    struct adam_args args;
    args.w = w;
    args.g = g;
    args.m = m;
    args.v = v;
    args.count = count;
    args.beta1 = step->beta1;
    args.beta2 = step->beta2;
    args.eps = step->eps;
    args.l2_decay = step->decoupled ? 0 : step->weight_decay;
    args.keep = step->decoupled ? 1 - step->lr * step->weight_decay : 1;
    args.step_size = (float)(step->lr / (1 - pow(step->beta1, (double)step->step)));
    args.root_second = (float)sqrt(1 - pow(step->beta2, (double)step->step));
    args.key = key;
    args.first = first;
    bool wide = is_aligned(w) && is_aligned(g) && is_aligned(m) && is_aligned(v);
    if (t == DTYPE_F32)
        launch_fp32(s, &args, wide);
    else
        launch_bf16(s, &args, wide);
}
