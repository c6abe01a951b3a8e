/* setmaxnreg: warpgroups give registers to the block's pool and take some from there. PTX does not
 * say how many a kernel begins with; ptxas gives it what its launch bounds have room for. */
#include "tests/ptx/warp.h"

#include <algorithm>

namespace ptx
{
namespace
{

enum { OF_MULTIPROCESSOR = 64 * 1024, MOST = 248, FEWEST = 24, STEP = 8 };

template <bool TAKES> void set_registers(warp &w, const instruction &i)
{
    unsigned wanted = (unsigned)w.get(i.operands[0], 0), has = w.registers_each;
    uint64_t &pool = w.of->beside.free_registers;
    if (has == 0)
        w.fail("the kernel has no .maxntid, which says how many registers it begins with");
    if (wanted % STEP || wanted < FEWEST || wanted > 256)
        w.fail(std::to_string(wanted) + " registers, no multiple of 8 from 24 to 256");
    if (TAKES ? wanted < has : wanted > has)
        w.fail("to " + std::to_string(wanted) + " registers from " + std::to_string(has));
    uint64_t change = (uint64_t)LANES * (TAKES ? wanted - has : has - wanted);
    if (TAKES && pool < change) {
        lanes_of(w, [&](int lane) { w.next[lane] = w.at; });
        w.waits = warp::FOR_REGISTERS;
        return;
    }
    pool += TAKES ? -change : change;
    w.registers_each = wanted;
    w.of->beside.progress++;
}

} // namespace

unsigned registers_at_start(const kernel &k)
{
    if (k.most_threads == 0)
        return 0;
    unsigned room = OF_MULTIPROCESSOR / (k.most_threads * k.least_blocks);
    return std::min<unsigned>(MOST, room / STEP * STEP);
}

const std::vector<form> &register_pool_forms()
{
    const operand_rule word = {operand_rule::READ, 4};
    static const std::vector<form> all = {
        {"setmaxnreg.inc.sync.aligned.u32", {word}, set_registers<true>, form::WHOLE_WARP},
        {"setmaxnreg.dec.sync.aligned.u32", {word}, set_registers<false>, form::WHOLE_WARP},
    };
    return all;
}

} // namespace ptx
