/* Between a block's fibers (block.cc) and what runs beside them (async_block.h). */
#ifndef SHOAL_TESTS_EMULATION_ASYNC_CALLS_H
#define SHOAL_TESTS_EMULATION_ASYNC_CALLS_H

#ifdef __cplusplus
#include "tests/emulation/emulation.h"

namespace emulation
{

/* ---- async_calls.cc ---- */

void async_begin_block(unsigned char *shared, size_t bytes, unsigned threads);
void async_end_block();
void async_block_barrier();
/* No thread can go on: lands a copy, if one is under way. */
bool async_land(random_numbers *random);
/* What a thread waits for that waits for a phase. */
std::string async_waits_for(int thread);

/* The driver's cuTensorMapEncodeTiled: refuses what hardware cannot do, and what is no bf16 with
 * the swizzle of 128 bytes. */
cudaError_t encode_tensor_map(void *map, int type, uint32_t rank, const void *memory,
                              const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                              const uint32_t *steps, int interleave, int swizzle, int l2_promotion,
                              int out_of_bounds);

/* ---- block.cc ---- */

unsigned running_thread();
/* The running thread waits until look_at_phases(). */
void wait_for_phase(site at);
void look_at_phases();
/* The kernel fails; the running thread goes no further. */
void stop_thread(const char *why, site at);

} // namespace emulation
#endif
#endif
