/* Instructions that each lane does by itself, on registers: a C++ function each. Floats are rounded
 * to the nearest, as PTX does without another word, and subnormal numbers are kept.
 *
 * Two rules follow the emulated GPU (tests/emulation), which the results are compared with:
 *  - fma.rn.f32 rounds twice. nvcc makes it of a product and a sum wherever they meet, the
 *    emulation's compiler does not. Both ways are right, but only one is comparable bit for bit.
 *  - ex2.approx is exp2f(): PTX states an error (2 units in the last place), no bits. */
#include "tests/ptx/warp.h"

#include <cfloat>
#include <cmath>
#include <limits>
#include <type_traits>

namespace ptx
{
namespace
{

using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
using f32 = float;
using b1 = bool;

/* A row of the table for F(sources) -> destination. */
template <auto F> struct lanes;
template <typename D, typename... S, D (*F)(S...)> struct lanes<F> {
    static void run(warp &w, const instruction &i)
    {
        run(w, i, std::index_sequence_for<S...>());
    }
    template <size_t... N> static void run(warp &w, const instruction &i, std::index_sequence<N...>)
    {
        const operand *o = i.operands.data();
        lanes_of(w, [&](int lane) {
            w.put(o[0], lane, bits_of(F(value_of<S>(w.get(o[N + 1], lane))...)));
        });
    }
};
template <typename D, typename... S> form row_of(const char *name, D (*)(S...), bool converts)
{
    return {name,
            {{operand_rule::WRITTEN, sizeof(D), converts},
             {operand_rule::READ, sizeof(S), converts}...},
            nullptr};
}
template <auto F> form row(const char *name)
{
    bool converts = strncmp(name, "cvt.", 4) == 0;
    form f = row_of(name, F, converts);
    f.run = lanes<F>::run;
    return f;
}

/* ---- whole numbers: sums wrap, and so unsigned types make them ---- */

template <typename T> T add(T a, T b)
{
    return (T)(a + b);
}
template <typename T> T sub(T a, T b)
{
    return (T)(a - b);
}
template <typename T> T mul_lo(T a, T b)
{
    return (T)(a * b);
}
template <typename T> T mad_lo(T a, T b, T c)
{
    return (T)(a * b + c);
}
s64 mul_wide_s32(s32 a, s32 b)
{
    return (s64)a * b;
}
u64 mul_wide_u32(u32 a, u32 b)
{
    return (u64)a * b;
}
/* Division by 0 is "an unspecified machine-specific value": it is all ones on today's GPUs. */
template <typename T> T divide(T a, T b)
{
    if (b == 0)
        return (T)-1;
    return b == (T)-1 && std::is_signed_v<T> ? (T)(0 - (std::make_unsigned_t<T>)a) : (T)(a / b);
}
template <typename T> T neg(T a)
{
    return (T)(0 - a);
}
template <typename T> T smaller(T a, T b)
{
    return b < a ? b : a;
}
template <typename T> T larger(T a, T b)
{
    return a < b ? b : a;
}

/* Shifts beyond the width leave 0, or the sign. */
template <typename T> T shl(T a, u32 by)
{
    return by >= 8 * sizeof(T) ? 0 : (T)(a << by);
}
template <typename T> T shr(T a, u32 by)
{
    u32 most = 8 * sizeof(T) - 1;
    if (by > most && std::is_unsigned_v<T>)
        return 0;
    return (T)(a >> (by > most ? most : by));
}
template <typename T> T bit_and(T a, T b)
{
    return a & b;
}
template <typename T> T bit_or(T a, T b)
{
    return a | b;
}
template <typename T> T bit_xor(T a, T b)
{
    return a ^ b;
}
template <typename T> T bit_not(T a)
{
    return ~a;
}
b1 pred_not(b1 a)
{
    return !a;
}
/* Of b, with `length` bits of a from bit `from` on. */
template <typename T> T bfi(T a, T b, u32 from, u32 length)
{
    u32 width = 8 * sizeof(T);
    from &= 0xff, length &= 0xff;
    T mask = length >= width ? (T)-1 : (T)(((T)1 << length) - 1);
    mask = shl(mask, from);
    return (b & ~mask) | (shl(a, from) & mask);
}

/* ---- floats ---- */

f32 fma_rounded_twice(f32 a, f32 b, f32 c)
{
    volatile f32 product = a * b; /* no compiler joins them either */
    return product + c;
}
/* A NaN loses, and -0 is less than 0. */
f32 max_f32(f32 a, f32 b)
{
    if (a == 0 && b == 0)
        return std::signbit(a) ? b : a;
    return std::isnan(a) ? b : std::isnan(b) ? a : a < b ? b : a;
}
f32 neg_f32(f32 a)
{
    return -a;
}
f32 mul_f32(f32 a, f32 b)
{
    return a * b;
}
f32 rcp_f32(f32 a)
{
    return 1 / a;
}
/* .ftz: what is subnormal is 0, with its sign. */
f32 flushed(f32 a)
{
    return std::fabs(a) < FLT_MIN ? std::copysign(0.0f, a) : a;
}
f32 ex2_ftz(f32 a)
{
    return flushed(exp2f(flushed(a)));
}

/* ---- comparisons: with a NaN only the u forms are true ---- */

template <typename T> b1 eq(T a, T b)
{
    return a == b;
}
template <typename T> b1 ne(T a, T b)
{
    return a != b;
}
template <typename T> b1 lt(T a, T b)
{
    return a < b;
}
template <typename T> b1 le(T a, T b)
{
    return a <= b;
}
template <typename T> b1 gt(T a, T b)
{
    return a > b;
}
template <typename T> b1 ge(T a, T b)
{
    return a >= b;
}
b1 neu(f32 a, f32 b)
{
    return !(a == b);
}
b1 leu(f32 a, f32 b)
{
    return !(a > b);
}
template <typename T> T selp(T a, T b, b1 p)
{
    return p ? a : b;
}

/* ---- moves and conversions ---- */

template <typename T> T move(T a)
{
    return a;
}
template <typename D, typename S> D convert(S a)
{
    return (D)a;
}

/* To the nearest bf16, of two the even one; any NaN is 0x7fff. */
u16 bf16_of(f32 x)
{
    u32 bits = value_of<u32>(bits_of(x));
    if (std::isnan(x))
        return 0x7fff;
    u32 below = bits & 0xffff, kept = bits >> 16;
    return (u16)(kept + (below > 0x8000 || (below == 0x8000 && (kept & 1))));
}
/* The first operand becomes the upper half. */
u32 bf16x2(f32 upper, f32 lower)
{
    return (u32)bf16_of(upper) << 16 | bf16_of(lower);
}

const std::vector<form> rows = {
    row<add<u32>>("add.s32"),
    row<add<u64>>("add.s64"),
    row<add<f32>>("add.f32"),
    row<add<f32>>("add.rn.f32"),
    row<sub<u32>>("sub.s32"),
    row<sub<u64>>("sub.s64"),
    row<sub<f32>>("sub.f32"),
    row<mul_lo<u32>>("mul.lo.s32"),
    row<mul_lo<u64>>("mul.lo.s64"),
    row<mul_wide_s32>("mul.wide.s32"),
    row<mul_wide_u32>("mul.wide.u32"),
    row<mul_f32>("mul.f32"),
    row<mul_f32>("mul.rn.f32"),
    row<mad_lo<u32>>("mad.lo.s32"),
    row<fma_rounded_twice>("fma.rn.f32"),
    row<divide<u32>>("div.u32"),
    row<divide<s64>>("div.s64"),
    row<rcp_f32>("rcp.rn.f32"),
    row<ex2_ftz>("ex2.approx.ftz.f32"),
    row<neg<u32>>("neg.s32"),
    row<neg<u64>>("neg.s64"),
    row<neg_f32>("neg.f32"),
    row<smaller<s32>>("min.s32"),
    row<smaller<s64>>("min.s64"),
    row<larger<s64>>("max.s64"),
    row<max_f32>("max.f32"),
    row<shl<u32>>("shl.b32"),
    row<shl<u64>>("shl.b64"),
    row<shr<u32>>("shr.u32"),
    row<shr<u64>>("shr.u64"),
    row<shr<s32>>("shr.s32"),
    row<shr<s64>>("shr.s64"),
    row<bit_and<u32>>("and.b32"),
    row<bit_and<u64>>("and.b64"),
    row<bit_and<b1>>("and.pred"),
    row<bit_or<u32>>("or.b32"),
    row<bit_or<u64>>("or.b64"),
    row<bit_or<b1>>("or.pred"),
    row<bit_xor<u32>>("xor.b32"),
    row<bit_xor<u64>>("xor.b64"),
    row<bit_not<u32>>("not.b32"),
    row<bit_not<u64>>("not.b64"),
    row<pred_not>("not.pred"),
    row<bfi<u32>>("bfi.b32"),
    row<bfi<u64>>("bfi.b64"),
    row<eq<u16>>("setp.eq.s16"),
    row<ne<u16>>("setp.ne.s16"),
    row<gt<s16>>("setp.gt.s16"),
    row<eq<u32>>("setp.eq.s32"),
    row<eq<u32>>("setp.eq.b32"),
    row<ne<u32>>("setp.ne.s32"),
    row<ne<u32>>("setp.ne.b32"),
    row<lt<s32>>("setp.lt.s32"),
    row<le<s32>>("setp.le.s32"),
    row<gt<s32>>("setp.gt.s32"),
    row<ge<s32>>("setp.ge.s32"),
    row<lt<u32>>("setp.lt.u32"),
    row<le<u32>>("setp.le.u32"),
    row<gt<u32>>("setp.gt.u32"),
    row<ge<u32>>("setp.ge.u32"),
    row<eq<u64>>("setp.eq.s64"),
    row<ne<u64>>("setp.ne.s64"),
    row<lt<s64>>("setp.lt.s64"),
    row<le<s64>>("setp.le.s64"),
    row<gt<s64>>("setp.gt.s64"),
    row<ge<s64>>("setp.ge.s64"),
    row<lt<u64>>("setp.lt.u64"),
    row<eq<f32>>("setp.eq.f32"),
    row<lt<f32>>("setp.lt.f32"),
    row<gt<f32>>("setp.gt.f32"),
    row<ge<f32>>("setp.ge.f32"),
    row<neu>("setp.neu.f32"),
    row<leu>("setp.leu.f32"),
    row<selp<u32>>("selp.b32"),
    row<selp<u32>>("selp.u32"),
    row<selp<u64>>("selp.b64"),
    row<selp<u64>>("selp.u64"),
    row<selp<f32>>("selp.f32"),
    row<move<u32>>("mov.u32"),
    row<move<u32>>("mov.b32"),
    row<move<u64>>("mov.u64"),
    row<move<u64>>("mov.b64"),
    row<move<f32>>("mov.f32"),
    row<move<u64>>("cvta.to.global.u64"), /* device memory has the same addresses in both */
    row<move<u64>>("cvta.param.u64"),     /* and so have parameters: nothing else lies there */
    row<convert<s64, s32>>("cvt.s64.s32"),
    row<convert<u64, u32>>("cvt.u64.u32"),
    row<convert<u32, u64>>("cvt.u32.u64"),
    row<convert<u16, u32>>("cvt.u16.u32"),
    row<convert<f32, s32>>("cvt.rn.f32.s32"),
    row<bf16x2>("cvt.rn.bf16x2.f32"),
};

} // namespace

const std::vector<form> &arithmetic_forms()
{
    return rows;
}

} // namespace ptx
