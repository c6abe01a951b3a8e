/* A warp, its block and its grid, as instructions see them. */
#ifndef SHOAL_TESTS_PTX_WARP_H
#define SHOAL_TESTS_PTX_WARP_H

#ifdef __cplusplus
#include "tests/ptx/async.h"
#include "tests/ptx/forms.h"

#include <array>
#include <cstring>

namespace ptx
{

enum { LANES = 32 };

/* Device memory that kernels may touch. */
struct range {
    unsigned char *start;
    size_t bytes;
};

struct grid {
    const kernel *program;
    unsigned blocks[3], threads[3];
    std::vector<unsigned char> arguments;
    uint64_t dynamic_shared_bytes;
    std::vector<range> memory;
    std::vector<uint64_t> executed; /* how often, of each instruction, by a warp */
};

struct block {
    grid *of;
    unsigned index[3];
    std::vector<unsigned char> shared;
    async_state beside;
};

/* What cp.async has been asked for and has not brought yet: nothing comes before it is waited for,
 * which is as late as a GPU may. */
struct pending_copy {
    uint64_t shared;
    const unsigned char *from; /* NULL: zeros */
    unsigned bytes;
};

struct warp {
    block *of;
    unsigned first_thread;
    std::vector<std::array<uint64_t, LANES>>
        registers;                 /* zero-extended, signed types sign-extended */
    std::vector<uint32_t> written; /* lanes that have written it */
    std::vector<pending_copy> copies[LANES];
    int64_t next[LANES]; /* instruction, of each lane; DONE */
    enum { DONE = INT64_MAX };
    int64_t at;                                                   /* instruction that runs */
    uint32_t active;                                              /* lanes that run it */
    enum { NOTHING, AT_BARRIER, FOR_PHASE, FOR_REGISTERS } waits; /* the block's; mbarrier's */
    uint32_t waits_at;                                            /* that phase's barrier */
    unsigned registers_each;
    product_state products;

    uint64_t get(const operand &o, int lane) const
    {
        return (o.reg < 0 ? 0 : registers[(size_t)o.reg][(size_t)lane]) + o.constant;
    }
    void put(const operand &o, int lane, uint64_t value)
    {
        registers[(size_t)o.reg][(size_t)lane] = value;
        written[(size_t)o.reg] |= 1u << lane;
    }
    /* With the instruction's line and who runs it. */
    [[noreturn]] void fail(const std::string &why, int lane = -1) const;
};

/* For each lane that runs: lanes_of(w, [&](int lane) { ... }). */
template <typename F> void lanes_of(const warp &w, F each)
{
    for (uint32_t left = w.active; left; left &= left - 1)
        each(__builtin_ctz(left));
}

/* A value's bits as T, and back. */
template <typename T> T value_of(uint64_t bits)
{
    T value;
    static_assert(sizeof value <= sizeof bits);
    memcpy(&value, &bits, sizeof value); /* little-endian, as GPUs are */
    return value;
}
template <typename T> uint64_t bits_of(T value)
{
    if constexpr (std::is_integral_v<T>)
        return (uint64_t)(int64_t)value;
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

/* Of shared memory, and of device memory; fails if they are not there, or the address is no
 * multiple of them. lane: -1: the warp's. */
unsigned char *shared_place(warp &w, uint64_t address, unsigned bytes, int lane);
const unsigned char *device_place(warp &w, uint64_t address, unsigned bytes, int lane);
std::string hex(uint64_t x);

/* Runs all threads of all blocks. Throws fault. */
void run_grid(grid *g);

} // namespace ptx
#endif
#endif
