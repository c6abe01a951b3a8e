/* CUDA's C++ for kernels, as a C++ compiler can take it: built-in variables, vector types,
 * barriers, shuffles, votes, atomics and arithmetic. A block's threads are fibers of one host
 * thread (tests/emulation/block.cc), so an atomic is an ordinary operation, and whoever reads
 * shared memory without a barrier before it reads what is not written yet. */
#ifndef SHOAL_TESTS_EMULATION_INCLUDE_KERNEL_H
#define SHOAL_TESTS_EMULATION_INCLUDE_KERNEL_H

#ifdef __cplusplus
#include <cuda_runtime.h>

#include <functional>
#include <math.h>
#include <string.h>
#include <tuple>
#include <type_traits>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

/* ---- vector types ---- */

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};
#define EMULATION_VECTORS(type, name)                                                              \
    struct alignas(2 * sizeof(type)) name##2                                                       \
    {                                                                                              \
        type x, y;                                                                                 \
    };                                                                                             \
    struct alignas(4 * sizeof(type) > 16 ? 16 : 4 * sizeof(type)) name##4                          \
    {                                                                                              \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    static inline name##2 make_##name##2(type x, type y)                                           \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                           \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }
EMULATION_VECTORS(float, float)
EMULATION_VECTORS(double, double)
EMULATION_VECTORS(int, int)
EMULATION_VECTORS(unsigned, uint)
EMULATION_VECTORS(short, short)
EMULATION_VECTORS(unsigned short, ushort)
EMULATION_VECTORS(unsigned char, uchar)
#undef EMULATION_VECTORS

/* ---- where a thread is ---- */

extern uint3 threadIdx, blockIdx; /* of the fiber that runs */
extern dim3 blockDim, gridDim;
enum { warpSize = 32 };

/* ---- launches ---- */

namespace emulation
{

/* A place in the sources. */
struct site {
    const char *file;
    int line;
};

/* A kernel with its arguments, ready to run once per thread. */
struct launch {
    const char *kernel;
    const void *function;
    site from;
    dim3 grid, block;
    size_t shared_bytes;
    std::function<void()> thread;
    std::vector<unsigned char> arguments; /* as they lie in memory, each aligned to its type */
};

cudaError_t launch_on(cudaStream_t stream, launch work);
cudaError_t has_code(); /* for the GPU's architecture */

template <typename T> void append_argument(std::vector<unsigned char> &all, const T &argument)
{
    size_t at = (all.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    all.resize(at + sizeof argument);
    memcpy(all.data() + at, (const void *)&argument, sizeof argument);
}

template <typename... Parameters, typename... Arguments>
cudaError_t launch_kernel(cudaStream_t stream, const char *name, site from, dim3 grid, dim3 block,
                          size_t shared_bytes, void (*kernel)(Parameters...),
                          const Arguments &...arguments)
{
    std::tuple<std::decay_t<Parameters>...> held(arguments...);
    std::vector<unsigned char> bytes;
    std::apply([&](const auto &...each) { (append_argument(bytes, each), ...); }, held);
    return launch_on(stream, {name, (const void *)kernel, from, grid, block, shared_bytes,
                              [kernel, held] { std::apply(kernel, held); }, std::move(bytes)});
}

/* The block's dynamic shared memory, 16-byte aligned and full of NaNs when the block starts. */
void *dynamic_shared();
/* A thread comes to static shared memory: the block's first fills it with NaNs. name: the
 * variable's. *block: which one that was, the memory's own. */
void static_shared(void *memory, size_t bytes, const char *name, uint64_t *block);

/* All 32 threads of the warp come here, at the same site, each with `bytes` (<= WARP_SLOT_BYTES) at
 * `mine`. Lane i's are then at the result + i * WARP_SLOT_BYTES, until the warp's next call but
 * one. */
enum { WARP_SLOT_BYTES = 256 };
const unsigned char *warp_exchange(unsigned mask, const void *mine, size_t bytes, site at);

/* What a matrix-unit instruction's twin needs: each lane's value. */
template <typename T> struct warp_values {
    const unsigned char *slots;
    T operator[](int lane) const
    {
        T value;
        memcpy(&value, slots + lane * WARP_SLOT_BYTES, sizeof value);
        return value;
    }
};
template <typename T>
warp_values<T> warp_gather(const T &mine, const char *file = __builtin_FILE(),
                           int line = __builtin_LINE())
{
    static_assert(sizeof(T) <= WARP_SLOT_BYTES && std::is_trivially_copyable_v<T>);
    return {warp_exchange(0xffffffffu, &mine, sizeof mine, {file, line})};
}

/* All threads of the block come here, at the same site; the result counts whose `value` is not
 * 0. */
int block_barrier(int value, site at);
int lane();

/* The kernel fails, and its GPU with it. Does not return. */
[[noreturn]] void trap(site at);

/* What the thread does between these two is atomic (tests/emulation/races.h). */
void atomic_begin(site at);
void atomic_end();

} // namespace emulation

struct cudaFuncAttributes {
    int numRegs;
};
template <typename... P> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, void (*)(P...))
{
    a->numRegs = 0;
    return emulation::has_code();
}

#define CUDA_BLOCK(type, name, ...) /* blocks run one after the other */                           \
    static type name __VA_ARGS__;                                                                  \
    static uint64_t name##_block;                                                                  \
    emulation::static_shared((void *)&name, sizeof name, #name, &name##_block)
#define CUDA_SHARED(type, name) type *name = (type *)emulation::dynamic_shared()
#define CUDA_LAUNCH(s, kernel, grid, block, shared_bytes, ...)                                     \
    do {                                                                                           \
        auto kernel_ = (kernel);                                                                   \
        if ((shared_bytes) > CUDA_SHARED_AT_ONCE)                                                  \
            cuda_share((s), (const void *)kernel_, (shared_bytes), #kernel);                       \
        cudaError_t status_ =                                                                      \
            emulation::launch_kernel(cuda_captured(s), #kernel, {__FILE__, __LINE__}, dim3(grid),  \
                                     dim3(block), (size_t)(shared_bytes), kernel_, __VA_ARGS__);   \
        cudaError_t last_ = cudaGetLastError(); /* another call's, if nobody took it */            \
        cuda_check((s), status_ != cudaSuccess ? status_ : last_, #kernel);                        \
    } while (0)

/* ---- barriers, shuffles, votes ---- */

#define EMULATION_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

static inline void __trap(EMULATION_HERE)
{
    emulation::trap({file, line});
}
static inline void __threadfence_system()
{
}

static inline void __syncthreads(EMULATION_HERE)
{
    emulation::block_barrier(0, {file, line});
}
static inline int __syncthreads_count(int value, EMULATION_HERE)
{
    return emulation::block_barrier(value, {file, line});
}
static inline int __syncthreads_or(int value, EMULATION_HERE)
{
    return emulation::block_barrier(value, {file, line}) != 0;
}
static inline int __syncthreads_and(int value, EMULATION_HERE)
{
    return emulation::block_barrier(!value, {file, line}) == 0;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATION_HERE)
{
    emulation::warp_exchange(mask, "", 0, {file, line});
}

namespace emulation
{
template <typename T> T shuffle(unsigned mask, T value, int from, site at)
{
    static_assert(sizeof(T) <= 8);
    const unsigned char *slots = warp_exchange(mask, &value, sizeof value, at);
    memcpy(&value, slots + from * WARP_SLOT_BYTES, sizeof value);
    return value;
}
} // namespace emulation

template <typename T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32, EMULATION_HERE)
{
    int mine = emulation::lane();
    return emulation::shuffle(mask, value, (mine & ~(width - 1)) | (from & (width - 1)),
                              {file, line});
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, EMULATION_HERE)
{
    int mine = emulation::lane(), from = mine ^ bits;
    bool inside = (from & ~(width - 1)) <= (mine & ~(width - 1));
    return emulation::shuffle(mask, value, inside ? from : mine, {file, line});
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATION_HERE)
{
    int mine = emulation::lane();
    bool inside = (mine & (width - 1)) + (int)delta < width;
    return emulation::shuffle(mask, value, inside ? mine + (int)delta : mine, {file, line});
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATION_HERE)
{
    int mine = emulation::lane();
    bool inside = (mine & (width - 1)) >= (int)delta;
    return emulation::shuffle(mask, value, inside ? mine - (int)delta : mine, {file, line});
}
static inline unsigned __ballot_sync(unsigned mask, int value, EMULATION_HERE)
{
    const unsigned char *slots = emulation::warp_exchange(mask, &value, sizeof value, {file, line});
    unsigned votes = 0;
    for (int i = 0; i < 32; i++) {
        int vote;
        memcpy(&vote, slots + i * emulation::WARP_SLOT_BYTES, sizeof vote);
        votes |= (unsigned)(vote != 0) << i;
    }
    return votes;
}
static inline int __any_sync(unsigned mask, int value, EMULATION_HERE)
{
    return __ballot_sync(mask, value, file, line) != 0;
}
static inline int __all_sync(unsigned mask, int value, EMULATION_HERE)
{
    return __ballot_sync(mask, value, file, line) == 0xffffffffu;
}
static inline void __threadfence()
{
}
static inline void __threadfence_block()
{
}

/* ---- atomics: they return what was there ---- */

#define EMULATION_ATOMIC(name, changed)                                                            \
    template <typename T> T name(T *at, std::common_type_t<T> value, EMULATION_HERE)               \
    {                                                                                              \
        emulation::atomic_begin({file, line});                                                     \
        T old = *at;                                                                               \
        *at = (changed);                                                                           \
        emulation::atomic_end();                                                                   \
        return old;                                                                                \
    }
EMULATION_ATOMIC(atomicAdd, (T)(old + value))
EMULATION_ATOMIC(atomicSub, (T)(old - value))
EMULATION_ATOMIC(atomicMax, old > value ? old : value)
EMULATION_ATOMIC(atomicMin, old < value ? old : value)
EMULATION_ATOMIC(atomicOr, (T)(old | value))
EMULATION_ATOMIC(atomicAnd, (T)(old &value))
EMULATION_ATOMIC(atomicExch, value)
#undef EMULATION_ATOMIC
template <typename T>
T atomicCAS(T *at, std::common_type_t<T> expected, std::common_type_t<T> value, EMULATION_HERE)
{
    emulation::atomic_begin({file, line});
    T old = *at;
    if (old == expected)
        *at = value;
    emulation::atomic_end();
    return old;
}

#undef EMULATION_HERE

/* ---- arithmetic ---- */

template <typename T> constexpr T min(T a, T b)
{
    return b < a ? b : a;
}
template <typename T> constexpr T max(T a, T b)
{
    return a < b ? b : a;
}
static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
/* macros: glibc declares these names for itself */
#define __expf expf
static inline float __fadd_rn(float x, float y)
{
    return x + y;
}
static inline float __fmul_rn(float x, float y)
{
    return x * y;
}
#define __logf logf
#define __sinf sinf
#define __cosf cosf
static inline float __fdividef(float x, float y)
{
    return x / y;
}
static inline void sincospif(float x, float *sine, float *cosine)
{
    double angle = 3.14159265358979323846 * (double)x;
    *sine = (float)sin(angle);
    *cosine = (float)cos(angle);
}
#define EMULATION_BITS(name, from, to)                                                             \
    static inline to name(from x)                                                                  \
    {                                                                                              \
        to y;                                                                                      \
        static_assert(sizeof x == sizeof y);                                                       \
        memcpy(&y, &x, sizeof y);                                                                  \
        return y;                                                                                  \
    }
EMULATION_BITS(__float_as_uint, float, unsigned)
EMULATION_BITS(__uint_as_float, unsigned, float)
EMULATION_BITS(__float_as_int, float, int)
EMULATION_BITS(__int_as_float, int, float)
#undef EMULATION_BITS
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
template <typename T> T __ldg(const T *p)
{
    return *p;
}

#include "tests/emulation/include/hopper.h" /* the last: it needs what is above */
#endif
#endif
