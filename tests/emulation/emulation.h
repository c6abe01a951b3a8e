/* The emulated GPU: CUDA's runtime and its kernels without a GPU, for tests of kernels/cuda.
 *
 * block.cc runs kernels: blocks one after another in an order by the seed, the threads of a block
 * as fibers that change places at barriers and shuffles, in another order after each. A thread that
 * does not come to a barrier where others wait fails the kernel, naming both places.
 *
 * runtime.cc runs streams: nothing runs when it is queued, but when somebody waits for it (or after
 * a while in which nobody waits), and then which stream goes on is drawn by the seed: work that no
 * event orders runs late, early and between; of host memory that is not page-locked, half of the
 * copies read when they are queued, as CUDA may. memory.cc: fresh device memory is full of NaNs,
 * lies between guards, is given back at once by cudaFree (so later use is use after free for ASan),
 * which waits for all that the device was given before, as CUDA's does; and under ASan the host may
 * not touch it.
 *
 * The environment variable SHOAL_EMULATION holds settings as "name=value,name=value": see
 * option(). */
#ifndef SHOAL_TESTS_EMULATION_EMULATION_H
#define SHOAL_TESTS_EMULATION_EMULATION_H

#ifdef __cplusplus
#include <cuda_runtime.h>

#include <string>
#include <vector>

namespace emulation
{

/* The setting's text, else `otherwise`:
 *   seed         of all orders (1)
 *   gpus         how many there are (1)
 *   count_error  the cudaError_t with which CUDA answers how many there are (0: it does not)
 *   node         which machine's they are: the GPUs of another one are others (0)
 *   name         of each, as the maker calls it (emulated GPU); A/B: of the first, of others
 *   capability   10 major + minor (90)
 *   built_for    the capabilities the library has code for, joined by + (any)
 *   driver       the newest CUDA version the driver knows (13000); 0: no driver
 *   runtime      the CUDA version of the library (13000)
 *   memory_mib   of each GPU (1024)
 *   peers        0: no GPU reads another's memory (1)
 *   registers    0: no host memory of others is page-locked (1)
 *   locks_most   bytes of a block of page-locked memory; more is refused (0: any)
 *   breaks       N:STATUS: after its Nth kernel the GPU is of no use any more and says so by that
 *                cudaError_t
 *   cudnn        absent, old, half (installed), no start, no engine, no plan, hungry (for
 *                workspace), no run: how it fails; greedy: takes 130 MiB a sequence; wrong: its
 *                results are half as much again; nan: the first row of each is NaN; 9.15: that
 *                version, else it is 9.16
 *   damages      BYTES:AT:VALUE: in each copy of that many bytes, the number of 32 bits there
 *                becomes VALUE
 *   skip         file:line of a __syncthreads or __syncwarp, or of a call of kernels/cuda/hopper.h,
 *                that does nothing, or of an atomic that is seen as an ordinary access (races.h)
 *   missing      libraries that are not there, as libcublasLt+libnvrtc ()
 *   cupti        none: there is no such library; denied: it may not be used; old driver: it does
 *                not start
 *   tell_waits   1: prints "wait: WAITING<-RECORDED PLACE", the streams' names and who_waits() of
 *                events.cc, when cudaStreamWaitEvent is first asked for so (0)
 *   skip_wait    WAITING<-RECORDED, or places joined by +: there it does nothing
 *   graphs       0: the GPU can capture none (1)
 *   no_more_graphs 1: what is captured is not instantiated (0)
 *   ptx          folder of the PTX that the library of build/<variant>/ptx runs (build/ptx)
 *   clock        work: time passes by what matrix products cost (spend()) alone, so that a test
 * knows what events tell (wall) stale_graphs 1: graphs keep the arguments they were made with,
 * whatever update says (0) */
std::string option(const char *name, const char *otherwise);
long option_number(const char *name, long otherwise);

/* Whether option("skip") names it. gpu.cc */
bool is_left_out(site at);

/* Remembers a failure for cudaGetLastError(). Returns it. gpu.cc */
cudaError_t noted(cudaError_t status);

/* What made the GPU of no use; cudaSuccess: nothing yet. runtime.cc */
cudaError_t the_fault();

/* Ends the test if this thread has chosen no device: CUDA would begin to use GPU 0. gpu.cc */
void must_have_device(const char *call);

/* This thread's. gpu.cc */
int current_device();

/* For libraries: ends the test if this thread is capturing, when a call may allocate, compile or
 * load kernels. graph.cc */
void must_not_capture(const char *call);

/* Runs all threads of all blocks. False if the kernel failed: why was printed. */
bool run_kernel(const launch &work);

/* What a stream calls for each kernel: run_kernel, unless a test has put another one there that
 * looks at it (tests/ptx). runtime.cc */
extern bool (*kernel_runner)(const launch &work);

/* While a kernel runs: that it cost so many microseconds, for option("clock"). events.cc */
void spend(int64_t us);

/* While a kernel runs: it fails, and this is printed with its name and the block. block.cc */
void fail_kernel(const std::string &why);

/* Numbers that depend on the seed and on how often it was called. */
class random_numbers
{
  public:
    explicit random_numbers(uint64_t seed) : state(seed * 2 + 1)
    {
    }
    unsigned below(unsigned limit); /* in [0, limit) */

  private:
    uint64_t state;
};

/* Device memory may be touched between these two: kernels and copies run there. */
void memory_allow();
void memory_forbid();

/* Whether it is the host's and not page-locked. */
bool memory_is_pageable(const void *place);

/* What kernels may touch: the device's and what is page-locked. */
struct memory_range {
    const unsigned char *start;
    size_t bytes;
};
std::vector<memory_range> memory_ranges();

/* For cupti.cc: what ran from `begin`, a time by its clock, to now. */
uint64_t cupti_now();
void cupti_kernel(const char *name, cudaStream_t stream, uint64_t begin);
void cupti_copy(size_t bytes, cudaStream_t stream, uint64_t begin);

} // namespace emulation

/* For the GPU's other libraries (nccl.c), which find it by name. Puts work on a stream that may
 * have to wait for other streams or processes: it is called, with device memory allowed, until it
 * returns true; meanwhile other streams go on. is_over: the GPU is broken, and this is the last
 * call. */
extern "C" __attribute__((visibility("default"))) void
emulation_put(void *stream, bool (*advance)(void *args, bool is_over), void *args);

/* Likewise: device memory of the thread's current device, as cudaMalloc's; NULL: there is no
 * more. */
extern "C" __attribute__((visibility("default"))) void *emulation_alloc(size_t bytes);
extern "C" __attribute__((visibility("default"))) void emulation_free(void *memory);

/* For tests, which find it by name: how often device memory was asked for or given back so far. */
extern "C" __attribute__((visibility("default"))) long emulation_memory_calls(void);
#endif
#endif
