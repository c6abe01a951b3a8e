/* Who touched each byte last, and whether anything orders those who did. */
#include "tests/emulation/races.h"

#include <algorithm>
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

enum { WARP = 32, MOST_THREADS = 1024, CELL_BYTES = 4, PAGE_BYTES = 256 };

struct access {
    const void *by;
    unsigned block, epoch, warp_epoch; /* block: from 1 on; 0: there was none */
    short thread;
    bool atomic;
};

/* Of the reads since the write: the last; the last of another thread of its warp; of another warp
 * of its block; of another block. */
enum { LAST, OF_WARP, OF_BLOCK, OF_OTHERS, READS };

struct history {
    access write, reads[READS];
};

/* Bytes that nearly all accesses take together. */
struct cell {
    history whole;
    std::unique_ptr<history[]> parts; /* of each byte, once an access has taken fewer */
};

/* Memory that threads share. */
struct region {
    const unsigned char *start;
    size_t bytes;
    const char *name;            /* NULL: device memory */
    std::unique_ptr<cell[]> all; /* of shared memory */
};

struct {
    std::vector<region> shared;
    std::vector<memory_range> device; /* by address */
    std::unordered_map<uintptr_t, std::unique_ptr<cell[]>>
        pages;      /* of device memory, by address / PAGE_BYTES */
    uintptr_t page; /* the one that was looked for last */
    cell *of_page;
    memory_range near;  /* the device memory that was touched last */
    memory_range stack; /* of the running thread */
    unsigned block, epoch, warp_epochs[MOST_THREADS / WARP];
    bool found; /* one is told of each kernel */
} &races = *new std::remove_reference_t<decltype(races)>();

bool watched; /* somebody calls races_touch() */
/* Read at each access: without a call. */
[[gnu::tls_model("initial-exec")]] thread_local int running = -1;
[[gnu::tls_model("initial-exec")]] thread_local bool atomic;

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

void keep_read(history *of, const access &now)
{
    access *reads = of->reads;
    if (reads[LAST].block != now.block)
        reads[OF_OTHERS] = reads[LAST], reads[OF_WARP] = reads[OF_BLOCK] = {};
    else if (reads[LAST].thread / WARP != now.thread / WARP)
        reads[OF_BLOCK] = reads[LAST], reads[OF_WARP] = {};
    else if (reads[LAST].thread != now.thread)
        reads[OF_WARP] = reads[LAST];
    reads[LAST] = now;
}

void touch_history(const region &in, size_t offset, history *of, const access &now, touch how)
{
    if (!is_ordered(of->write, now))
        tell(in, offset, of->write, true, now, how == touch::writes);
    if (how == touch::reads) {
        keep_read(of, now);
        return;
    }
    for (access &read : of->reads) {
        if (!is_ordered(read, now))
            tell(in, offset, read, false, now, true);
        read.block = 0;
    }
    of->write = now;
}

/* Bytes of the cell that lies at this offset, from the `first` one on. */
void touch_cell(const region &in, size_t offset, cell *of, size_t first, size_t bytes,
                const access &now, touch how)
{
    if (bytes == CELL_BYTES && !of->parts) {
        touch_history(in, offset, &of->whole, now, how);
        return;
    }
    if (!of->parts) {
        of->parts = std::make_unique<history[]>(CELL_BYTES);
        std::fill_n(of->parts.get(), (size_t)CELL_BYTES, of->whole);
    }
    for (size_t i = first; i < first + bytes; i++)
        touch_history(in, offset + i, &of->parts[i], now, how);
}

cell *find_device_cell(uintptr_t address)
{
    if (address / PAGE_BYTES != races.page || !races.of_page) {
        std::unique_ptr<cell[]> &page = races.pages[address / PAGE_BYTES];
        if (!page)
            page = std::make_unique<cell[]>(PAGE_BYTES / CELL_BYTES);
        races.page = address / PAGE_BYTES;
        races.of_page = page.get();
    }
    return &races.of_page[address % PAGE_BYTES / CELL_BYTES];
}

bool is_in(const unsigned char *at, const unsigned char *start, size_t bytes)
{
    return at >= start && at < start + bytes;
}

bool is_device_memory(const unsigned char *at)
{
    if (is_in(at, races.near.start, races.near.bytes))
        return true;
    auto after = std::upper_bound(races.device.begin(), races.device.end(), at,
                                  [](const unsigned char *address, const memory_range &each) {
                                      return address < each.start;
                                  });
    if (after == races.device.begin() || !is_in(at, after[-1].start, after[-1].bytes))
        return false;
    races.near = after[-1];
    return true;
}

region *shared_region(const unsigned char *at)
{
    for (region &each : races.shared)
        if (is_in(at, each.start, each.bytes)) {
            if (!each.all)
                each.all = std::make_unique<cell[]>((each.bytes + CELL_BYTES - 1) / CELL_BYTES);
            return &each;
        }
    return nullptr;
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
    std::sort(races.device.begin(), races.device.end(),
              [](const memory_range &a, const memory_range &b) { return a.start < b.start; });
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
    region *in = shared_region(at);
    if (!in && !is_device_memory(at))
        return;
    const region device = {races.near.start, races.near.bytes, nullptr, nullptr};
    /* cells of device memory begin at multiples of their size; shared memory's at its start */
    uintptr_t from = in ? (uintptr_t)(at - in->start) : (uintptr_t)at;
    for (uintptr_t next, end = from + bytes; from < end; from = next) {
        size_t first = from % CELL_BYTES;
        next = std::min(from - first + CELL_BYTES, end);
        cell *of = in ? &in->all[from / CELL_BYTES] : find_device_cell(from);
        size_t offset = from - first - (in ? 0 : (uintptr_t)device.start);
        touch_cell(in ? *in : device, offset, of, first, next - from, now, how);
    }
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
