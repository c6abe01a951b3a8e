/* A number of a batch that a kernel cannot use (kernels/data_error.h). The kernel leaves it where
 * the host can read it, and stops. Nothing is computed from it then, and CUDA fails all that comes
 * later, by an error of its own: whoever meets that one asks here first. */
#ifndef SHOAL_KERNELS_CUDA_DATA_FAULT_H
#define SHOAL_KERNELS_CUDA_DATA_FAULT_H

#include "kernels/cuda/cuda.h"
#include "kernels/data_error.h"

/* In page-locked memory of the host, which is the GPU's too; zeros: none was found. Threads that
 * find one each overwrite it, so it is one word: what in 2 bits, then at in 30, then value. `limit`
 * is the same for all threads of a kernel. */
struct data_fault {
    uint64_t limit, word;
};

#ifdef __cplusplus
extern "C" {
#endif

/* The one of the stream's GPU, for a kernel. */
struct data_fault *cuda_data_fault(const struct stream *s);

/* Whether there is one; *err is it then. fault: may be NULL. */
bool data_fault_read(const struct data_fault *fault, struct error *err);

#ifdef __cplusplus
}

/* Ends the kernel. See data_error() for the numbers. */
__device__ static inline void data_fault_stop(struct data_fault *fault, enum data_number what,
                                              int64_t at, int64_t value, int64_t limit)
{
    fault->limit = (uint64_t)limit;
    __threadfence_system();
    fault->word = (uint64_t)what << 62 | ((uint64_t)at & 0x3fffffff) << 32 | (uint32_t)value;
    __threadfence_system(); /* before the end */
    __trap();
    __builtin_unreachable(); /* nvcc does not know */
}
#endif
#endif
