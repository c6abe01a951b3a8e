/* Races in kernels: two accesses to a byte of shared or device memory, one of them a write, that
 * nothing orders. On a GPU either may come first; fibers run one after the other and hide most of
 * them.
 *
 * The library of build/<variant>/races has the kernels compiled with -fsanitize=thread. The
 * compiler then calls a function before each access (races_calls.cc), and ours takes the place of
 * ThreadSanitizer's. For each byte of memory that threads share there is a record of who wrote it
 * last, and of some who have read it since. Two accesses are in order
 *  - of one thread;
 *  - with a __syncthreads between them, in one block;
 *  - with a __syncwarp between them, in one warp: shuffles, votes and matrix instructions order no
 * memory (CUDA C++ Programming Guide, "Warp Shuffle Functions");
 *  - if both are atomic;
 *  - of different launches: streams see to that.
 * Nothing else orders them, so blocks of one launch meet in atomics alone. No order of fibers is
 * needed in which the race does harm: each that is run is found, but for those whose first reader
 * many others have followed.
 *
 * Knows nothing of fibers and streams: block.cc tells it which thread runs. */
#ifndef SHOAL_TESTS_EMULATION_RACES_H
#define SHOAL_TESTS_EMULATION_RACES_H

#ifdef __cplusplus
#include "tests/emulation/emulation.h"

namespace emulation
{

/* races_touch() will be called: without, nothing is kept. */
void races_watch();

/* A kernel begins: `shared` are its bytes of dynamic shared memory. Device memory is forgotten. */
void races_begin(const void *shared, size_t shared_bytes);
/* A block of it begins: shared memory is forgotten. index: in the grid. */
void races_begin_block(unsigned index);
/* The block has static shared memory there. name: the variable's. */
void races_static(const void *memory, size_t bytes, const char *name);
/* From here on this thread runs, up to races_leave(). Its stack is nobody else's. */
void races_enter(int thread, const unsigned char *stack, size_t stack_bytes);
void races_leave();
/* All threads of the block, or of a warp of it, have come to a barrier. */
void races_block_barrier();
void races_warp_barrier(int warp);

/* What the running thread does with `bytes` at `at`; by: the code that does it. */
enum class touch { reads, writes };
void races_touch(const void *at, size_t bytes, touch how, const void *by);

/* Between atomic_begin() and atomic_end() of kernel.h, which are here, too, the running thread's
 * writes are atomic and its reads a part of them. */

} // namespace emulation
#endif
#endif
