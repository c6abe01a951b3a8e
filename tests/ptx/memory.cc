/* Loads, stores and cp.async. Each address must be within what there is, and a multiple of the
 * access's size, as hardware demands. */
#include "tests/ptx/warp.h"

namespace ptx
{
namespace
{

enum class space { param, shared, global };

/* Where `bytes` at `address` lie; fails if that is nowhere. */
unsigned char *place(warp &w, space in, uint64_t address, unsigned bytes, int lane)
{
    static const char *const names[] = {"parameters", "shared memory", "device memory"};
    grid *g = w.of->of;
    if (in == space::shared)
        address = (uint32_t)address;
    if (address % bytes)
        w.fail(hex(address) + " in " + names[(int)in] + " is no multiple of " +
                   std::to_string(bytes),
               lane);
    if (in == space::global) {
        for (const range &r : g->memory)
            if (address >= (uintptr_t)r.start && address + bytes <= (uintptr_t)r.start + r.bytes)
                return (unsigned char *)address;
    } else {
        auto &all = in == space::param ? g->arguments : w.of->shared;
        uint64_t at = address - (in == space::param ? PARAMETERS_AT : SHARED_AT);
        if (at < all.size() && at + bytes <= all.size())
            return all.data() + at;
    }
    w.fail(std::to_string(bytes) + " bytes at " + hex(address) + " are not in " + names[(int)in],
           lane);
}

template <space IN, typename T, unsigned N> void load(warp &w, const instruction &i)
{
    lanes_of(w, [&](int lane) {
        uint64_t address = w.get(i.operands[N], lane);
        const unsigned char *from = place(w, IN, address, sizeof(T) * N, lane);
        for (unsigned n = 0; n < N; n++) {
            T value;
            memcpy(&value, from + n * sizeof value, sizeof value);
            w.put(i.operands[n], lane, bits_of(value));
        }
    });
}

template <space IN, typename T, unsigned N> void store(warp &w, const instruction &i)
{
    lanes_of(w, [&](int lane) {
        unsigned char *to = place(w, IN, w.get(i.operands[0], lane), sizeof(T) * N, lane);
        for (unsigned n = 0; n < N; n++) {
            T value = value_of<T>(w.get(i.operands[1 + n], lane));
            memcpy(to + n * sizeof value, &value, sizeof value);
        }
    });
}

template <space IN, typename T, unsigned N> form load_row(const char *name)
{
    form f = {name, {}, load<IN, T, N>};
    f.operands.assign(N, {operand_rule::WRITTEN, sizeof(T), true});
    f.operands.push_back({operand_rule::ADDRESS, IN == space::shared ? 4u : 8u});
    return f;
}

template <space IN, typename T, unsigned N> form store_row(const char *name)
{
    form f = {name, {{operand_rule::ADDRESS, IN == space::shared ? 4u : 8u}}, store<IN, T, N>};
    f.operands.insert(f.operands.end(), N, {operand_rule::READ, sizeof(T), true});
    return f;
}

/* [shared], [global], cp-size, src-size: the bytes from src-size on are zeros. Ours are all or
 * none. */
template <unsigned BYTES> void copy(warp &w, const instruction &i)
{
    lanes_of(w, [&](int lane) {
        const operand *o = i.operands.data();
        uint64_t to = w.get(o[0], lane), from = w.get(o[1], lane);
        uint64_t size = w.get(o[2], lane), valid = w.get(o[3], lane);
        if (size != BYTES || (valid != 0 && valid != BYTES))
            w.fail(std::to_string(valid) + " of " + std::to_string(size) + " bytes, not " +
                       std::to_string(BYTES) + " or none of " + std::to_string(BYTES),
                   lane);
        place(w, space::shared, to, BYTES, lane);
        const unsigned char *there = valid ? place(w, space::global, from, BYTES, lane) : nullptr;
        if (from % BYTES)
            w.fail(hex(from) + " is no multiple of " + std::to_string(BYTES), lane);
        w.copies[lane].push_back({to, there, BYTES});
    });
}

void wait_all(warp &w, const instruction &)
{
    lanes_of(w, [&](int lane) {
        for (const pending_copy &c : w.copies[lane]) {
            unsigned char *to = place(w, space::shared, c.shared, c.bytes, lane);
            if (c.from)
                memcpy(to, c.from, c.bytes);
            else
                memset(to, 0, c.bytes);
        }
        w.copies[lane].clear();
    });
}

template <unsigned BYTES> form copy_row(const char *name)
{
    return {name,
            {{operand_rule::ADDRESS, 4},
             {operand_rule::ADDRESS, 8},
             {operand_rule::READ, 4},
             {operand_rule::READ, 4}},
            copy<BYTES>};
}

} // namespace

std::string hex(uint64_t x)
{
    char text[32];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)x);
    return text;
}

unsigned char *shared_place(warp &w, uint64_t address, unsigned bytes, int lane)
{
    return place(w, space::shared, address, bytes, lane);
}

const unsigned char *device_place(warp &w, uint64_t address, unsigned bytes, int lane)
{
    return place(w, space::global, address, bytes, lane);
}

const std::vector<form> &memory_forms()
{
    using enum space;
    static const std::vector<form> all = {
        load_row<param, uint8_t, 1>("ld.param.u8"),
        load_row<param, uint32_t, 1>("ld.param.u32"),
        load_row<param, uint32_t, 2>("ld.param.v2.u32"),
        load_row<param, uint64_t, 1>("ld.param.u64"),
        load_row<param, float, 1>("ld.param.f32"),
        load_row<global, int32_t, 1>("ld.global.s32"),
        load_row<global, uint32_t, 1>("ld.global.u32"),
        load_row<global, float, 1>("ld.global.f32"),
        load_row<global, uint32_t, 4>("ld.global.v4.u32"),
        load_row<shared, float, 1>("ld.shared.f32"),
        load_row<shared, float, 2>("ld.shared.v2.f32"),
        load_row<shared, uint32_t, 1>("ld.shared.u32"),
        load_row<shared, uint32_t, 4>("ld.shared.v4.u32"),
        store_row<global, float, 1>("st.global.f32"),
        store_row<global, uint32_t, 1>("st.global.u32"),
        store_row<global, uint32_t, 4>("st.global.v4.u32"),
        store_row<shared, float, 1>("st.shared.f32"),
        store_row<shared, float, 2>("st.shared.v2.f32"),
        store_row<shared, uint32_t, 1>("st.shared.u32"),
        copy_row<16>("cp.async.cg.shared.global"),
        copy_row<4>("cp.async.ca.shared.global"),
        {"cp.async.wait_all", {}, wait_all},
    };
    return all;
}

} // namespace ptx
