/* For tests that launch kernels of their own on the emulated GPU, without kernels/device.h: streams
 * and memory that must be had, and what a kernel says that fails. */
#ifndef SHOAL_TESTS_EMULATION_KERNEL_TEST_H
#define SHOAL_TESTS_EMULATION_KERNEL_TEST_H

#ifdef __cplusplus
#include <stdio.h>
#include <string>
#include <unistd.h>

#include "kernels/cuda/cuda.h"
#include "tests/emulation/emulation.h"
#include "tests/support.h"

/* Queues the kernel; a cudaError_t. */
#define LAUNCH(stream, kernel, blocks, threads, shared_bytes, ...)                                 \
    emulation::launch_kernel(stream, #kernel, {__FILE__, __LINE__}, dim3(blocks), dim3(threads),   \
                             (size_t)(shared_bytes), kernel, __VA_ARGS__)

/* The caller destroys it. */
static inline cudaStream_t stream_new()
{
    cudaStream_t stream;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

/* Device memory, which the caller gives to cudaFree(). */
template <typename T> T *memory_new(int64_t count)
{
    void *memory;
    assert_int_equal(cudaMalloc(&memory, (size_t)count * sizeof(T)), cudaSuccess);
    return (T *)memory;
}

/* To or from the device, queued. */
template <typename T> void copy(cudaStream_t stream, T *dst, const T *src, int64_t count)
{
    assert_int_equal(
        cudaMemcpyAsync(dst, src, (size_t)count * sizeof(T), cudaMemcpyDefault, stream),
        cudaSuccess);
}

/* What went to stderr while f ran. */
template <typename F> std::string told(F f)
{
    char text[4096] = "";
    FILE *file = tmpfile();
    fflush(stderr);
    int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    f();
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

#endif
#endif
