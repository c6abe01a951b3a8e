/* Beside the emulated GPU: each kernel that it runs and nvcc made PTX of is run by both, from the
 * same memory and arguments, and all of device memory must be the same afterwards, bit for bit. The
 * emulation's stays. A difference, or a fault of the PTX, fails the kernel.
 *
 * In the library of build/<variant>/ptx. SHOAL_EMULATION's `ptx` is the folder of the PTX files; it
 * exits where two of them have the same kernel. At the end it tells what was run, on stderr:
 *   ptx: NAME: N launches, E of C instructions, A of B of inline assembly */
#include "kernels/cuda/attention.h"
#include "tests/emulation/emulation.h"
#include "tests/ptx/symbols.h"
#include "tests/ptx/warp.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cxxabi.h>
#include <filesystem>
#include <memory>

namespace ptx
{
namespace
{

using emulation::launch;
using emulation::memory_range;

/* A kernel, and what of it has run. */
struct known {
    kernel program;
    std::vector<uint64_t> executed;
    long launches = 0;
};

std::string readable(const std::string &name)
{
    std::unique_ptr<char, decltype(&free)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr), free);
    return text ? text.get() : name;
}

class library
{
  public:
    library();
    ~library(); /* tells what was run */
    known *find(const std::string &name)
    {
        auto at = kernels.find(name);
        return at == kernels.end() ? nullptr : &at->second;
    }

  private:
    std::map<std::string, known> kernels;

    void add(const kernel &k);
};

/* Of two texts of a kernel one would pass unseen. */
void library::add(const kernel &k)
{
    auto [at, is_new] = kernels.try_emplace(k.name);
    if (!is_new)
        throw fault(readable(k.name) + " is in " + at->second.program.file + " and in " + k.file);
    at->second = {k, std::vector<uint64_t>(k.code.size()), 0};
}

library::library()
{
    std::string folder = emulation::option("ptx", "build/ptx");
    try {
        for (const auto &entry : std::filesystem::directory_iterator(folder))
            if (entry.path().extension() == ".ptx")
                for (const kernel &k : parse_file(entry.path()))
                    add(k);
    } catch (const std::exception &e) {
        fprintf(stderr, "ptx: %s\n", e.what());
        exit(1);
    }
}

library::~library()
{
    for (const auto &[name, k] : kernels) {
        size_t executed = 0, lines = 0, executed_lines = 0;
        for (size_t i = 0; i < k.executed.size(); i++) {
            executed += k.executed[i] > 0;
            lines += k.program.code[i].is_inline;
            executed_lines += k.program.code[i].is_inline && k.executed[i] > 0;
        }
        fprintf(stderr,
                "ptx: %s: %ld launches, %zu of %zu instructions, %zu of %zu of inline assembly\n",
                readable(name).c_str(), k.launches, executed, k.executed.size(), executed_lines,
                lines);
    }
}

using bytes = std::vector<unsigned char>;

std::vector<bytes> copy_of(const std::vector<memory_range> &memory)
{
    std::vector<bytes> all;
    for (const memory_range &r : memory)
        all.emplace_back(r.start, r.start + r.bytes);
    return all;
}

void restore(const std::vector<memory_range> &memory, const std::vector<bytes> &all)
{
    for (size_t i = 0; i < memory.size(); i++)
        memcpy((void *)memory[i].start, all[i].data(), all[i].size());
}

/* What may differ: attention's log-sum-exp. log2f() has no specified bits: nvcc makes a polynomial
 * of it, the emulation calls the C library's. */
struct tolerated {
    const unsigned char *start = nullptr;
    size_t bytes = 0;
};
const float LSE_MAY_DIFFER = 0x1p-21f; /* of itself, or of 1 if that is more */

tolerated tolerated_of(const launch &work, const std::string &name)
{
    struct attention_args a;
    bool is_forward = name.find("17attention_forward") != std::string::npos ||
                      name.find("16attention_hopper") != std::string::npos;
    if (!is_forward || work.arguments.size() < sizeof a)
        return {};
    memcpy((void *)&a, work.arguments.data(), sizeof a);
    return {(const unsigned char *)a.lse,
            (size_t)(a.shape.B * a.shape.heads * a.shape.T_q) * sizeof *a.lse};
}

bool is_near(float a, float b)
{
    return std::fabs(a - b) <= LSE_MAY_DIFFER * std::fmax(1.0f, std::fabs(a));
}

/* Throws fault unless memory is what the emulation left. */
void compare(const std::vector<memory_range> &memory, const std::vector<bytes> &emulated,
             const tolerated &inexact)
{
    size_t differ = 0;
    std::string first;
    for (size_t r = 0; r < memory.size(); r++)
        for (size_t i = 0; i < memory[r].bytes; i += sizeof(uint32_t)) {
            uint32_t ours = 0, theirs = 0;
            size_t count = std::min(sizeof ours, memory[r].bytes - i);
            memcpy(&ours, memory[r].start + i, count);
            memcpy(&theirs, emulated[r].data() + i, count);
            const unsigned char *at = memory[r].start + i;
            bool may_differ = at >= inexact.start && at < inexact.start + inexact.bytes;
            if (ours == theirs ||
                (may_differ && is_near(value_of<float>(ours), value_of<float>(theirs))))
                continue;
            char text[160];
            snprintf(text, sizeof text,
                     "at byte %zu of %zu PTX leaves 0x%08x, the emulation 0x%08x", i,
                     memory[r].bytes, ours, theirs);
            first = differ++ ? first : text;
        }
    if (differ)
        throw fault(std::to_string(differ) + " words of device memory differ: " + first);
}

grid grid_of(const launch &work, const known &k, const std::vector<memory_range> &memory)
{
    grid g = {};
    g.program = &k.program;
    const unsigned blocks[3] = {work.grid.x, work.grid.y, work.grid.z};
    const unsigned threads[3] = {work.block.x, work.block.y, work.block.z};
    std::copy(blocks, blocks + 3, g.blocks);
    std::copy(threads, threads + 3, g.threads);
    g.arguments = work.arguments;
    g.dynamic_shared_bytes = work.shared_bytes;
    for (const memory_range &r : memory)
        g.memory.push_back({(unsigned char *)r.start, r.bytes});
    return g;
}

bool run_both(const launch &work)
{
    static library all;
    std::string name = symbol_of(work.function);
    known *k = all.find(name);
    if (!k)
        return emulation::run_kernel(work);
    std::vector<memory_range> memory = emulation::memory_ranges();
    std::vector<bytes> before = copy_of(memory);
    if (!emulation::run_kernel(work))
        return false;
    std::vector<bytes> emulated = copy_of(memory);
    restore(memory, before);
    grid g = grid_of(work, *k, memory);
    bool same = true;
    try {
        run_grid(&g);
        compare(memory, emulated, tolerated_of(work, name));
    } catch (const fault &f) {
        fprintf(stderr, "ptx: %s, launched at %s:%d: %s\n", readable(name).c_str(), work.from.file,
                work.from.line, f.what());
        same = false;
    }
    restore(memory, emulated);
    k->launches++;
    for (size_t i = 0; i < k->executed.size(); i++)
        k->executed[i] += g.executed.empty() ? 0 : g.executed[i];
    return same;
}

[[maybe_unused]] const bool is_installed = (emulation::kernel_runner = run_both, true);

} // namespace
} // namespace ptx
