#include "kernels/cuda/attention_check.h"

#include "kernels/cuda/numbers.h"
#include "kernels/cuda/stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 128, ALIGNMENT = 256 };

/* Of a row, relative to its size or the mean of all rows, whichever is more: gradients are
 * differences, and a row of one that is nearly 0 has its error all the same. Kernels that round
 * probabilities and their gradients to bf16 at other places differ by 1 or 2 in 100; another mask,
 * scale or order of heads is further off than this. */
static const double tolerance = 0.1;
/* Of all results' mean: a tensor smaller than that is all error (dq of one key is 0). */
static const double least_size = 1e-4;

template <typename T>
__global__ void attention_check_copy(T *to, int64_t to_stride, const T *from, int64_t from_stride,
                                     int64_t width)
{
    for (int64_t i = threadIdx.x; i < width; i += THREADS)
        to[blockIdx.x * to_stride + i] = from[blockIdx.x * from_stride + i];
}

template <typename T>
__global__ void attention_check_compare(float *distances, const T *kept, const T *ours,
                                        int64_t stride, int64_t width)
{
    float distance = 0, size = 0;
    for (int64_t i = threadIdx.x; i < width; i += THREADS) {
        float x = number_load(ours + blockIdx.x * stride + i);
        float d = number_load(kept + blockIdx.x * width + i) - x;
        distance += d * d;
        size += x * x;
    }
    distance = block_sum(distance);
    size = block_sum(size);
    if (threadIdx.x == 0) {
        distances[2 * blockIdx.x] = distance;
        distances[2 * blockIdx.x + 1] = size;
    }
}

static void copy(struct attention_check *check, bool keeps)
{
    for (int i = 0; i < check->count; i++) {
        const struct attention_result *r = &check->results[i];
        void *kept = check->kept + check->at[i];
        int64_t stride = keeps ? r->stride : r->width, to_stride = keeps ? r->width : r->stride;
        CUDA_FOR_DTYPE(r->t, T,
                       CUDA_LAUNCH(check->stream, attention_check_copy<T>, (unsigned)r->rows,
                                   THREADS, 0, (T *)(keeps ? kept : r->x), to_stride,
                                   (const T *)(keeps ? r->x : kept), stride, r->width));
    }
}

bool attention_check_open(struct attention_check *check, struct stream *s,
                          const struct attention_result *results, int count)
{
    size_t bytes = 0;
    assert(count <= ATTENTION_CHECK_RESULTS);
    *check = attention_check();
    check->stream = s;
    check->count = count;
    for (int i = 0; i < count; i++) {
        const struct attention_result *r = &results[i];
        size_t size = (size_t)(r->rows * r->width) * dtype_bytes(r->t);
        check->results[i] = *r;
        check->at[i] = bytes;
        bytes += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        check->rows += r->rows;
    }
    check->graph = cuda_stream_pause_graph(s);
    check->room = bytes + (size_t)check->rows * 2 * sizeof(float);
    if (cudaMalloc((void **)&check->kept, check->room) != cudaSuccess) {
        cudaGetLastError(); /* the caller does without */
        cuda_stream_set_graph(s, check->graph);
        return false;
    }
    check->distances = (float *)(check->kept + bytes);
    copy(check, true);
    return true;
}

/* Squares, by their rows: what is wrong with the result, if anything is. */
static enum attention_verdict judge(const struct attention_result *r, const float *squares,
                                    double all_mean, char ret_what[ATTENTION_CHECK_TEXT])
{
    double mean = 0, worst = 0;
    for (int64_t row = 0; row < r->rows; row++)
        mean += squares[2 * row + 1] / (double)r->rows;
    for (int64_t row = 0; row < r->rows; row++) {
        double size = fmax(fmax(squares[2 * row + 1], mean),
                           all_mean * (double)r->width * least_size * least_size);
        double distance = squares[2 * row];
        double relative = distance == 0 ? 0 : size > 0 ? sqrt(distance / size) : INFINITY;
        if (!isfinite(relative)) { /* ours is: judge_all() has looked */
            snprintf(ret_what, ATTENTION_CHECK_TEXT, "a row of %s is not finite", r->name);
            return ATTENTION_FAR;
        }
        worst = fmax(worst, relative);
    }
    if (worst <= tolerance)
        return ATTENTION_NEAR;
    snprintf(ret_what, ATTENTION_CHECK_TEXT, "%s is off by %.0f %% of its size", r->name,
             100 * worst);
    return ATTENTION_FAR;
}

static enum attention_verdict judge_all(const struct attention_check *check, const float *squares,
                                        char ret_what[ATTENTION_CHECK_TEXT])
{
    double sum = 0, elements = 0;
    for (int i = 0; i < check->count; i++)
        elements += (double)(check->results[i].rows * check->results[i].width);
    for (int64_t row = 0; row < check->rows; row++)
        sum += squares[2 * row + 1];
    if (!isfinite(sum))
        return ATTENTION_UNKNOWN;
    for (int i = 0; i < check->count; i++) {
        enum attention_verdict verdict =
            judge(&check->results[i], squares, sum / elements, ret_what);
        if (verdict != ATTENTION_NEAR)
            return verdict;
        squares += 2 * check->results[i].rows;
    }
    return ATTENTION_NEAR;
}

static void compare(struct attention_check *check)
{
    float *distances = check->distances;
    for (int i = 0; i < check->count; i++) {
        const struct attention_result *r = &check->results[i];
        CUDA_FOR_DTYPE(r->t, T,
                       CUDA_LAUNCH(check->stream, attention_check_compare<T>, (unsigned)r->rows,
                                   THREADS, 0, distances, (const T *)(check->kept + check->at[i]),
                                   (const T *)r->x, r->stride, r->width));
        distances += 2 * r->rows;
    }
}

enum attention_verdict attention_check_close(struct attention_check *check,
                                             char ret_what[ATTENTION_CHECK_TEXT])
{
    struct stream *s = check->stream;
    cudaStream_t handle = cuda_captured(s);
    size_t bytes = (size_t)check->rows * 2 * sizeof(float);
    float *squares = (float *)malloc(bytes);
    enum attention_verdict verdict = ATTENTION_UNKNOWN;
    compare(check);
    cudaError_t status = cudaStreamSynchronize(handle);
    if (squares && status == cudaSuccess)
        status = cudaMemcpyAsync(squares, check->distances, bytes, cudaMemcpyDeviceToHost, handle);
    if (squares && status == cudaSuccess)
        status = cudaStreamSynchronize(handle);
    cuda_check(s, status, "compare attention");
    if (squares && status == cudaSuccess)
        verdict = judge_all(check, squares, ret_what);
    free(squares);
    if (verdict != ATTENTION_FAR)
        copy(check, false);
    cuda_check(s, cudaStreamSynchronize(handle), "compare attention");
    cudaFree(check->kept);
    cuda_stream_set_graph(s, check->graph);
    return verdict;
}
