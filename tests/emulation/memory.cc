/* The emulated GPU's memory: the host's, between guards. */
#include "tests/emulation/streams.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes)   ((void)(memory), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) ((void)(memory), (void)(bytes))
#endif

namespace emulation
{
namespace
{

enum { GUARD_BYTES = 256, GUARD = 0xa5, FRESH = 0xff }; /* fresh memory is NaNs */

struct block {
    size_t bytes;
    int device;
};

struct {
    std::mutex lock;
    /* By address; live as long as the process. Of the device, and page-locked. */
    std::map<unsigned char *, block> *blocks, *locked;
    size_t used_bytes;
    long calls;
    bool allowed;
} memory;

std::map<unsigned char *, block> &blocks()
{
    if (!memory.blocks)
        memory.blocks = new std::map<unsigned char *, block>;
    return *memory.blocks;
}

std::map<unsigned char *, block> &locked_blocks()
{
    if (!memory.locked)
        memory.locked = new std::map<unsigned char *, block>;
    return *memory.locked;
}

bool is_in(const std::map<unsigned char *, block> &all, const void *place)
{
    auto *at = (unsigned char *)(uintptr_t)place;
    auto after = all.upper_bound(at);
    return after != all.begin() && (--after, at < after->first + after->second.bytes);
}

size_t total_bytes()
{
    return (size_t)option_number("memory_mib", 1024) << 20;
}

size_t rounded(size_t bytes)
{
    return (bytes + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
}

/* The guards before and behind a block; behind: up to the rounding's end and the zone after it. */
void check_guards(const unsigned char *block, size_t bytes)
{
    const unsigned char *end = block + rounded(bytes) + GUARD_BYTES;
    ASAN_UNPOISON_MEMORY_REGION(block - GUARD_BYTES, (size_t)(end - block) + GUARD_BYTES);
    for (const unsigned char *at = block - GUARD_BYTES; at < end; at++) {
        if (at == block)
            at += bytes;
        if (*at != GUARD) {
            fprintf(stderr,
                    "emulation: device memory was written %ld bytes from a block of %zu bytes\n",
                    (long)(at - block), bytes);
            abort();
        }
    }
}

} // namespace

void memory_allow()
{
    std::lock_guard guard(memory.lock);
    memory.allowed = true;
    for (auto [at, block] : blocks())
        ASAN_UNPOISON_MEMORY_REGION(at, block.bytes);
}

void memory_forbid()
{
    std::lock_guard guard(memory.lock);
    memory.allowed = false;
    for (auto [at, block] : blocks())
        ASAN_POISON_MEMORY_REGION(at, block.bytes);
}

bool memory_is_pageable(const void *place)
{
    std::lock_guard guard(memory.lock);
    return !is_in(blocks(), place) && !is_in(locked_blocks(), place);
}

std::vector<memory_range> memory_ranges()
{
    std::lock_guard guard(memory.lock);
    std::vector<memory_range> all;
    for (const auto &[at, block] : blocks())
        all.push_back({at, block.bytes});
    for (const auto &[at, block] : locked_blocks())
        all.push_back({at, block.bytes});
    return all;
}

} // namespace emulation

using namespace emulation;

cudaError_t cudaMalloc(void **ret_memory, size_t bytes)
{
    must_have_device("cudaMalloc");
    if (the_fault() != cudaSuccess)
        return noted(the_fault());
    std::lock_guard guard(memory.lock);
    memory.calls++;
    if (bytes > total_bytes() || memory.used_bytes + bytes > total_bytes())
        return cudaErrorMemoryAllocation;
    size_t whole = rounded(bytes) + 2 * GUARD_BYTES;
    auto *start = (unsigned char *)aligned_alloc(GUARD_BYTES, whole);
    if (!start)
        return cudaErrorMemoryAllocation;
    unsigned char *block = start + GUARD_BYTES;
    memset(start, GUARD, whole);
    memset(block, FRESH, bytes);
    ASAN_POISON_MEMORY_REGION(start, whole);
    if (memory.allowed)
        ASAN_UNPOISON_MEMORY_REGION(block, bytes);
    blocks()[block] = {bytes, current_device()};
    memory.used_bytes += bytes;
    *ret_memory = block;
    return cudaSuccess;
}

/* The device whose memory it is; -1: none's. */
static int device_of(void *at)
{
    std::lock_guard guard(memory.lock);
    auto found = blocks().find((unsigned char *)at);
    return found == blocks().end() ? -1 : found->second.device;
}

/* Whoever frees waits for others, as with CUDA: for all streams of the device. */
cudaError_t cudaFree(void *at)
{
    if (!at)
        return cudaSuccess;
    int device = device_of(at);
    if (device < 0)
        return cudaErrorInvalidValue;
    drive_device(device);
    std::lock_guard guard(memory.lock);
    auto found = blocks().find((unsigned char *)at);
    size_t bytes = found->second.bytes;
    check_guards(found->first, bytes);
    memory.calls++;
    memory.used_bytes -= bytes;
    free(found->first - GUARD_BYTES);
    blocks().erase(found);
    return cudaSuccess;
}

void *emulation_alloc(size_t bytes)
{
    void *memory = nullptr;
    return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : nullptr;
}

void emulation_free(void *memory)
{
    cudaFree(memory);
}

long emulation_memory_calls(void)
{
    std::lock_guard guard(memory.lock);
    return memory.calls;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    if (the_fault() != cudaSuccess)
        return noted(the_fault());
    std::lock_guard guard(memory.lock);
    *total = total_bytes();
    *free_bytes = *total - memory.used_bytes;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **ret_memory, size_t bytes, unsigned flags)
{
    (void)flags;
    if (the_fault() != cudaSuccess)
        return noted(the_fault());
    const long most = option_number("locks_most", 0);
    if (most > 0 && bytes > (size_t)most)
        return noted(cudaErrorMemoryAllocation);
    *ret_memory = aligned_alloc(GUARD_BYTES, rounded(bytes ? bytes : 1));
    if (!*ret_memory)
        return cudaErrorMemoryAllocation;
    memset(*ret_memory, FRESH, rounded(bytes ? bytes : 1));
    std::lock_guard guard(memory.lock);
    locked_blocks()[(unsigned char *)*ret_memory] = {bytes, current_device()};
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *block)
{
    std::lock_guard guard(memory.lock);
    locked_blocks().erase((unsigned char *)block);
    free(block);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory_of_host, size_t bytes, unsigned flags)
{
    (void)flags;
    must_have_device("cudaHostRegister");
    if (the_fault() != cudaSuccess)
        return noted(the_fault());
    if (!option_number("registers", 1))
        return noted(cudaErrorNotSupported);
    std::lock_guard guard(memory.lock);
    locked_blocks()[(unsigned char *)memory_of_host] = {bytes, current_device()};
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory_of_host)
{
    must_have_device("cudaHostUnregister");
    std::lock_guard guard(memory.lock);
    return locked_blocks().erase((unsigned char *)memory_of_host) ? cudaSuccess
                                                                  : noted(cudaErrorInvalidValue);
}
