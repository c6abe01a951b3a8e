/* The twins of kernels/cuda/hopper.h's instructions, as kernels see them: its names and meanings.
 * What they check is in tests/emulation/async_block.h. Each can be left out by SHOAL_EMULATION's
 * `skip`. */
#ifndef SHOAL_TESTS_EMULATION_INCLUDE_HOPPER_H
#define SHOAL_TESTS_EMULATION_INCLUDE_HOPPER_H

#ifdef __cplusplus
#include "tests/emulation/include/kernel.h"

namespace emulation
{

/* In the window of shared memory, where dynamic shared memory need not begin at a multiple of
 * 1024. */
uint32_t shared_address(const void *shared);

void barrier_init(const uint64_t *barrier, int count, site at);
void barriers_made(site at);
void barrier_arrive(const uint64_t *barrier, int bytes, site at);
void barrier_wait(const uint64_t *barrier, int parity, site at);
void copy_tile(void *to, const void *map, const int (&place)[4], const uint64_t *barrier, site at);
void copy_plain(void *to, const void *from, int bytes, const uint64_t *barrier, site at);
void reads_brought(const void *x, int bytes, site at);

void products_fence(site at);
void products_commit(site at);
void products_wait(int left, site at);
/* d: the thread's n / 2 sums; until they are waited for they are NaNs, and what is written there is
 * found. */
void multiply(float *d, int n, uint64_t a, uint64_t b, bool adds, site at);
void multiply_rows(float *d, int n, const uint32_t (&a)[4], uint64_t b, site at);

} // namespace emulation

#endif
#endif
