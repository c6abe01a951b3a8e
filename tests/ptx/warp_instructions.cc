/* What a warp does together. The fragments of ldmatrix and mma.sync are those of the figures in
 * "Parallel Thread Execution ISA" (9.7.15, "Matrix Fragments for mma.m16n8k16 with floating point
 * type", and "ldmatrix"): whole matrices are put together from the lanes' registers by those
 * formulas, multiplied, and taken apart. Their order of sums is not specified: k goes up, each
 * product is added with a rounding, as in kernels/cuda/matrix.h's twin, so that a difference tells
 * of operands, addresses and predicates. */
#include "tests/ptx/warp.h"

namespace ptx
{
namespace
{

enum { ROWS = 16, COLUMNS = 8, DEPTH = 16, MATRIX = 8 };

float bf16_at(uint32_t pair, int which)
{
    return value_of<float>((uint64_t)(pair >> 16 * which & 0xffff) << 16);
}

/* {d0..d3}, {a0..a3}, {b0, b1}, {c0..c3}; .row.col. Register n has elements 2n and 2n + 1. */
void mma(warp &w, const instruction &i)
{
    const operand *d = i.operands.data(), *a = d + 4, *b = a + 4, *c = b + 2;
    float A[ROWS][DEPTH], B[DEPTH][COLUMNS], D[ROWS][COLUMNS];
    auto row_of_c = [](int group, int e) { return e < 2 ? group : group + 8; };
    auto column_of_c = [](int in_group, int e) { return 2 * in_group + (e & 1); };
    for (int lane = 0; lane < LANES; lane++) {
        int group = lane >> 2, in_group = lane % 4;
        for (int e = 0; e < 8; e++) { /* a_e */
            int row = e < 2 || (e >= 4 && e < 6) ? group : group + 8;
            int column = in_group * 2 + (e & 1) + (e >= 4 ? 8 : 0);
            A[row][column] = bf16_at((uint32_t)w.get(a[e / 2], lane), e % 2);
        }
        for (int e = 0; e < 4; e++) { /* b_e */
            int row = in_group * 2 + (e & 1) + (e >= 2 ? 8 : 0);
            B[row][group] = bf16_at((uint32_t)w.get(b[e / 2], lane), e % 2);
        }
        for (int e = 0; e < 4; e++) /* c_e */
            D[row_of_c(group, e)][column_of_c(in_group, e)] = value_of<float>(w.get(c[e], lane));
    }
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < DEPTH; k++)
            for (int column = 0; column < COLUMNS; column++)
                D[row][column] += A[row][k] * B[k][column];
    for (int lane = 0; lane < LANES; lane++)
        for (int e = 0; e < 4; e++)
            w.put(d[e], lane, bits_of(D[row_of_c(lane >> 2, e)][column_of_c(lane % 4, e)]));
}

/* Lane 8 n + r gives the address of row r of matrix n: 16 bytes, aligned. Lane l gets of row l / 4
 * the columns 2 (l % 4) and the next; .trans: of the transposed matrix. */
template <bool TRANSPOSED> void ldmatrix_x4(warp &w, const instruction &i)
{
    uint16_t matrices[4][MATRIX][MATRIX];
    for (int lane = 0; lane < LANES; lane++) {
        uint64_t address = (uint32_t)w.get(i.operands[4], lane), at = address - SHARED_AT;
        size_t bytes = sizeof matrices[0][0];
        if (address % bytes)
            w.fail("a row of a matrix at " + std::to_string(address) +
                       " in shared memory is no multiple of 16",
                   lane);
        if (at >= w.of->shared.size() || at + bytes > w.of->shared.size())
            w.fail("a row of a matrix at " + std::to_string(address) + " is not in shared memory",
                   lane);
        memcpy(matrices[lane / MATRIX][lane % MATRIX], &w.of->shared[at], bytes);
    }
    for (int lane = 0; lane < LANES; lane++)
        for (int n = 0; n < 4; n++) {
            uint32_t pair = 0;
            for (int half = 0; half < 2; half++) {
                int row = lane / 4, column = 2 * (lane % 4) + half;
                uint32_t x = TRANSPOSED ? matrices[n][column][row] : matrices[n][row][column];
                pair |= x << 16 * half;
            }
            w.put(i.operands[(size_t)n], lane, pair);
        }
}

/* The lanes that a mask names must all be here, and nobody else. */
void check_mask(warp &w, const operand &mask)
{
    lanes_of(w, [&](int lane) {
        uint32_t named = (uint32_t)w.get(mask, lane);
        if (named != w.active)
            w.fail("the mask names other lanes than those that are here", lane);
    });
}

/* d | p, a, b, c, mask */
void shfl_bfly(warp &w, const instruction &i)
{
    const operand *o = i.operands.data();
    check_mask(w, o[5]);
    std::array<uint64_t, LANES> values = {};
    lanes_of(w, [&](int lane) { values[(size_t)lane] = w.get(o[2], lane); });
    lanes_of(w, [&](int lane) {
        uint32_t c = (uint32_t)w.get(o[4], lane), segment = c >> 8 & 31, clamp = c & 31;
        uint32_t most = ((uint32_t)lane & segment) | (clamp & ~segment);
        uint32_t from = (uint32_t)lane ^ ((uint32_t)w.get(o[3], lane) & 31);
        bool inside = from <= most;
        w.put(o[0], lane, values[inside ? from : (uint32_t)lane]);
        w.put(o[1], lane, inside);
    });
}

/* p, a, mask */
void vote_any(warp &w, const instruction &i)
{
    const operand *o = i.operands.data();
    check_mask(w, o[2]);
    bool any = false;
    lanes_of(w, [&](int lane) { any = any || w.get(o[1], lane); });
    lanes_of(w, [&](int lane) { w.put(o[0], lane, any); });
}

void warp_barrier(warp &w, const instruction &i)
{
    check_mask(w, i.operands[0]);
}

std::vector<operand_rule> written_then(unsigned written, std::vector<operand_rule> others)
{
    others.insert(others.begin(), written, {operand_rule::WRITTEN, 4});
    return others;
}

} // namespace

const std::vector<form> &warp_forms()
{
    const operand_rule word = {operand_rule::READ, 4}, predicate = {operand_rule::READ, 1};
    const operand_rule row = {operand_rule::ADDRESS, 4};
    static const std::vector<form> all = {
        {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
         written_then(4, std::vector<operand_rule>(10, word)), mma, form::WHOLE_WARP},
        {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", written_then(4, {row}), ldmatrix_x4<false>,
         form::WHOLE_WARP},
        {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", written_then(4, {row}),
         ldmatrix_x4<true>, form::WHOLE_WARP},
        {"shfl.sync.bfly.b32",
         {{operand_rule::WRITTEN, 4}, {operand_rule::WRITTEN, 1}, word, word, word, word},
         shfl_bfly},
        {"vote.sync.any.pred", {{operand_rule::WRITTEN, 1}, predicate, word}, vote_any},
        {"bar.warp.sync", {word}, warp_barrier},
    };
    return all;
}

} // namespace ptx
