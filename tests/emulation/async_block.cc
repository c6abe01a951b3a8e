/* Barriers and copies of a block; async_products.cc has the products. */
#include "tests/emulation/async_block.h"

#include <algorithm>
#include <cstring>

namespace emulation
{
namespace
{

enum {
    WARP = 32,
    CHUNK = 16,
    ROW_BYTES = 128,
    MOST_ARRIVALS = (1 << 20) - 1, /* mbarrier.init */
    MOST_BYTES = (1 << 20) - 1,    /* "tx-count" */
};

std::string hex(uint64_t x)
{
    char text[32];
    snprintf(text, sizeof text, "%#llx", (unsigned long long)x);
    return text;
}

void join(std::vector<uint64_t> &into, const std::vector<uint64_t> &other)
{
    for (size_t i = 0; i < other.size(); i++)
        into[i] = std::max(into[i], other[i]);
}

/* The swizzle of 128 bytes: 16 bytes of eight rows change places by the row. */
uint32_t swizzled(uint32_t address)
{
    return address ^ (address >> 7 & 7) << 4;
}

} // namespace

async_block::async_block(unsigned char *shared, size_t bytes_, uint32_t address, unsigned threads)
    : memory(shared), bytes(bytes_), base(address), thread_count(threads),
      warps((threads + WARP - 1) / WARP), chunks((bytes_ + CHUNK - 1) / CHUNK),
      products_of_groups(warps.size() / async_product::WARPS + 1)
{
    for (size_t w = 0; w < warps.size(); w++) {
        warps[w].seen.assign(warps.size(), 0);
        warps[w].seen[w] = 1;
    }
}

/* ---- barriers ---- */

void async_block::init(unsigned thread, uint32_t barrier, unsigned count)
{
    if (barrier % sizeof(uint64_t) || barrier < base || barrier + sizeof(uint64_t) > base + bytes)
        throw async_fault("a barrier at " + hex(barrier) +
                          ": no multiple of 8 in the block's shared memory");
    if (count < 1 || count > MOST_ARRIVALS)
        throw async_fault("a barrier for " + std::to_string(count) + " arrivals");
    if (barriers.count(barrier))
        throw async_fault("the barrier at " + hex(barrier) + " is made twice");
    barrier_state &b = barriers[barrier];
    b.count = b.missing = count;
    b.maker = thread;
    b.made_in = epoch;
    b.arrived = b.handed = clocks(warps.size());
}

void async_block::made(unsigned thread)
{
    for (auto &[at, b] : barriers)
        b.is_fenced = b.is_fenced || b.maker == thread;
}

void async_block::block_barrier()
{
    epoch++;
    clocks all(warps.size());
    for (warp_state &w : warps)
        join(all, w.seen);
    for (size_t i = 0; i < warps.size(); i++) {
        warps[i].seen = all;
        warps[i].seen[i]++;
    }
}

async_block::barrier_state &async_block::find(unsigned thread, uint32_t barrier)
{
    auto at = barriers.find(barrier);
    if (at == barriers.end())
        throw async_fault("there is no barrier at " + hex(barrier));
    barrier_state &b = at->second;
    if (b.maker != thread && b.made_in == epoch)
        throw async_fault("thread " + std::to_string(b.maker) + " made the barrier at " +
                          hex(barrier) + ", with no barrier of the block since");
    return b;
}

void async_block::end_phase_if_due(barrier_state &b)
{
    if (b.missing || b.bytes)
        return;
    b.phase++;
    b.missing = b.count;
    join(b.handed, b.arrived);
    phases_over++;
}

void async_block::arrive(unsigned thread, uint32_t barrier, unsigned more)
{
    barrier_state &b = find(thread, barrier);
    if (!b.missing)
        throw async_fault("more than " + std::to_string(b.count) + " arrive at the barrier at " +
                          hex(barrier) + " in one phase");
    if (b.bytes + more > MOST_BYTES)
        throw async_fault("more bytes are expected than a barrier counts");
    b.bytes += more;
    b.missing--;
    warp_state &w = warps[thread / WARP];
    join(b.arrived, w.seen);
    w.seen[thread / WARP]++;
    end_phase_if_due(b);
}

bool async_block::is_over(unsigned thread, uint32_t barrier, unsigned parity)
{
    barrier_state &b = find(thread, barrier);
    if (b.phase % 2 == parity) /* the current one */
        return false;
    b.seen[thread] = b.phase;
    join(warps[thread / WARP].seen, b.handed);
    return true;
}

std::string async_block::state_of(uint32_t barrier) const
{
    auto at = barriers.find(barrier);
    if (at == barriers.end())
        return "";
    const barrier_state &b = at->second;
    return "phase " + std::to_string(b.phase) + " of the barrier at " + hex(barrier) + ": " +
           std::to_string(b.missing) + " of " + std::to_string(b.count) + " arrivals and " +
           std::to_string(b.bytes) + " bytes are missing";
}

/* ---- copies ---- */

async_block::chunk &async_block::chunk_at(uint32_t address, const std::string &what)
{
    if (address < base || address + CHUNK > base + bytes)
        throw async_fault(what + " at " + hex(address) + " is not in the block's shared memory");
    chunk &c = chunks[(address - base) / CHUNK];
    if (c.read_at.empty())
        c.read_at.resize(warps.size());
    return c;
}

/* Nobody may need what lies there any more. */
void async_block::check_target(unsigned thread, uint32_t to, uint32_t count)
{
    const clocks &seen = warps[thread / WARP].seen;
    for (const auto &[at, b] : barriers)
        if (at >= to && at < to + count)
            throw async_fault("a copy to " + hex(at) + ", where a barrier is");
    for (uint32_t at = to; at < to + count; at += CHUNK) {
        chunk &c = chunk_at(at, "a copy's target");
        if (c.is_coming)
            throw async_fault("a copy to " + hex(at) + ", where another is under way to");
        if (c.readers)
            throw async_fault("a copy to " + hex(at) + ", which a product under way reads");
        for (size_t w = 0; w < warps.size(); w++)
            if (c.read_at[w] > seen[w])
                throw async_fault("a copy to " + hex(at) + ": nothing says that warp " +
                                  std::to_string(w) + "'s product or read there is done");
    }
}

/* Asked for, to a target that is checked. */
void async_block::add_copy(unsigned thread, copy_state c)
{
    barrier_state &b = find(thread, c.barrier);
    if (!b.is_fenced)
        throw async_fault("a copy counts at a barrier that TMA need not see: no fence since it "
                          "was made");
    check_target(thread, c.to, c.count);
    for (uint32_t at = c.to; at < c.to + c.count; at += CHUNK)
        chunk_at(at, "").is_coming = true;
    c.phase = b.phase;
    c.number = copies_so_far++;
    copies.push_back(c);
}

void async_block::copy(unsigned thread, uint32_t to, const void *map, const int (&place)[4],
                       uint32_t barrier)
{
    copy_state c = {};
    if ((uintptr_t)map % 64)
        throw async_fault("a tensor map that is no multiple of 64");
    memcpy(&c.map, map, sizeof c.map);
    if (c.map.magic != MAP_MAGIC)
        throw async_fault("what is no tensor map is taken for one");
    if (to % ROW_BYTES)
        throw async_fault("a copy to " + hex(to) + ", which is no multiple of 128");
    c.to = to;
    c.count = c.map.box[1] * c.map.box[2] * c.map.box[3] * ROW_BYTES;
    c.barrier = barrier;
    memcpy(c.place, place, sizeof place);
    add_copy(thread, c);
}

void async_block::copy_plain(unsigned thread, uint32_t to, const unsigned char *from,
                             uint32_t count, uint32_t barrier)
{
    copy_state c = {};
    if (to % CHUNK || (uintptr_t)from % CHUNK || count % CHUNK)
        throw async_fault("a copy of " + std::to_string(count) + " bytes from " +
                          hex((uintptr_t)from) + " to " + hex(to) + ": no multiples of 16");
    c.to = to;
    c.count = count;
    c.barrier = barrier;
    c.plain = from;
    add_copy(thread, c);
}

/* Rows of 128 bytes; what is outside of the tensor is 0. */
void async_block::bring_tile(const copy_state &c)
{
    const map_fields &m = c.map;
    enum { ELEMENT = 2 };
    for (uint32_t row = 0; row < m.box[2]; row++)
        for (uint32_t column = 0; column < m.box[0]; column++) {
            const uint64_t at[] = {(uint64_t)((int64_t)c.place[0] + column), (uint64_t)c.place[1],
                                   (uint64_t)((int64_t)c.place[2] + row), (uint64_t)c.place[3]};
            uint64_t offset = at[0] * ELEMENT;
            bool is_inside = at[0] < m.sizes[0];
            for (int i = 1; i < 4; i++) {
                is_inside = is_inside && at[i] < m.sizes[i];
                offset += at[i] * m.strides[i - 1];
            }
            uint32_t to = swizzled(c.to + row * ROW_BYTES + column * ELEMENT) - base;
            if (is_inside)
                memcpy(memory + to, m.memory + offset, ELEMENT);
            else
                memset(memory + to, 0, ELEMENT);
        }
}

void async_block::land(size_t which)
{
    copy_state c = copies[which];
    copies.erase(copies.begin() + (std::ptrdiff_t)which);
    if (c.plain)
        memcpy(memory + (c.to - base), c.plain, c.count);
    else
        bring_tile(c);
    for (uint32_t at = c.to; at < c.to + c.count; at += CHUNK) {
        chunk &there = chunk_at(at, "");
        there.is_coming = false;
        there.brought_by = (int)landed.size();
    }
    landed.push_back(c);
    barrier_state &b = barriers[c.barrier];
    b.bytes -= c.count;
    if (b.bytes < 0 && !b.missing)
        throw async_fault("a copy brings " + std::to_string(-b.bytes) +
                          " bytes more than the barrier at " + hex(c.barrier) + " expects");
    end_phase_if_due(b);
}

/* What is there must have been brought. */
const async_block::copy_state &async_block::copy_that_brought(uint32_t address,
                                                              const std::string &what)
{
    const chunk &c = chunk_at(address & ~(uint32_t)(CHUNK - 1), what);
    if (c.is_coming)
        throw async_fault(what + ": a copy to there is under way");
    if (c.brought_by < 0)
        throw async_fault(what + ": no copy has brought anything to there");
    return landed[(size_t)c.brought_by];
}

void async_block::check_waited(unsigned thread, const copy_state &by, const std::string &what) const
{
    const barrier_state &b = barriers.at(by.barrier);
    auto seen = b.seen.find(thread);
    if (seen == b.seen.end() || seen->second <= by.phase)
        throw async_fault(what + ": thread " + std::to_string(thread) +
                          " has not waited for the copy to there");
}

void async_block::read(unsigned thread, uint32_t from, uint32_t count)
{
    unsigned warp = thread / WARP;
    std::string what = "a read at " + hex(from);
    for (uint32_t at = from & ~(uint32_t)(CHUNK - 1); at < from + count; at += CHUNK) {
        check_waited(thread, copy_that_brought(at, what), what);
        chunk_at(at, what).read_at[warp] = warps[warp].seen[warp];
    }
}

void async_block::end()
{
    if (!copies.empty())
        throw async_fault("the block ends while a copy is under way");
    for (const warp_state &w : warps)
        if (!w.groups.empty() || !w.open.empty())
            throw async_fault("the block ends while a product is under way");
}

} // namespace emulation
