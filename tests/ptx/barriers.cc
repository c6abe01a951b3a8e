/* mbarrier, and the fence by which TMA sees one ("Parallel Thread Execution ISA", "mbarrier"). */
#include "tests/ptx/warp.h"

namespace ptx
{
namespace
{

enum {
    MOST_ARRIVALS = (1 << 20) - 1, /* "Phase of the mbarrier object": pending count */
    MOST_BYTES = (1 << 20) - 1,    /* and tx-count */
};

void end_phase_if_due(phase_barrier &b)
{
    if (b.missing || b.bytes)
        return;
    b.phase++;
    b.missing = b.count;
}

void init(warp &w, const instruction &i)
{
    lanes_of(w, [&](int lane) {
        uint32_t at = (uint32_t)w.get(i.operands[0], lane);
        uint32_t count = (uint32_t)w.get(i.operands[1], lane);
        shared_place(w, at, sizeof(uint64_t), lane);
        if (count < 1 || count > MOST_ARRIVALS)
            w.fail("a barrier for " + std::to_string(count) + " arrivals", lane);
        unsigned maker = w.first_thread + (unsigned)lane;
        phase_barrier b = {count, count, 0, 0, maker, false};
        if (!w.of->beside.barriers.try_emplace(at, b).second)
            w.fail("the barrier at " + hex(at) + " is made twice", lane);
    });
}

void fence(warp &w, const instruction &)
{
    lanes_of(w, [&](int lane) {
        for (auto &[at, b] : w.of->beside.barriers)
            b.is_fenced = b.is_fenced || b.maker == w.first_thread + (unsigned)lane;
    });
}

/* _, [barrier], and how many bytes more are expected, if it says so */
template <bool EXPECTS> void arrive(warp &w, const instruction &i)
{
    lanes_of(w, [&](int lane) {
        uint32_t at = (uint32_t)w.get(i.operands[1], lane);
        phase_barrier &b = find_barrier(w, at, lane);
        b.bytes += EXPECTS ? (int64_t)(uint32_t)w.get(i.operands[2], lane) : 0;
        if (b.bytes > MOST_BYTES)
            w.fail("more bytes are expected than a barrier counts", lane);
        if (!b.missing)
            w.fail("more than " + std::to_string(b.count) + " arrive at the barrier at " + hex(at) +
                       " in one phase",
                   lane);
        b.missing--;
        end_phase_if_due(b);
        w.of->beside.progress++;
    });
}

/* p, [barrier], parity: of the phase, the current one or the one before. What is not over yet it
 * may wait for, or not: here it never does, and the warp's turn ends. */
void try_wait(warp &w, const instruction &i)
{
    lanes_of(w, [&](int lane) {
        uint32_t at = (uint32_t)w.get(i.operands[1], lane);
        const phase_barrier &b = find_barrier(w, at, lane);
        bool is_over = b.phase % 2 != w.get(i.operands[2], lane);
        w.put(i.operands[0], lane, is_over);
        w.of->beside.progress += is_over;
        if (!is_over) {
            w.waits = warp::FOR_PHASE;
            w.waits_at = at;
        }
    });
}

} // namespace

phase_barrier &find_barrier(warp &w, uint32_t address, int lane)
{
    auto at = w.of->beside.barriers.find(address);
    if (at == w.of->beside.barriers.end())
        w.fail("there is no barrier at " + hex(address), lane);
    return at->second;
}

void bytes_have_come(block &b, uint32_t barrier, uint32_t bytes)
{
    phase_barrier &at = b.beside.barriers.at(barrier);
    at.bytes -= bytes;
    end_phase_if_due(at);
    b.beside.progress++;
}

std::string state_of_barrier(const block &b, uint32_t address)
{
    const phase_barrier &at = b.beside.barriers.at(address);
    return "phase " + std::to_string(at.phase) + " of the barrier at " + hex(address) + ": " +
           std::to_string(at.missing) + " of " + std::to_string(at.count) + " arrivals and " +
           std::to_string(at.bytes) + " bytes are missing";
}

const std::vector<form> &barrier_forms()
{
    const operand_rule barrier = {operand_rule::ADDRESS, 4}, word = {operand_rule::READ, 4};
    const operand_rule nobody = {operand_rule::SINK, 0};
    static const std::vector<form> all = {
        {"mbarrier.init.shared::cta.b64", {barrier, word}, init},
        {"mbarrier.arrive.shared::cta.b64", {nobody, barrier}, arrive<false>},
        {"mbarrier.arrive.expect_tx.shared::cta.b64", {nobody, barrier, word}, arrive<true>},
        {"mbarrier.try_wait.parity.shared::cta.b64",
         {{operand_rule::WRITTEN, 1}, barrier, word},
         try_wait},
        {"fence.proxy.async.shared::cta", {}, fence},
    };
    return all;
}

} // namespace ptx
