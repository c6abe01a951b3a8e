/* Runs a grid: block after block, the warps of a block in turns, each until it waits, the lanes of
 * a warp together as long as they are at the same instruction. Of lanes that have parted those that
 * are farthest back go on, so they meet again. */
#include "tests/ptx/warp.h"

#include <algorithm>

namespace ptx
{
namespace
{

/* Of a block's warps together. More is an endless loop. */
enum : uint64_t { MOST_INSTRUCTIONS = 5'000'000 };

void branch(warp &w, const instruction &i)
{
    lanes_of(w, [&](int lane) { w.next[lane] = (int64_t)i.operands[0].constant; });
}

void leave(warp &w, const instruction &)
{
    lanes_of(w, [&](int lane) { w.next[lane] = warp::DONE; });
}

void barrier(warp &w, const instruction &)
{
    w.waits = warp::AT_BARRIER;
}

void set_special(warp *w, const std::string &name, const unsigned values[3])
{
    static const char *const axes[] = {".x", ".y", ".z"};
    const kernel &k = *w->of->of->program;
    for (int axis = 0; axis < 3; axis++) {
        auto at = k.special.find(name + axes[axis]);
        for (int lane = 0; at != k.special.end() && lane < LANES; lane++)
            w->put({at->second}, lane, values[axis]);
    }
}

warp make_warp(block *b, unsigned first)
{
    const grid &g = *b->of;
    const kernel &k = *g.program;
    warp w = {};
    w.of = b;
    w.first_thread = first;
    w.registers.resize(k.registers.size());
    w.written.resize(k.registers.size());
    w.registers_each = registers_at_start(k);
    w.products.sums.resize(k.registers.size());
    w.products.factors.resize(k.registers.size());
    w.products.changed.resize(k.registers.size());
    set_special(&w, "%ctaid", b->index);
    set_special(&w, "%ntid", g.threads);
    set_special(&w, "%nctaid", g.blocks);
    auto lane_number = k.special.find("%laneid");
    for (int lane = 0; lane < LANES; lane++) {
        unsigned t = first + (unsigned)lane, *size = b->of->threads;
        const unsigned place[3] = {t % size[0], t / size[0] % size[1], t / size[0] / size[1]};
        static const char *const names[] = {"%tid.x", "%tid.y", "%tid.z"};
        for (int axis = 0; axis < 3; axis++)
            if (auto at = k.special.find(names[axis]); at != k.special.end())
                w.put({at->second}, lane, place[axis]);
        if (lane_number != k.special.end())
            w.put({lane_number->second}, lane, (uint64_t)lane);
        w.next[lane] = t < size[0] * size[1] * size[2] ? 0 : (int64_t)warp::DONE;
    }
    return w;
}

/* Registers that the lanes read must have been written by them. */
void check_reads(warp &w, const instruction &i)
{
    auto check = [&](int reg) {
        uint32_t missing = reg < 0 ? 0 : w.active & ~w.written[(size_t)reg];
        if (missing)
            w.fail(w.of->of->program->registers[(size_t)reg].name + " is read and was not written",
                   __builtin_ctz(missing));
    };
    check(i.guard);
    for (size_t n = 0; n < i.operands.size(); n++)
        if (auto how = i.what->operands[n].how;
            how != operand_rule::WRITTEN && how != operand_rule::LATER)
            check(i.operands[n].reg);
}

/* One instruction, of the lanes that are farthest back. False: all have ended. */
bool step(warp &w)
{
    grid *g = w.of->of;
    w.at = *std::min_element(w.next, w.next + LANES);
    if (w.at == warp::DONE)
        return false;
    if ((size_t)w.at >= g->program->code.size())
        throw fault(g->program->name + ": runs beyond its end");
    const instruction &i = g->program->code[(size_t)w.at];
    uint32_t here = 0, alive = 0;
    for (int lane = 0; lane < LANES; lane++) {
        here |= (uint32_t)(w.next[lane] == w.at) << lane;
        alive |= (uint32_t)(w.next[lane] != warp::DONE) << lane;
        w.next[lane] += w.next[lane] == w.at;
    }
    w.active = here;
    check_products(w, i);
    check_reads(w, i);
    for (int lane = 0; i.guard >= 0 && lane < LANES; lane++)
        if ((w.get({i.guard}, lane) != 0) == i.guard_negated)
            w.active &= ~(1u << lane);
    if (i.what->lanes == form::WHOLE_WARP && w.active != 0xffffffff)
        w.fail("only some lanes of the warp come here");
    if (i.what->run == barrier && w.active != alive)
        w.fail("only some lanes of the warp come to this barrier");
    if (w.active)
        i.what->run(w, i);
    g->executed[(size_t)w.at]++;
    return true;
}

/* Each warp goes on until it waits or has ended; those at the block's barrier stay there. Returns
 * how many wait for what: [warp::NOTHING] are those that have ended. */
std::array<size_t, 4> take_turns(std::vector<warp> &warps, uint64_t *steps)
{
    std::array<size_t, 4> waiting = {};
    for (warp &w : warps) {
        int64_t before = w.at;
        if (w.waits != warp::AT_BARRIER)
            w.waits = warp::NOTHING;
        while (!w.waits && step(w))
            if (++*steps > MOST_INSTRUCTIONS)
                w.fail("the block has run " + std::to_string(*steps) + " instructions");
        w.of->beside.progress += w.at != before;
        waiting[w.waits]++;
    }
    return waiting;
}

/* No warp can go on, and nothing is to come. */
[[noreturn]] void fail_stuck(const std::vector<warp> &warps)
{
    const warp *first = nullptr;
    std::vector<std::string> reasons;
    for (const warp &w : warps) {
        if (w.waits != warp::FOR_PHASE && w.waits != warp::FOR_REGISTERS)
            continue;
        std::string reason =
            w.waits == warp::FOR_PHASE
                ? state_of_barrier(*w.of, w.waits_at)
                : "the pool has " + std::to_string(w.of->beside.free_registers) + " registers";
        first = first ? first : &w;
        if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
            reasons.push_back(reason);
    }
    std::string all = reasons[0];
    for (size_t i = 1; i < reasons.size(); i++)
        all += "; " + reasons[i];
    first->fail("no warp can go on: " + all);
}

void check_end(const block &b, const std::vector<warp> &warps)
{
    if (!b.beside.copies.empty())
        throw fault(b.of->program->name + ": a block ends while a copy is under way");
    for (const warp &w : warps)
        if (!w.products.open.empty() || !w.products.groups.empty())
            throw fault(b.of->program->name + ": a block ends while a product is under way");
}

/* Until all warps have ended. A copy lands when none goes on any more. */
void run_block(block *b)
{
    grid *g = b->of;
    unsigned threads = g->threads[0] * g->threads[1] * g->threads[2];
    std::vector<warp> warps;
    for (unsigned t = 0; t < threads; t += LANES)
        warps.push_back(make_warp(b, t));
    for (uint64_t steps = 0;;) {
        uint64_t before = b->beside.progress;
        std::array<size_t, 4> waiting = take_turns(warps, &steps);
        if (waiting[warp::NOTHING] == warps.size())
            return check_end(*b, warps);
        if (waiting[warp::AT_BARRIER] == warps.size())
            for (warp &w : warps)
                w.waits = warp::NOTHING;
        else if (waiting[warp::AT_BARRIER] + waiting[warp::NOTHING] == warps.size())
            throw fault(g->program->name + ": " + std::to_string(waiting[warp::NOTHING]) +
                        " warps have ended where others wait at a barrier");
        else if (b->beside.progress == before && b->beside.copies.empty())
            fail_stuck(warps);
        else if (b->beside.progress == before)
            land_copy(*b);
    }
}

} // namespace

void warp::fail(const std::string &why, int lane) const
{
    const kernel &k = *of->of->program;
    const instruction &i = k.code[(size_t)at];
    std::string who = "block " + std::to_string(of->index[0]) + ", ";
    who += lane < 0 ? "warp " + std::to_string(first_thread / LANES)
                    : "thread " + std::to_string(first_thread + (unsigned)lane);
    throw fault(k.file + ":" + std::to_string(i.line) + ": " + i.what->name + ": " + why + " (" +
                who + ")");
}

const std::vector<form> &control_forms()
{
    static const std::vector<form> all = {
        {"bra", {{operand_rule::LABEL, 0}}, branch},
        {"bra.uni", {{operand_rule::LABEL, 0}}, branch},
        {"ret", {}, leave},
        {"bar.sync", {{operand_rule::READ, 4}}, barrier},
    };
    return all;
}

void run_grid(grid *g)
{
    const kernel &k = *g->program;
    if (g->arguments.size() != k.parameter_bytes)
        throw fault(k.name + ": takes " + std::to_string(k.parameter_bytes) +
                    " bytes of arguments, here are " + std::to_string(g->arguments.size()));
    g->executed.assign(k.code.size(), 0);
    block b = {g, {}, {}, {}};
    unsigned *at = b.index;
    for (at[2] = 0; at[2] < g->blocks[2]; at[2]++)
        for (at[1] = 0; at[1] < g->blocks[1]; at[1]++)
            for (at[0] = 0; at[0] < g->blocks[0]; at[0]++) {
                b.shared.assign(g->dynamic_shared_bytes, 0xff); /* NaNs */
                b.beside = {};
                run_block(&b);
            }
}

} // namespace ptx
