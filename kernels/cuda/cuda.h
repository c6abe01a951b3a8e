/* Inside the CUDA backend: how an op's file launches kernels on a stream. Only files of
 * kernels/cuda include this.
 *
 * The same sources are compiled twice: by nvcc for GPUs, and by a C++ compiler for tests with the
 * <cuda_runtime.h> of tests/emulation/. The emulation runs blocks one after another, and a block's
 * threads as fibers that switch at barriers and warp shuffles. So kernels keep to this subset:
 *  - kernels start through CUDA_LAUNCH, dynamic shared memory is CUDA_SHARED;
 *  - every thread of a block reaches the same __syncthreads(), all 32 of a warp the same shuffle
 *    (mask CUDA_WARP): no early return before them;
 *  - no inline assembly, no matrix-unit instruction outside kernels/cuda/matrix.h and hopper.h;
 *  - sums are made in a fixed order: no
 * floating-point atomics. */
#ifndef SHOAL_KERNELS_CUDA_CUDA_H
#define SHOAL_KERNELS_CUDA_CUDA_H

#include "kernels/backend.h"

#include <assert.h>
#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- host side ---- */

/* The stream's cudaStream_t, for a kernel, memset or product that is queued at once: between
 * graph_begin() and graph_end() this begins a capture, which takes it. */
cudaStream_t cuda_captured(struct stream *s);

/* Multiprocessors of the stream's GPU. */
int cuda_multiprocessors(const struct stream *s);

/* Bytes of shared memory that a block can ask for (227 KiB on Hopper). */
int64_t cuda_shared_bytes(const struct stream *s);

/* Whether the stream's GPU multiplies bf16 in its matrix units (8.0 and newer). */
bool cuda_has_matrix_units(const struct stream *s);

/* Called before a launch with more than CUDA_SHARED_AT_ONCE bytes of dynamic shared memory: raises
 * the kernel's limit (cudaFuncSetAttribute), once per kernel and device. what: names the kernel in
 * messages. */
void cuda_share(struct stream *s, const void *kernel, int64_t bytes, const char *what);

/* Fails the stream if `status` is an error; what: the kernel or call, for the message. The first
 * failure stays and comes out of stream_sync(). */
void cuda_check(struct stream *s, cudaError_t status, const char *what);

/* Scratch memory for a kernel, 256-byte aligned. The stream keeps it and grows it when needed,
 * never in a step whose shapes ran before. The next op on the stream may overwrite it. NULL if
 * there is no memory: the stream has failed then. */
void *cuda_scratch(struct stream *s, size_t bytes);

/* Blocks of `threads` for `count` items with one thread each, at most `most`: for kernels that
 * stride by the grid. At least 1. */
static inline unsigned cuda_blocks(int64_t count, int threads, int64_t most)
{
    int64_t blocks = (count + threads - 1) / threads;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

#ifdef __cplusplus
}

/* CUDA_LAUNCH(s, kernel, grid, block, shared_bytes, arguments...): grid and block: int or dim3; a
 * template's name in parentheses if it has commas. Much shared memory is asked for: a block has 48
 * KiB at once, in which the static one counts, too. CUDA_SHARED is dynamic shared memory;
 * CUDA_BLOCK(type, name) and CUDA_BLOCK(type, name, [ROWS][COLUMNS]) are static. */
enum { CUDA_SHARED_AT_ONCE = 32 * 1024 };
#ifndef SHOAL_EMULATION
#define CUDA_BLOCK(type, name, ...) __shared__ type name __VA_ARGS__
#define CUDA_SHARED(type, name)                                                                    \
    extern __shared__ __align__(16) unsigned char name##_bytes[];                                  \
    type *name = (type *)name##_bytes
#define CUDA_LAUNCH(s, kernel, grid, block, shared_bytes, ...)                                     \
    do {                                                                                           \
        auto kernel_ = (kernel);                                                                   \
        if ((shared_bytes) > CUDA_SHARED_AT_ONCE)                                                  \
            cuda_share((s), (const void *)kernel_, (shared_bytes), #kernel);                       \
        kernel_<<<(grid), (block), (shared_bytes), cuda_captured(s)>>>(__VA_ARGS__);               \
        cuda_check((s), cudaGetLastError(), #kernel);                                              \
    } while (0)
#else
/* cuda_runtime.h of the emulation defines both. */
#endif

enum : unsigned { CUDA_WARP = 0xffffffffu };
#endif

#endif
