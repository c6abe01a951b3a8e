/* Who touched each byte last, and whether anything orders those who did. */
#include "tests/emulation/races.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <unordered_map>
#include <vector>

namespace emulation
{
namespace
{

enum { WARP = 32, MOST_THREADS = 1024, PAGE_BYTES = 256 };

struct access {
    const void *by;
    unsigned block, epoch, warp_epoch; /* block: from 1 on; 0: there was none */
    short thread;
    bool atomic;
};

/* Of the reads since the write: the last; the last of another thread of its warp; of another warp
 * of its block; of another block. */
enum { LAST, OF_WARP, OF_BLOCK, OF_OTHERS, READS };

struct byte {
    access write, reads[READS];
};

/* Memory that threads share. */
struct region {
    const unsigned char *start;
    size_t bytes;
    const char *name;            /* NULL: device memory */
    std::unique_ptr<byte[]> all; /* of shared memory */
};

struct {
    std::vector<region> shared;
    std::vector<memory_range> device;
    std::unordered_map<uintptr_t, std::unique_ptr<byte[]>>
        pages;      /* of device memory, by address / PAGE_BYTES */
    uintptr_t page; /* the one that was looked for last */
    byte *of_page;
    memory_range near;  /* the device memory that was touched last */
    memory_range stack; /* of the running thread */
    unsigned block, epoch, warp_epochs[MOST_THREADS / WARP];
    bool found; /* one is told of each kernel */
} &races = *new std::remove_reference_t<decltype(races)>();

bool watched; /* somebody calls races_touch() */
thread_local int running = -1;
thread_local bool atomic;

bool is_ordered(const access &before, const access &now)
{
    if (before.atomic && now.atomic)
        return true;
    if (before.block != now.block)
        return before.block == 0;
    bool same_warp = before.thread / WARP == now.thread / WARP;
    return before.thread == now.thread || before.epoch < now.epoch ||
           (same_warp && before.warp_epoch < now.warp_epoch);
}

/* ---- what is told ---- */

/* file:line of code of this library. */
std::string place_of(const void *code)
{
    Dl_info library = {};
    char command[600], line[300] = "?";
    if (!dladdr(code, &library))
        return line;
    snprintf(command, sizeof command, "addr2line -e '%s' %#zx", library.dli_fname,
             (size_t)((const char *)code - (const char *)library.dli_fbase) - 1);
    if (FILE *told = popen(command, "r")) {
        if (fgets(line, sizeof line, told))
            line[strcspn(line, " \n")] = 0;
        pclose(told);
    }
    const char *sources = strstr(line, "kernels/cuda/");
    return sources ? sources : line;
}

std::string who(const access &a)
{
    return "thread " + std::to_string(a.thread) + " of block " + std::to_string(a.block - 1);
}

void tell(const region &in, size_t offset, const access &before, bool wrote, const access &now,
          bool writes)
{
    if (races.found)
        return;
    races.found = true;
    std::string what = in.name ? "shared memory " + std::string(in.name)
                               : "device memory of " + std::to_string(in.bytes) + " bytes";
    fail_kernel("race: " + who(now) + (writes ? " writes " : " reads ") + what + " at byte " +
                std::to_string(offset) + " (" + place_of(now.by) + "), " + who(before) +
                (wrote ? " wrote it (" : " read it (") + place_of(before.by) +
                (before.block == now.block ? "), without a barrier between them"
                                           : "), and nothing orders blocks but atomics"));
}

/* ---- the records ---- */

void keep_read(byte *at, const access &now)
{
    access *reads = at->reads;
    if (reads[LAST].block != now.block)
        reads[OF_OTHERS] = reads[LAST], reads[OF_WARP] = reads[OF_BLOCK] = {};
    else if (reads[LAST].thread / WARP != now.thread / WARP)
        reads[OF_BLOCK] = reads[LAST], reads[OF_WARP] = {};
    else if (reads[LAST].thread != now.thread)
        reads[OF_WARP] = reads[LAST];
    reads[LAST] = now;
}

void touch_byte(const region &in, size_t offset, byte *at, const access &now, touch how)
{
    if (!is_ordered(at->write, now))
        tell(in, offset, at->write, true, now, how == touch::writes);
    if (how == touch::reads) {
        keep_read(at, now);
        return;
    }
    for (access &read : at->reads)
        if (!is_ordered(read, now))
            tell(in, offset, read, false, now, true);
    *at = {now, {}};
}

/* Of device memory. */
byte *find(uintptr_t address)
{
    if (address / PAGE_BYTES != races.page || !races.of_page) {
        std::unique_ptr<byte[]> &page = races.pages[address / PAGE_BYTES];
        if (!page)
            page = std::make_unique<byte[]>(PAGE_BYTES);
        races.page = address / PAGE_BYTES;
        races.of_page = page.get();
    }
    return &races.of_page[address % PAGE_BYTES];
}

bool is_in(const unsigned char *at, const unsigned char *start, size_t bytes)
{
    return at >= start && at < start + bytes;
}

bool is_device_memory(const unsigned char *at)
{
    if (is_in(at, races.near.start, races.near.bytes))
        return true;
    for (const memory_range &each : races.device)
        if (is_in(at, each.start, each.bytes)) {
            races.near = each;
            return true;
        }
    return false;
}

} // namespace

void races_watch()
{
    watched = true;
}

void races_begin(const void *shared, size_t shared_bytes)
{
    if (!watched)
        return;
    races.shared.clear();
    races.shared.push_back({(const unsigned char *)shared, shared_bytes, "(dynamic)", nullptr});
    races.device = memory_ranges();
    races.near = {};
    races.pages.clear();
    races.of_page = nullptr;
    races.found = false;
}

void races_begin_block(unsigned index)
{
    races.block = index + 1;
    races.epoch = 0;
    memset(races.warp_epochs, 0, sizeof races.warp_epochs);
    for (region &each : races.shared)
        each.all = nullptr;
}

void races_static(const void *memory, size_t bytes, const char *name)
{
    for (const region &each : races.shared)
        if (each.start == memory)
            return;
    races.shared.push_back({(const unsigned char *)memory, bytes, name, nullptr});
}

void races_enter(int thread, const unsigned char *stack, size_t stack_bytes)
{
    running = thread;
    races.stack = {stack, stack_bytes};
}

void races_leave()
{
    running = -1;
}

void races_block_barrier()
{
    races.epoch++;
}

void races_warp_barrier(int warp)
{
    races.warp_epochs[warp]++;
}

void races_touch(const void *memory, size_t bytes, touch how, const void *by)
{
    auto *at = (const unsigned char *)memory;
    if (running < 0 || is_in(at, races.stack.start, races.stack.bytes) ||
        (atomic && how == touch::reads))
        return;
    const access now = {
        by, races.block, races.epoch, races.warp_epochs[running / WARP], (short)running, atomic};
    for (region &each : races.shared)
        if (is_in(at, each.start, each.bytes)) {
            if (!each.all)
                each.all = std::make_unique<byte[]>(each.bytes);
            for (size_t i = 0, offset = (size_t)(at - each.start); i < bytes; i++, offset++)
                touch_byte(each, offset, &each.all[offset], now, how);
            return;
        }
    if (!is_device_memory(at))
        return;
    const region device = {races.near.start, races.near.bytes, nullptr, nullptr};
    for (size_t i = 0; i < bytes; i++)
        touch_byte(device, (size_t)(at - device.start) + i, find((uintptr_t)at + i), now, how);
}

void atomic_begin(site at)
{
    atomic = !is_left_out(at);
}

void atomic_end()
{
    atomic = false;
}

} // namespace emulation
