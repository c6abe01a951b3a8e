/* Products of warpgroups: what a descriptor says, who may read, and the sums. */
#include "tests/emulation/async_block.h"

#include <cstring>

namespace emulation
{
namespace
{

enum { WARP = 32, CHUNK = 16, ROW_BYTES = 128, ELEMENT = 2, GROUP = 8, TILE_COLUMNS = 64 };

std::string hex(uint64_t x)
{
    char text[32];
    snprintf(text, sizeof text, "%#llx", (unsigned long long)x);
    return text;
}

/* Fields of a descriptor, in bytes. */
uint32_t start_of(uint64_t matrix)
{
    return (uint32_t)(matrix & 0x3fff) << 4;
}
uint32_t leading_of(uint64_t matrix)
{
    return (uint32_t)(matrix >> 16 & 0x3fff) << 4;
}
uint32_t stride_of(uint64_t matrix)
{
    return (uint32_t)(matrix >> 32 & 0x3fff) << 4;
}

void check_fields(uint64_t matrix, bool by_rows, const char *name)
{
    const uint64_t unused = 0x3ull << 14 | 0x3ull << 30 | 0x7ull << 46 | 0x3ffull << 52;
    std::string what = std::string(name) + "'s descriptor " + hex(matrix) + ": ";
    uint32_t start = start_of(matrix);
    if (matrix & unused)
        throw async_fault(what + "bits that are to be 0 are not");
    if (matrix >> 62 != 1)
        throw async_fault(what + "another swizzle than that of 128 bytes, which copies write");
    if ((matrix >> 49 & 7) || (start >> 7 & 7))
        throw async_fault(what + "the swizzle's pattern does not begin at a multiple of 1024");
    if (by_rows ? start % ROW_BYTES != 0 : start % 32 != 0)
        throw async_fault(what + "it begins within a row at " + std::to_string(start % ROW_BYTES));
}

} // namespace

/* Eight rows of 128 bytes are together, `stride` from the next eight; of what lies by rows, 64
 * columns are together, `leading` from the next 64. */
uint32_t async_element_at(uint64_t matrix, bool by_rows, int i, int k)
{
    int row = by_rows ? k : i, column = by_rows ? i : k;
    uint32_t at = start_of(matrix) + (uint32_t)(row / GROUP) * stride_of(matrix) +
                  (uint32_t)(row % GROUP) * ROW_BYTES;
    at += (uint32_t)(column / TILE_COLUMNS) * leading_of(matrix) +
          (uint32_t)(column % TILE_COLUMNS) * ELEMENT;
    return at ^ (at >> 7 & 7) << 4;
}

float async_block::element(uint32_t address) const
{
    uint16_t half;
    uint32_t bits;
    float value;
    memcpy(&half, memory + (address - base), sizeof half);
    bits = (uint32_t)half << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* What is there must have been brought, and each of the warp's threads must have waited for it. */
void async_block::check_read(unsigned warp, uint32_t address, const char *name)
{
    size_t index = (address - base) / CHUNK;
    int &waited_for = warps[warp].waited_for;
    if (index < chunks.size() && !chunks[index].is_coming && waited_for >= 0 &&
        chunks[index].brought_by == waited_for)
        return;
    std::string what = std::string("a product's ") + name + " at " + hex(address);
    const copy_state &by = copy_that_brought(address, what);
    if (by.plain)
        throw async_fault(what + ": what is there has no swizzle, as the copy was a plain one");
    for (unsigned t = warp * WARP; t < (warp + 1) * WARP; t++)
        check_waited(t, by, what);
    waited_for = chunks[index].brought_by;
}

/* The chunks that the warp reads of a factor, `count` times 16 from `first` on. */
std::vector<uint32_t> async_block::check_matrix(unsigned warp, uint64_t matrix, int count,
                                                bool by_rows, int first, const char *name)
{
    std::vector<uint32_t> all;
    check_fields(matrix, by_rows, name);
    for (int i = first; i < first + count; i += by_rows ? GROUP : 1)
        for (int k = 0; k < async_product::DEPTH; k += by_rows ? 1 : GROUP) {
            uint32_t at = async_element_at(matrix, by_rows, i, k);
            check_read(warp, at, name);
            all.push_back((at - base) / CHUNK);
        }
    return all;
}

void async_block::fence(unsigned warp)
{
    warps[warp].is_fenced = true;
}

bool async_block::has_sums(unsigned warp, uint64_t key) const
{
    return warps[warp].under_way.count(key) > 0;
}

void async_block::multiply(unsigned warp, const async_product &p, uint64_t key,
                           const std::vector<float> &sums)
{
    warp_state &w = warps[warp];
    unsigned group = warp / async_product::WARPS, rank = warp % async_product::WARPS;
    if ((group + 1) * async_product::WARPS * WARP > thread_count)
        throw async_fault("a product by less than four warps");
    if (!w.is_fenced)
        throw async_fault("a product without a fence since the last wait: its registers may still "
                          "be written");
    /* All four ask for the same. */
    std::string signature = (p.a_in_registers ? "registers" : hex(p.a)) + " times " + hex(p.b) +
                            ", n " + std::to_string(p.n) + (p.adds ? ", adds" : "");
    std::vector<std::string> &told = products_of_groups[group];
    if (w.told == told.size())
        told.push_back(signature);
    if (told[w.told++] != signature)
        throw async_fault("warps of a group ask for other products: " + signature + " and " +
                          told[w.told - 1]);
    pending_product next = {p, key, {}};
    next.chunks = check_matrix(warp, p.b, p.n, p.b_by_rows, 0, "B");
    if (!p.a_in_registers) {
        std::vector<uint32_t> of_a = check_matrix(warp, p.a, async_product::ROWS, false,
                                                  (int)rank * async_product::ROWS, "A");
        next.chunks.insert(next.chunks.end(), of_a.begin(), of_a.end());
    }
    for (uint32_t c : next.chunks)
        chunks[c].readers++;
    auto [at, inserted] = w.under_way.try_emplace(key, warp_state::sums{p.n, 0, sums});
    if (at->second.n != p.n)
        throw async_fault("sums under way are taken for others");
    at->second.pending++;
    w.open.push_back(std::move(next));
}

void async_block::commit(unsigned warp)
{
    warps[warp].groups.push_back(std::move(warps[warp].open));
    warps[warp].open.clear();
}

/* k goes up, each product is added with a rounding: the order on a GPU is not specified. */
void async_block::make(unsigned warp, const pending_product &next)
{
    enum { ROWS = async_product::ROWS, DEPTH = async_product::DEPTH };
    const async_product &p = next.what;
    warp_state::sums &sums = warps[warp].under_way.at(next.key);
    int first = (int)(warp % async_product::WARPS) * ROWS;
    float a[ROWS][DEPTH];
    std::vector<float> b((size_t)(DEPTH * p.n));
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < DEPTH; k++)
            a[row][k] = p.a_in_registers ? p.values[row][k]
                                         : element(async_element_at(p.a, false, first + row, k));
    for (int k = 0; k < DEPTH; k++)
        for (int i = 0; i < p.n; i++)
            b[(size_t)(k * p.n + i)] = element(async_element_at(p.b, p.b_by_rows, i, k));
    if (!p.adds)
        sums.d.assign(sums.d.size(), 0);
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < DEPTH; k++) {
            float *d = &sums.d[(size_t)(row * p.n)];
            const float *of_k = &b[(size_t)(k * p.n)];
            for (int i = 0; i < p.n; i++)
                d[i] += a[row][k] * of_k[i];
        }
}

std::vector<async_sums> async_block::wait(unsigned warp, unsigned left)
{
    warp_state &w = warps[warp];
    std::vector<async_sums> done;
    w.is_fenced = false;
    for (; w.groups.size() > left; w.groups.pop_front())
        for (const pending_product &p : w.groups.front()) {
            make(warp, p);
            for (uint32_t c : p.chunks) {
                chunks[c].readers--;
                chunks[c].read_at[warp] = w.seen[warp];
            }
            warp_state::sums &sums = w.under_way.at(p.key);
            if (--sums.pending)
                continue;
            done.push_back({p.key, sums.n, std::move(sums.d)});
            w.under_way.erase(p.key);
        }
    return done;
}

} // namespace emulation
