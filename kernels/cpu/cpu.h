/* Inside the CPU backend: a stream is one worker thread with a queue of closures. An op checks its
 * arguments and queues a closure. Only files of kernels/cpu include this. */
#ifndef SHOAL_KERNELS_CPU_CPU_H
#define SHOAL_KERNELS_CPU_CPU_H

#include "kernels/backend.h"

#include <assert.h>

enum { CPU_CLOSURE_MAX_BYTES = STREAM_CALL_MAX_BYTES + 32 };

/* Queues run(args) with a copy of the `bytes` at `args`. Blocks while the queue is full. name: the
 * op's in traces, behind "cpu_", static; NULL: it is no op. */
void cpu_queue(struct stream *s, const char *name, void (*run)(void *args), const void *args,
               size_t bytes);

/* cpu_call(s, fill_run, struct fill_args, y, value, count): an args struct made in place. */
#define cpu_call(s, run, type, ...)                                                                \
    do {                                                                                           \
        _Static_assert(sizeof(type) <= CPU_CLOSURE_MAX_BYTES, "closure too large");                \
        cpu_queue((s), __func__, (run), &(type){__VA_ARGS__}, sizeof(type));                       \
    } while (0)

/* Likewise for work that splits into chunks, as OpenMP's loops do: chunk(args, first, last) does
 * [first, last) of `count`. The stream's threads share the chunks, each of `grain` elements, the
 * last of fewer. */
typedef void cpu_chunk(const void *args, int64_t first, int64_t last);
void cpu_queue_chunks(struct stream *s, const char *name, cpu_chunk *chunk, int64_t count,
                      int64_t grain, const void *args, size_t bytes);

enum { CPU_GRAIN = 8192 }; /* elements worth a chunk: they and their neighbours fit the L1 cache */

#define cpu_call_chunks(s, chunk, count, grain, type, ...)                                         \
    do {                                                                                           \
        _Static_assert(sizeof(type) <= STREAM_CALL_MAX_BYTES, "closure too large");                \
        cpu_queue_chunks((s), __func__, (chunk), (count), (grain), &(type){__VA_ARGS__},           \
                         sizeof(type));                                                            \
    } while (0)

/* From inside a closure: fails its stream. The first failure stays. */
void cpu_fail(struct stream *s, const struct error *err);

/* From inside a closure: memory for its own use, kept by the stream and grown when needed; valid
 * until the closure ends. 64-byte aligned; not counted as device memory. */
void *cpu_scratch(struct stream *s, size_t bytes);

/* Functions with long loops are compiled for several x86-64 levels; the loader picks one when the
 * program starts (ifunc). That is before sanitizers are ready, so their builds have one version.
 * clang builds only fuzz targets, and version 14 merges two static functions of one name. */
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) &&                 \
    !defined(__SANITIZE_ADDRESS__)
#define CPU_HOT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CPU_HOT
#endif

/* Sums over rows are sums of this many chunks of rows, so the bits do not depend on the thread
 * count. */
enum { CPU_ROW_CHUNKS = 16 };

/* sums: [cols] (+)= the sum of the rows of x: [rows, cols], `stride` elements apart: the gradient
 * of a bias. From inside a closure; uses its threads. */
void cpu_sum_rows(float *sums, enum dtype t, const void *x, int64_t rows, int64_t cols,
                  int64_t stride, bool accumulate);

extern const struct ops cpu_ops;

/* The ops by their names in kernels/ops.h: cpu_fill(), .. */
#define CPU_OP(op) op_##op cpu_##op;
OPS(CPU_OP)
#undef CPU_OP

#endif
