/* The twins of kernels/cuda/hopper.h for fibers. A warp's lanes meet at each that is `.aligned`;
 * its first lane then speaks for them. */
#include "tests/emulation/async_calls.h"
#include "tests/emulation/async_block.h"

#include <list>
#include <memory>

namespace emulation
{
namespace
{

enum { WARP = 32, SHARED_AT = 1024 + 16 /* the driver's, and what else may come before */ };
const unsigned ALL_LANES = 0xffffffff;
const uint32_t poison = 0x7fc0dead; /* a NaN */

/* A lane's sums, and factors, of products under way. */
struct lane_sums {
    uint64_t key;
    float *d;
    int count;
};
struct lane_factor {
    const uint32_t *at;
    uint32_t was[4];
    uint64_t group;
};
struct lane_state {
    std::list<lane_sums> sums;
    std::list<lane_factor> factors;
    uint64_t groups = 0;
    uint32_t waits_at;
};

struct {
    unsigned char *shared;
    std::unique_ptr<async_block> beside;
    std::vector<lane_state> lanes;
    std::vector<std::vector<async_sums>> done; /* of each warp: what its first lane has got */
    std::string why; /* the last fault: a stopped thread's own would never be freed */
} &now = *new std::remove_reference_t<decltype(now)>();

/* f(), whose fault is the running thread's. */
template <typename F> void attempt(site at, F f)
{
    try {
        f();
        return;
    } catch (const async_fault &fault) {
        now.why = fault.what();
    }
    stop_thread(now.why.c_str(), at);
}

unsigned running_warp()
{
    return running_thread() / WARP;
}

void look_if_over(uint64_t before)
{
    if (now.beside->phases_over != before)
        look_at_phases();
}

/* Where a lane's sum is in its warp's [16, n]: see hopper.h. */
size_t place_of(int lane_number, int n, int sum)
{
    int row = lane_number / 4 + 8 * (sum / 2 % 2), column = sum / 4 * 8 + 2 * (lane_number % 4);
    return (size_t)(row * n + column + sum % 2);
}

/* They are as multiply() left them. */
bool is_poison(const lane_sums &s)
{
    for (int i = 0; i < s.count; i++) {
        uint32_t bits;
        memcpy(&bits, s.d + i, sizeof bits);
        if (bits != poison)
            return false;
    }
    return true;
}

/* All lanes are here, each with its sums `d`; what they have if those are not under way. */
void ask(const async_product &p, float *d, site at)
{
    lane_state &mine = now.lanes[running_thread()];
    int count = p.n / 2;
    warp_values<float *> names = {warp_exchange(ALL_LANES, &d, sizeof d, at)};
    uint64_t key = (uint64_t)(uintptr_t)names[0];
    const unsigned char *slots = warp_exchange(ALL_LANES, d, (size_t)count * sizeof *d, at);
    if (lane() == 0)
        attempt(at, [&] {
            std::vector<float> all((size_t)(async_product::ROWS * p.n));
            for (int from = 0; from < WARP; from++)
                for (int i = 0; i < count; i++)
                    memcpy(&all[place_of(from, p.n, i)],
                           slots + from * WARP_SLOT_BYTES + (size_t)i * sizeof *d, sizeof *d);
            now.beside->multiply(running_warp(), p, key, all);
        });
    for (const lane_sums &s : mine.sums)
        if (s.d == d)
            return;
    for (int i = 0; i < count; i++)
        memcpy(d + i, &poison, sizeof *d);
    mine.sums.push_back({key, d, count});
}

} // namespace

uint32_t shared_address(const void *shared)
{
    return SHARED_AT + (uint32_t)((const unsigned char *)shared - now.shared);
}

void async_begin_block(unsigned char *shared, size_t bytes, unsigned threads)
{
    now.shared = shared;
    now.beside = std::make_unique<async_block>(shared, bytes, SHARED_AT, threads);
    now.lanes.assign(threads, {});
    now.done.assign((threads + WARP - 1) / WARP, {});
}

void async_end_block()
{
    try {
        now.beside->end();
    } catch (const async_fault &fault) {
        fail_kernel(fault.what());
    }
}

void async_block_barrier()
{
    now.beside->block_barrier();
}

bool async_land(random_numbers *random)
{
    size_t count = now.beside->copies_under_way();
    if (count == 0)
        return false;
    uint64_t before = now.beside->phases_over;
    try {
        now.beside->land(random->below((unsigned)count));
    } catch (const async_fault &fault) {
        fail_kernel(fault.what());
    }
    look_if_over(before);
    return true;
}

std::string async_waits_for(int thread)
{
    return now.beside->state_of(now.lanes[(size_t)thread].waits_at);
}

/* ---- barriers and copies ---- */

void barrier_init(const uint64_t *barrier, int count, site at)
{
    attempt(at,
            [&] { now.beside->init(running_thread(), shared_address(barrier), (unsigned)count); });
}

void barriers_made(site at)
{
    if (!is_left_out(at))
        now.beside->made(running_thread());
}

void barrier_arrive(const uint64_t *barrier, int bytes, site at)
{
    if (is_left_out(at))
        return;
    uint64_t before = now.beside->phases_over;
    attempt(at, [&] {
        now.beside->arrive(running_thread(), shared_address(barrier), (unsigned)bytes);
    });
    look_if_over(before);
}

void barrier_wait(const uint64_t *barrier, int parity, site at)
{
    uint32_t address = shared_address(barrier);
    if (is_left_out(at))
        return;
    now.lanes[running_thread()].waits_at = address;
    for (bool is_over = false; !is_over;) {
        attempt(at, [&] {
            is_over = now.beside->is_over(running_thread(), address, (unsigned)parity);
        });
        if (!is_over)
            wait_for_phase(at);
    }
}

void copy_tile(void *to, const void *map, const int (&place)[4], const uint64_t *barrier, site at)
{
    if (is_left_out(at))
        return;
    attempt(at, [&] {
        now.beside->copy(running_thread(), shared_address(to), map, place, shared_address(barrier));
    });
}

void copy_plain(void *to, const void *from, int bytes, const uint64_t *barrier, site at)
{
    const auto *first = (const unsigned char *)from;
    bool is_there = false;
    if (is_left_out(at))
        return;
    for (const memory_range &r : memory_ranges())
        is_there = is_there || (first >= r.start && first + bytes <= r.start + r.bytes);
    if (!is_there)
        stop_thread("a copy from where no device memory is", at);
    attempt(at, [&] {
        now.beside->copy_plain(running_thread(), shared_address(to), first, (uint32_t)bytes,
                               shared_address(barrier));
    });
}

void reads_brought(const void *x, int bytes, site at)
{
    attempt(at, [&] { now.beside->read(running_thread(), shared_address(x), (uint32_t)bytes); });
}

/* ---- products ---- */

void products_fence(site at)
{
    warp_exchange(ALL_LANES, &at.line, sizeof at.line, at);
    if (!is_left_out(at))
        now.beside->fence(running_warp());
}

void products_commit(site at)
{
    warp_exchange(ALL_LANES, &at.line, sizeof at.line, at);
    if (is_left_out(at))
        return;
    now.lanes[running_thread()].groups++;
    if (lane() == 0)
        now.beside->commit(running_warp());
}

void products_wait(int left, site at)
{
    if (is_left_out(at))
        return;
    lane_state &mine = now.lanes[running_thread()];
    std::vector<async_sums> &done = now.done[running_warp()];
    for (const lane_sums &s : mine.sums)
        if (!is_poison(s))
            stop_thread("sums of a product under way were written", at);
    for (auto f = mine.factors.begin(); f != mine.factors.end();)
        if (f->group + (uint64_t)left >= mine.groups) {
            f++;
        } else {
            if (memcmp(f->at, f->was, sizeof f->was) != 0)
                stop_thread("a factor of a product under way was written", at);
            f = mine.factors.erase(f);
        }
    warp_exchange(ALL_LANES, &left, sizeof left, at);
    if (lane() == 0)
        attempt(at, [&] { done = now.beside->wait(running_warp(), (unsigned)left); });
    warp_exchange(ALL_LANES, &left, sizeof left, at);
    for (const async_sums &sums : done)
        mine.sums.remove_if([&](const lane_sums &s) {
            if (s.key != sums.key)
                return false;
            for (int i = 0; i < s.count; i++)
                s.d[i] = sums.d[place_of(lane(), sums.n, i)];
            return true;
        });
    warp_exchange(ALL_LANES, &left, sizeof left, at);
}

void multiply(float *d, int n, uint64_t a, uint64_t b, bool adds, site at)
{
    ask({false, {}, a, b, false, n, adds}, d, at);
}

void multiply_rows(float *d, int n, const uint32_t (&a)[4], uint64_t b, site at)
{
    struct registers {
        uint32_t of[4];
    } mine = {{a[0], a[1], a[2], a[3]}};
    warp_values<registers> all = {warp_exchange(ALL_LANES, &mine, sizeof mine, at)};
    async_product p = {true, {}, 0, b, true, n, true};
    for (int from = 0; from < WARP; from++)
        for (int i = 0; i < 8; i++) {
            int row = from / 4 + 8 * (i / 2 % 2), k = 2 * (from % 4) + i % 2 + 8 * (i / 4);
            uint32_t bits = all[from].of[i / 2] >> 16 * (i % 2) << 16;
            memcpy(&p.values[row][k], &bits, sizeof bits);
        }
    lane_state &state = now.lanes[running_thread()];
    state.factors.push_back({a, {a[0], a[1], a[2], a[3]}, state.groups});
    ask(p, d, at);
}

/* ---- tensor maps ---- */

cudaError_t encode_tensor_map(void *map, int type, uint32_t rank, const void *memory,
                              const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                              const uint32_t *steps, int interleave, int swizzle, int,
                              int out_of_bounds)
{
    enum { BFLOAT16 = 9, SWIZZLE_128B = 3, RANK = 4, ROW_BYTES = 128, ELEMENT = 2, MOST_BOX = 256 };
    map_fields fields = {MAP_MAGIC, (const unsigned char *)memory, {}, {}, {}};
    uint64_t last = ELEMENT, before = ELEMENT;
    if (type != BFLOAT16 || rank != RANK || interleave || swizzle != SWIZZLE_128B ||
        out_of_bounds || (uintptr_t)map % 64 || (uintptr_t)memory % 16 ||
        box[0] * ELEMENT != ROW_BYTES)
        return noted(cudaErrorInvalidValue);
    for (uint32_t i = 0; i < RANK; i++) {
        uint64_t stride = i ? strides[i - 1] : (uint64_t)ELEMENT;
        if (sizes[i] < 1 || sizes[i] > 1ull << 32 || box[i] < 1 || box[i] > MOST_BOX ||
            steps[i] != 1 || stride % before || (i && stride % 16) || stride >= 1ull << 40)
            return noted(cudaErrorInvalidValue);
        before = stride;
        last += (sizes[i] - 1) * stride;
        fields.sizes[i] = sizes[i];
        fields.box[i] = box[i];
        if (i)
            fields.strides[i - 1] = stride;
    }
    for (const memory_range &r : memory_ranges())
        if (fields.memory >= r.start && fields.memory + last <= r.start + r.bytes) {
            memcpy(map, &fields, sizeof fields);
            return cudaSuccess;
        }
    return noted(cudaErrorInvalidValue);
}

} // namespace emulation
