/* What runs beside the warps of a block on compute capability 9.0: barriers in shared memory
 * (barriers.cc), copies by TMA (bulk_copies.cc), products of warpgroups (warpgroup.cc) and the pool
 * of registers (register_pool.cc). Each is as late as a GPU may be: a copy lands when no warp can
 * go on without (grid.cc), a product is made when its group is waited for. */
#ifndef SHOAL_TESTS_PTX_ASYNC_H
#define SHOAL_TESTS_PTX_ASYNC_H

#ifdef __cplusplus
#include "tests/ptx/program.h"

#include <array>
#include <deque>

namespace ptx
{

struct block;
struct warp;

/* "mbarrier": phase after phase, numbered from 0. One is over when nothing is missing. */
struct phase_barrier {
    uint32_t count, missing; /* arrivals: of a phase, of this one */
    int64_t bytes;           /* that are still to come; < 0: more came than were expected so far */
    uint64_t phase;
    unsigned maker; /* thread */
    bool is_fenced; /* TMA sees it */
};

struct bulk_copy {
    uint32_t to, barrier;      /* in shared memory */
    const unsigned char *from; /* bytes as they lie; NULL: a box of the map's, at a place */
    uint32_t bytes;
    std::array<unsigned char, 128> map;
    int64_t place[4];
};

struct pending_product {
    int64_t at;    /* the instruction */
    uint64_t a, b; /* descriptors */
    bool adds;
    void (*make)(warp &, const pending_product &);
};

/* Of a warp. A register of the first two is being written, or read, by so many products. */
struct product_state {
    std::vector<uint16_t> sums, factors;
    std::vector<uint64_t> changed; /* when each register was written last, by `clock` */
    uint64_t clock = 1, fenced_at = 0;
    std::vector<pending_product> open; /* not committed */
    std::deque<std::vector<pending_product>> groups;
    size_t asked = 0; /* products of its warpgroup, up to here */
};

struct async_state {
    std::map<uint32_t, phase_barrier> barriers;
    std::vector<bulk_copy> copies;
    std::vector<std::vector<std::array<uint64_t, 4>>> products; /* each warpgroup's */
    uint64_t free_registers = 0;
    uint64_t progress = 0; /* of what others may wait for */
};

/* ---- barriers.cc ---- */
phase_barrier &find_barrier(warp &w, uint32_t address, int lane);
void bytes_have_come(block &b, uint32_t barrier, uint32_t bytes);
std::string state_of_barrier(const block &b, uint32_t address);

/* ---- bulk_copies.cc ---- */
/* The one that was asked for last: none has to wait for those before. */
void land_copy(block &b);
/* 16 bytes of eight rows of 128 change places by the row: CuTe's Swizzle<3, 4, 3> of addresses. */
inline uint32_t swizzled(uint32_t address)
{
    return address ^ (address >> 7 & 7) << 4;
}

/* ---- warpgroup.cc ---- */
/* Other instructions than products touch registers in order. */
void check_products(warp &w, const instruction &i);

/* ---- register_pool.cc ---- */
/* That each thread begins with; 0: PTX does not say. */
unsigned registers_at_start(const kernel &k);

} // namespace ptx
#endif
#endif
