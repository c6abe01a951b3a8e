/* cp.async.bulk: copies by TMA, of bytes as they lie and of boxes with the swizzle of 128 bytes
 * ("Parallel Thread Execution ISA", "Tensors"). Of a tensor map only its owner knows the bits:
 * NVIDIA's driver, and here the emulated one (map_fields). */
#include "tests/emulation/async_block.h"
#include "tests/ptx/warp.h"

namespace ptx
{
namespace
{

enum { RANK = 4, ELEMENT = 2, ROW_BYTES = 128, MAP_ALIGN = 64, CHUNK = 16 };

emulation::map_fields fields_of(const bulk_copy &c)
{
    emulation::map_fields fields;
    memcpy((void *)&fields, c.map.data(), sizeof fields);
    return fields;
}

uint32_t box_bytes(const emulation::map_fields &m)
{
    return m.box[0] * m.box[1] * m.box[2] * m.box[3] * ELEMENT;
}

void ask(warp &w, const bulk_copy &c, int lane)
{
    if (!find_barrier(w, c.barrier, lane).is_fenced)
        w.fail("TMA need not see the barrier at " + hex(c.barrier) + ": no fence since it was made",
               lane);
    w.of->beside.copies.push_back(c);
    w.of->beside.progress++;
}

/* [to], [from], bytes, [barrier] */
void copy_plain(warp &w, const instruction &i)
{
    lanes_of(w, [&](int lane) {
        const operand *o = i.operands.data();
        bulk_copy c = {};
        uint64_t from = w.get(o[1], lane);
        c.to = (uint32_t)w.get(o[0], lane);
        c.bytes = (uint32_t)w.get(o[2], lane);
        c.barrier = (uint32_t)w.get(o[3], lane);
        if (c.bytes == 0 || c.bytes % CHUNK)
            w.fail("a copy of " + std::to_string(c.bytes) + " bytes, no multiple of 16", lane);
        c.from = device_place(w, from, CHUNK, lane);
        for (uint32_t at = 0; at < c.bytes; at += CHUNK) {
            device_place(w, from + at, CHUNK, lane);
            shared_place(w, c.to + at, CHUNK, lane);
        }
        ask(w, c, lane);
    });
}

/* [to], [map, {column, head, row, sequence}], [barrier] */
void copy(warp &w, const instruction &i)
{
    lanes_of(w, [&](int lane) {
        const operand *o = i.operands.data();
        bulk_copy c = {};
        c.to = (uint32_t)w.get(o[0], lane);
        c.barrier = (uint32_t)w.get(o[2 + RANK], lane);
        for (int axis = 0; axis < RANK; axis++)
            c.place[axis] = (int32_t)w.get(o[2 + axis], lane);
        uint64_t map = w.get(o[1], lane) - PARAMETERS_AT;
        const std::vector<unsigned char> &parameters = w.of->of->arguments;
        if (map >= parameters.size() || map + c.map.size() > parameters.size())
            w.fail("no parameter is where the tensor map is to be", lane);
        memcpy(c.map.data(), parameters.data() + map, c.map.size());
        if (map % MAP_ALIGN || fields_of(c).magic != emulation::MAP_MAGIC)
            w.fail("what is no tensor map, or no multiple of 64, is taken for one", lane);
        if (c.to % ROW_BYTES)
            w.fail("a copy to " + hex(c.to) + ", which is no multiple of 128", lane);
        c.bytes = box_bytes(fields_of(c));
        shared_place(w, c.to, 1, lane);
        shared_place(w, c.to + c.bytes - 1, 1, lane);
        ask(w, c, lane);
    });
}

/* NULL: outside of the tensor, where zeros are. */
const unsigned char *element_at(const emulation::map_fields &m, const int64_t (&place)[RANK])
{
    const unsigned char *at = m.memory;
    for (int axis = 0; axis < RANK; axis++) {
        if (place[axis] < 0 || (uint64_t)place[axis] >= m.sizes[axis])
            return nullptr;
        at += place[axis] * (axis ? (int64_t)m.strides[axis - 1] : (int64_t)ELEMENT);
    }
    return at;
}

/* The first axis goes fastest; 64 of its elements are a row of shared memory. */
void land_box(block &b, const bulk_copy &c)
{
    emulation::map_fields m = fields_of(c);
    for (uint32_t n = 0; n < c.bytes / ELEMENT; n++) {
        int64_t place[RANK], left = n;
        for (int axis = 0; axis < RANK; axis++) {
            place[axis] = c.place[axis] + left % m.box[axis];
            left /= m.box[axis];
        }
        const unsigned char *from = element_at(m, place);
        unsigned char *to = &b.shared[swizzled(c.to + n * ELEMENT) - SHARED_AT];
        if (from)
            memcpy(to, from, ELEMENT);
        else
            memset(to, 0, ELEMENT);
    }
}

} // namespace

void land_copy(block &b)
{
    bulk_copy c = b.beside.copies.back();
    b.beside.copies.pop_back();
    if (c.from)
        memcpy(&b.shared[c.to - SHARED_AT], c.from, c.bytes);
    else
        land_box(b, c);
    bytes_have_come(b, c.barrier, c.bytes);
}

const std::vector<form> &bulk_copy_forms()
{
    const operand_rule word = {operand_rule::READ, 4}, shared = {operand_rule::ADDRESS, 4};
    static const std::vector<form> all = {
        {"cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
         {shared, {operand_rule::ADDRESS, 8}, word, word, word, word, shared},
         copy},
        {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
         {shared, {operand_rule::ADDRESS, 8}, word, shared},
         copy_plain},
    };
    return all;
}

} // namespace ptx
