/* wgmma: products of four warps, which run beside them ("Parallel Thread Execution ISA",
 * "Asynchronous Warpgroup Level Matrix Instructions"). D's and A's registers are read when the
 * product is made, which is when its group is waited for.
 *
 * Where a factor's elements lie in shared memory is told by CuTe's canonical layouts, which that
 * book has, too ("Canonical Layouts"; include/cute/atom/mma_traits_sm90_gmma.hpp): for the swizzle
 * of 128 bytes, in elements of which eight are T,
 *   by what is summed over  ((8, m), (T, 2)) : ((8 T, SBO), (1, T))
 *   transposed              ((T, 8, m), (8, 2)) : ((1, T, LBO), (8 T, SBO))
 * Sums go up in k and round each time, as mma.sync's do (warp_instructions.cc). */
#include "tests/ptx/warp.h"

namespace ptx
{
namespace
{

enum { ROWS = 16, DEPTH = 16, WARPS = 4, T = 8, ELEMENT = 2, GROUP_THREADS = 128 };

/* ---- descriptors ("Matrix Descriptor Format") ---- */

struct matrix {
    uint32_t start, leading, stride; /* bytes */
    bool is_transposed;
};

uint64_t bits(uint64_t of, int first, int last)
{
    return of >> first & ((1ull << (last - first + 1)) - 1);
}

matrix matrix_of(warp &w, uint64_t descriptor, bool is_transposed)
{
    const uint64_t swizzle_128 = 1;
    std::string what = "descriptor " + hex(descriptor) + ": ";
    if (bits(descriptor, 14, 15) || bits(descriptor, 30, 31) || bits(descriptor, 46, 48) ||
        bits(descriptor, 52, 61))
        w.fail(what + "bits that are to be 0 are not");
    if (bits(descriptor, 62, 63) != swizzle_128 || bits(descriptor, 49, 51))
        w.fail(what + "not the swizzle of 128 bytes from a multiple of 1024 on");
    return {(uint32_t)bits(descriptor, 0, 13) << 4, (uint32_t)bits(descriptor, 16, 29) << 4,
            (uint32_t)bits(descriptor, 32, 45) << 4, is_transposed};
}

/* i counts A's rows or B's columns, k what is summed over. */
float element(warp &w, const matrix &m, int i, int k)
{
    int in_elements, in_strides, in_leadings = 0;
    if (m.is_transposed) {
        in_elements = i % T + i / T % 8 * T + k % 8 * 8 * T;
        in_leadings = i / T / 8;
        in_strides = k / 8;
    } else {
        in_elements = i % 8 * 8 * T + k % T + k / T * T;
        in_strides = i / 8;
    }
    uint32_t at = m.start + (uint32_t)in_elements * ELEMENT + (uint32_t)in_strides * m.stride +
                  (uint32_t)in_leadings * m.leading;
    uint16_t half;
    memcpy(&half, shared_place(w, swizzled(at), ELEMENT, -1), sizeof half);
    return value_of<float>((uint64_t)half << 16);
}

/* ---- registers ---- */

const std::string &name_of(const warp &w, const operand &o)
{
    return w.of->of->program->registers[(size_t)o.reg].name;
}

/* A product may have it: whoever wrote it said so by a fence. */
void check_fence(warp &w, const operand &o)
{
    const product_state &p = w.products;
    if (p.fenced_at == 0)
        w.fail("no wgmma.fence comes before");
    if (p.changed[(size_t)o.reg] > p.fenced_at)
        w.fail(name_of(w, o) + " was written since the last wgmma.fence");
}

void check_written(warp &w, const operand &o)
{
    if (w.written[(size_t)o.reg] != 0xffffffff)
        w.fail(name_of(w, o) + " is read and was not written");
}

/* The whole warp's. */
uint64_t same_of(warp &w, const operand &o)
{
    for (int lane = 1; lane < LANES; lane++)
        if (w.get(o, lane) != w.get(o, 0))
            w.fail("lanes have other descriptors, or other predicates", lane);
    return w.get(o, 0);
}

/* All four warps ask for the same. */
void check_warpgroup(warp &w, const std::array<uint64_t, 4> &mine)
{
    size_t group = w.first_thread / GROUP_THREADS;
    const unsigned *threads = w.of->of->threads;
    if ((group + 1) * GROUP_THREADS > threads[0] * threads[1] * threads[2])
        w.fail("a product by less than four warps");
    auto &all = w.of->beside.products;
    all.resize(std::max(all.size(), group + 1));
    if (w.products.asked == all[group].size())
        all[group].push_back(mine);
    if (all[group][w.products.asked++] != mine)
        w.fail("warps of a group ask for other products");
}

/* ---- products: {d}, a, b, scale-d, imm-scale-a, imm-scale-b, imm-trans of those in shared memory;
 * a is {a0..a3} or a descriptor ---- */

template <int N, bool IN_REGISTERS> struct product {
    enum {
        A = N / 2,
        B = A + (IN_REGISTERS ? 4 : 1),
        ADDS,
        SCALE_A,
        SCALE_B,
        TRANSPOSED,
        OF_A = 4
    };

    static form row();
    static void ask(warp &w, const instruction &i);
    static void make(warp &w, const pending_product &p);

  private:
    static void hold(warp &w, const instruction &i, int change);
    static int scale(warp &w, const operand &o);
    static bool is_transposed(const warp &w, const instruction &i, int factor);
    static void read_a(warp &w, const instruction &i, uint64_t a, float (&values)[ROWS][DEPTH]);
};

template <int N, bool IN_REGISTERS> form product<N, IN_REGISTERS>::row()
{
    form f = {"wgmma.mma_async.sync.aligned.m64n" + std::to_string(N) + "k16.f32.bf16.bf16",
              {},
              ask,
              form::WHOLE_WARP};
    auto add = [&](size_t count, operand_rule rule) {
        f.operands.insert(f.operands.end(), count, rule);
    };
    add(A, {operand_rule::LATER, 4});
    add(IN_REGISTERS ? OF_A : 1,
        IN_REGISTERS ? operand_rule{operand_rule::LATER, 4} : operand_rule{operand_rule::READ, 8});
    add(1, {operand_rule::READ, 8});
    add(1, {operand_rule::READ, 1});
    add(IN_REGISTERS ? 3 : 4, {operand_rule::READ, 4});
    return f;
}

/* Its registers are under way from now on (1), or no more (-1). */
template <int N, bool IN_REGISTERS>
void product<N, IN_REGISTERS>::hold(warp &w, const instruction &i, int change)
{
    for (int n = 0; n < A; n++)
        w.products.sums[(size_t)i.operands[n].reg] += (uint16_t)change;
    for (int n = A; IN_REGISTERS && n < B; n++)
        w.products.factors[(size_t)i.operands[n].reg] += (uint16_t)change;
}

template <int N, bool IN_REGISTERS> int product<N, IN_REGISTERS>::scale(warp &w, const operand &o)
{
    int by = (int)w.get(o, 0);
    if (by != 1 && by != -1)
        w.fail("a factor is taken times " + std::to_string(by) + ", not 1 or -1");
    return by;
}

/* factor: 0 is A. */
template <int N, bool IN_REGISTERS>
bool product<N, IN_REGISTERS>::is_transposed(const warp &w, const instruction &i, int factor)
{
    return w.get(i.operands[TRANSPOSED + factor - (IN_REGISTERS ? 1 : 0)], 0) != 0;
}

template <int N, bool IN_REGISTERS>
void product<N, IN_REGISTERS>::ask(warp &w, const instruction &i)
{
    const operand *o = i.operands.data();
    pending_product p = {w.at, IN_REGISTERS ? 0 : same_of(w, o[A]), same_of(w, o[B]),
                         same_of(w, o[ADDS]) != 0, make};
    check_warpgroup(w, {(uint64_t)w.at, p.a, p.b, p.adds});
    for (int n = 0; n < A; n++) {
        check_fence(w, o[n]);
        if (w.products.factors[(size_t)o[n].reg])
            w.fail(name_of(w, o[n]) + " is a factor of a product under way");
        if (p.adds && !w.products.sums[(size_t)o[n].reg])
            check_written(w, o[n]);
    }
    for (int n = A; IN_REGISTERS && n < B; n++) {
        check_fence(w, o[n]);
        check_written(w, o[n]);
        if (w.products.sums[(size_t)o[n].reg])
            w.fail(name_of(w, o[n]) + " is a sum of a product under way");
    }
    hold(w, i, 1);
    w.products.open.push_back(p);
}

/* "Register Fragments", of m64k16: a lane has of rows lane / 4 and that + 8 two columns each, from
 * 2 (lane % 4) and from that + 8 on. */
template <int N, bool IN_REGISTERS>
void product<N, IN_REGISTERS>::read_a(warp &w, const instruction &i, uint64_t a,
                                      float (&values)[ROWS][DEPTH])
{
    const operand *o = i.operands.data();
    int sign = scale(w, o[SCALE_A]);
    for (int lane = 0; IN_REGISTERS && lane < LANES; lane++)
        for (int e = 0; e < 8; e++) {
            uint64_t pair = w.get(o[A + e / 2], lane);
            int row = lane / 4 + (e / 2 % 2 ? 8 : 0), k = lane % 4 * 2 + e % 2 + (e >= 4 ? 8 : 0);
            values[row][k] = (float)sign * value_of<float>((pair >> 16 * (e % 2) & 0xffff) << 16);
        }
    if (IN_REGISTERS)
        return;
    matrix m = matrix_of(w, a, is_transposed(w, i, 0));
    int first = (int)(w.first_thread / LANES % WARPS) * ROWS;
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < DEPTH; k++)
            values[row][k] = (float)sign * element(w, m, first + row, k);
}

/* A lane's register d of n64, n128, ...: row lane / 4 or that + 8, column 8 (d / 4) + 2 (lane % 4)
 * or the next. */
template <int N, bool IN_REGISTERS>
void product<N, IN_REGISTERS>::make(warp &w, const pending_product &p)
{
    const instruction &i = w.of->of->program->code[(size_t)p.at];
    const operand *o = i.operands.data();
    float a[ROWS][DEPTH], b[DEPTH][N], d[ROWS][N] = {};
    auto row_of = [](int lane, int n) { return lane / 4 + (n % 4 < 2 ? 0 : 8); };
    auto column_of = [](int lane, int n) { return n / 4 * 8 + lane % 4 * 2 + n % 2; };
    read_a(w, i, p.a, a);
    matrix m = matrix_of(w, p.b, is_transposed(w, i, 1));
    int sign = scale(w, o[SCALE_B]);
    for (int k = 0; k < DEPTH; k++)
        for (int column = 0; column < N; column++)
            b[k][column] = (float)sign * element(w, m, column, k);
    for (int lane = 0; p.adds && lane < LANES; lane++)
        for (int n = 0; n < A; n++)
            d[row_of(lane, n)][column_of(lane, n)] = value_of<float>(w.get(o[n], lane));
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < DEPTH; k++)
            for (int column = 0; column < N; column++)
                d[row][column] += a[row][k] * b[k][column];
    for (int lane = 0; lane < LANES; lane++)
        for (int n = 0; n < A; n++)
            w.put(o[n], lane, bits_of(d[row_of(lane, n)][column_of(lane, n)]));
    hold(w, i, -1);
}

/* ---- groups ---- */

void fence(warp &w, const instruction &)
{
    w.products.fenced_at = w.products.clock;
}

void commit(warp &w, const instruction &)
{
    w.products.groups.push_back(std::move(w.products.open));
    w.products.open.clear();
}

void wait_group(warp &w, const instruction &i)
{
    std::deque<std::vector<pending_product>> &groups = w.products.groups;
    int64_t here = w.at;
    for (uint64_t left = w.get(i.operands[0], 0); groups.size() > left; groups.pop_front())
        for (const pending_product &p : groups.front()) {
            w.at = p.at; /* whose fault it is */
            p.make(w, p);
        }
    w.at = here;
}

} // namespace

void check_products(warp &w, const instruction &i)
{
    product_state &p = w.products;
    p.clock++;
    for (size_t n = 0; n < i.operands.size(); n++) {
        const operand &o = i.operands[n];
        auto how = i.what->operands[n].how;
        if (o.reg < 0 || how == operand_rule::LATER)
            continue;
        bool is_written = how == operand_rule::WRITTEN;
        if (p.sums[(size_t)o.reg] || (is_written && p.factors[(size_t)o.reg]))
            w.fail(name_of(w, o) + " of a product under way is " +
                   (is_written ? "written" : "read"));
        if (is_written)
            p.changed[(size_t)o.reg] = p.clock;
    }
}

const std::vector<form> &warpgroup_forms()
{
    static const std::vector<form> all = {
        product<64, true>::row(),
        product<128, true>::row(),
        product<64, false>::row(),
        product<128, false>::row(),
        {"wgmma.fence.sync.aligned", {}, fence, form::WHOLE_WARP},
        {"wgmma.commit_group.sync.aligned", {}, commit, form::WHOLE_WARP},
        {"wgmma.wait_group.sync.aligned", {{operand_rule::READ, 4}}, wait_group, form::WHOLE_WARP},
    };
    return all;
}

} // namespace ptx
