/* Instructions of compute capability 9.0 that CUDA C++ has no words for: barriers in shared memory,
 * copies of tiles by the tensor memory accelerator (TMA), and products by whole warpgroups. Each
 * has a twin for the emulation (tests/emulation/async_block.h). Nothing here knows what is
 * multiplied. Names in quotes are sections of NVIDIA, "Parallel Thread Execution ISA". The
 * instructions are of sm_90a alone: code for other GPUs stops where one of them would be, and
 * attention_hopper_is_built() says whether there is code of sm_90a.
 *
 * Tiles in shared memory are [rows, 64] of bf16, 128 bytes a row, from a multiple of 1024 on, with
 * the swizzle of 128 bytes: 16 bytes `chunk` of a row lie at chunk XOR row % 8. TMA writes it so
 * ("Swizzling Modes") and products read it so ("Shared Memory Matrix Layout" of wgmma). What is
 * wider is several such tiles, one behind the other. */
#ifndef SHOAL_KERNELS_CUDA_HOPPER_H
#define SHOAL_KERNELS_CUDA_HOPPER_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/tensor_map.h"

#ifdef __cplusplus

/* The statement, which needs sm_90a. Elsewhere it is read and not compiled. */
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HOPPER_UNITS(...)                                                                          \
    do {                                                                                           \
        if constexpr (false)                                                                       \
            __VA_ARGS__;                                                                           \
        __trap();                                                                                  \
    } while (0)
#else
#define HOPPER_UNITS(...) __VA_ARGS__
#endif

/* A kernel's parameter whose address is taken: it stays where TMA finds it. clang 14, which only
 * reads this, does not know the word. */
#ifdef __clang__
#define HOPPER_PARAMETER const
#else
#define HOPPER_PARAMETER const __grid_constant__
#endif

constexpr int HOPPER_COLUMNS = 64; /* of a tile */
constexpr int HOPPER_TILE_ALIGN = 1024;
constexpr int HOPPER_GROUP = 128; /* threads of a warpgroup: four warps, the first a multiple of
                                     four */
constexpr int HOPPER_ROWS = 64;   /* of a warpgroup's product */
constexpr int HOPPER_DEPTH = 16;  /* of one instruction's product */

#ifdef SHOAL_EMULATION
#define HOPPER_HERE   const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define HOPPER_HERE_C , HOPPER_HERE
#define HOPPER_SITE                                                                                \
    {                                                                                              \
        file, line                                                                                 \
    }
#else
#define HOPPER_HERE
#define HOPPER_HERE_C
#endif

/* An address in the window of shared memory ("Shared State Space"), as the instructions take it. */
__device__ inline uint32_t hopper_address(const void *shared)
{
#ifndef SHOAL_EMULATION
    return (uint32_t)__cvta_generic_to_shared(shared);
#else
    return emulation::shared_address(shared);
#endif
}

/* ---- barriers ("mbarrier"): phase after phase, numbered from 0. A phase is over when `count`
 * threads have arrived and all bytes that were expected have come. ---- */

/* One thread. The others, and TMA, see it after hopper_barriers_made() and a __syncthreads(). */
__device__ inline void hopper_barrier_init(uint64_t *barrier, int count HOPPER_HERE_C)
{
#ifndef SHOAL_EMULATION
    HOPPER_UNITS(asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(hopper_address(barrier)), "r"(count)
        : "memory"));
#else
    emulation::barrier_init(barrier, count, HOPPER_SITE);
#endif
}

/* fence.proxy.async ("membar/fence"): what the thread wrote is there for TMA, too. */
__device__ inline void hopper_barriers_made(HOPPER_HERE)
{
#ifndef SHOAL_EMULATION
    HOPPER_UNITS(asm volatile("fence.proxy.async.shared::cta;" ::: "memory"));
#else
    emulation::barriers_made(HOPPER_SITE);
#endif
}

/* The thread arrives ("mbarrier.arrive"); what it did is seen by those who wait for the phase. */
__device__ inline void hopper_arrive(uint64_t *barrier HOPPER_HERE_C)
{
#ifndef SHOAL_EMULATION
    HOPPER_UNITS(
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(hopper_address(barrier))
                     : "memory"));
#else
    emulation::barrier_arrive(barrier, 0, HOPPER_SITE);
#endif
}

/* The same, and so many bytes more are to come by hopper_copy() in this phase. */
__device__ inline void hopper_expect(uint64_t *barrier, int bytes HOPPER_HERE_C)
{
#ifndef SHOAL_EMULATION
    HOPPER_UNITS(asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(hopper_address(barrier)),
        "r"(bytes)
        : "memory"));
#else
    emulation::barrier_arrive(barrier, bytes, HOPPER_SITE);
#endif
}

/* Waits until the phase is over whose number is odd or even as `phase` is, the current one or the
 * one before ("mbarrier.try_wait"): of a new barrier the one before 0 is over. */
__device__ inline void hopper_wait(uint64_t *barrier, int phase HOPPER_HERE_C)
{
#ifndef SHOAL_EMULATION
    uint32_t over = 0;
    do
        HOPPER_UNITS(asm volatile("{\n"
                                  ".reg .pred over;\n"
                                  "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                                  "selp.u32 %0, 1, 0, over;\n"
                                  "}"
                                  : "=r"(over)
                                  : "r"(hopper_address(barrier)), "r"(phase & 1)
                                  : "memory"));
    while (!over);
#else
    emulation::barrier_wait(barrier, phase & 1, HOPPER_SITE);
#endif
}

/* ---- copies ---- */

/* cp.async.bulk.tensor: brings the map's box from (column, head, row, sequence) on
 * to the tile `to`; rows that the tensor does not have become zeros. Its bytes count for the
 * barrier's current phase. One thread. The map is a HOPPER_PARAMETER. */
__device__ inline void hopper_copy(bf16 *to, const struct tensor_map *map, int column, int head,
                                   int row, int sequence, uint64_t *barrier HOPPER_HERE_C)
{
#ifndef SHOAL_EMULATION
    HOPPER_UNITS(asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx"
        "::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(hopper_address(to)),
        "l"(map), "r"(column), "r"(head), "r"(row), "r"(sequence), "r"(hopper_address(barrier))
        : "memory"));
#else
    const int at[] = {column, head, row, sequence};
    emulation::copy_tile(to, map, at, barrier, HOPPER_SITE);
#endif
}

/* cp.async.bulk: brings `bytes` as they lie in device memory, both 16-byte aligned, as many as a
 * multiple of 16. They count for the barrier's current phase. One thread. */
__device__ inline void hopper_copy_plain(void *to, const void *from, int bytes,
                                         uint64_t *barrier HOPPER_HERE_C)
{
#ifndef SHOAL_EMULATION
    HOPPER_UNITS(asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                              "[%0], [%1], %2, [%3];" ::"r"(hopper_address(to)),
                              "l"(__cvta_generic_to_global(from)), "r"(bytes),
                              "r"(hopper_address(barrier))
                              : "memory"));
#else
    emulation::copy_plain(to, from, bytes, barrier, HOPPER_SITE);
#endif
}

/* `bytes` at x that a copy has brought, which the thread reads from now on until it next arrives
 * anywhere: nothing but a check of the emulation's. */
template <typename T> __device__ inline const T *hopper_brought(const T *x, int bytes HOPPER_HERE_C)
{
#ifndef SHOAL_EMULATION
    (void)bytes;
#else
    emulation::reads_brought(x, bytes, HOPPER_SITE);
#endif
    return x;
}

/* ---- registers ---- */

/* setmaxnreg: the warpgroup's threads keep COUNT registers and give others back, or wait until
 * there are as many and take them. COUNT: a multiple of 8. */
template <bool TAKES, int COUNT> __device__ inline void hopper_set_registers()
{
    static_assert(COUNT % 8 == 0 && COUNT >= 24 && COUNT <= 256, "as the instruction has it");
#ifndef SHOAL_EMULATION
    if constexpr (TAKES)
        HOPPER_UNITS(asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT)));
    else
        HOPPER_UNITS(asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT)));
#endif
}

/* ---- products ("Asynchronous Warpgroup Level Matrix Instructions"): they run beside the
 * warpgroup. All its warps come to each of these. ----
 *
 * D += A B, [64, 16] by [16, N], bf16 with fp32 sums. A warp has 16 rows of D and of A, in the
 * layouts of matrix.h: d[n] holds columns 8 n .. ("Register Fragments and Shared Memory Matrix
 * Layouts", .m64nNk16). */

/* A tile's place and shape, the "Matrix Descriptor Format": bits 0-13 where it begins,
 * 16-29 the leading dimension's stride, 32-45 the stride dimension's, all in 16 bytes; 49-51 the
 * place of the swizzle's pattern, 0 as it begins at a multiple of 1024; 62-63 the swizzle, 1: of
 * 128 bytes. From one eight rows to the next are 1024 bytes, that is the stride. `leading` bytes
 * from one tile to the next matter where rows are what is summed over, in 64 columns or more. */
__device__ inline uint64_t hopper_matrix(const bf16 *tile, int leading)
{
    const uint64_t stride = 8 * HOPPER_COLUMNS * sizeof *tile, swizzle_128 = 1;
    return (uint64_t)((hopper_address(tile) & 0x3ffff) >> 4) | (uint64_t)(leading >> 4) << 16 |
           (stride >> 4) << 32 | swizzle_128 << 62;
}

/* The same matrix from `bytes` on: the swizzle goes by addresses, so it holds for a part of a
 * row. */
__device__ inline uint64_t hopper_matrix_on(uint64_t matrix, int bytes)
{
    return matrix + (uint64_t)(bytes >> 4);
}

/* wgmma.fence: what the threads did with registers of a product is done. Before the
 * first product, and whenever they touched sums or factors. */
__device__ inline void hopper_fence(HOPPER_HERE)
{
#ifndef SHOAL_EMULATION
    HOPPER_UNITS(asm volatile("wgmma.fence.sync.aligned;" ::: "memory"));
#else
    emulation::products_fence(HOPPER_SITE);
#endif
}

/* wgmma.commit_group: the products since the last one are a group. */
__device__ inline void hopper_commit(HOPPER_HERE)
{
#ifndef SHOAL_EMULATION
    HOPPER_UNITS(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"));
#else
    emulation::products_commit(HOPPER_SITE);
#endif
}

/* wgmma.wait_group: all groups but the last LEFT are done. Until then nobody may read
 * or write their sums and factors. */
template <int LEFT> __device__ inline void hopper_wait_products(HOPPER_HERE)
{
#ifndef SHOAL_EMULATION
    HOPPER_UNITS(asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"));
#else
    emulation::products_wait(LEFT, HOPPER_SITE);
#endif
}

/* The compiler moves no use of these sums, or factors, from one side of this to the other: it does
 * not know that a fence or a wait is of them. */
template <int N> __device__ inline void hopper_hold(float (&d)[N][4])
{
#ifndef SHOAL_EMULATION
#pragma unroll
    for (int n = 0; n < N; n++)
        asm volatile("" : "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])::"memory");
#else
    (void)d;
#endif
}
template <int N> __device__ inline void hopper_hold(uint32_t (&a)[N][4])
{
#ifndef SHOAL_EMULATION
#pragma unroll
    for (int n = 0; n < N; n++)
        asm volatile("" : "+r"(a[n][0]), "+r"(a[n][1]), "+r"(a[n][2]), "+r"(a[n][3])::"memory");
#else
    (void)a;
#endif
}

#ifndef SHOAL_EMULATION
/* d[n .. n + 4), and all of a product's. */
#define HOPPER_D4(d, n)                                                                            \
    "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3]), "+f"(d[n + 1][0]),                 \
        "+f"(d[n + 1][1]), "+f"(d[n + 1][2]), "+f"(d[n + 1][3]), "+f"(d[n + 2][0]),                \
        "+f"(d[n + 2][1]), "+f"(d[n + 2][2]), "+f"(d[n + 2][3]), "+f"(d[n + 3][0]),                \
        "+f"(d[n + 3][1]), "+f"(d[n + 3][2]), "+f"(d[n + 3][3])
#define HOPPER_D64(d)  HOPPER_D4(d, 0), HOPPER_D4(d, 4)
#define HOPPER_D128(d) HOPPER_D64(d), HOPPER_D4(d, 8), HOPPER_D4(d, 12)
#define HOPPER_NAMES32                                                                             \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "   \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define HOPPER_NAMES64                                                                             \
    HOPPER_NAMES32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, " \
                   "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "   \
                   "%62, %63"
/* wgmma.mma_async: d, a, b, whether d is added to (scale-d), no signs changed, and
 * which factors lie in shared memory by the rows that are summed over (imm-trans). */
#define HOPPER_WGMMA(N, names, a, b, adds, transposed)                                             \
    "{\n"                                                                                          \
    ".reg .pred adds;\n"                                                                           \
    "setp.ne.b32 adds, " adds ", 0;\n"                                                             \
    "wgmma.mma_async.sync.aligned.m64n" N "k16.f32.bf16.bf16 {" names "}, " a ", " b               \
    ", adds, 1, 1" transposed ";\n"                                                                \
    "}"
#endif

/* d = a b^T, or d += it: 64 rows of a and N of b, both [rows, 16] and by rows in shared memory. N:
 * 64 or 128. */
template <int N>
__device__ inline void hopper_multiply(float (&d)[N / 8][4], uint64_t a, uint64_t b,
                                       bool adds HOPPER_HERE_C)
{
    static_assert(N == 64 || N == 128, "those that are needed");
#ifndef SHOAL_EMULATION
    if constexpr (N == 64)
        HOPPER_UNITS(asm volatile(HOPPER_WGMMA("64", HOPPER_NAMES32, "%32", "%33", "%34", ", 0, 0")
                                  : HOPPER_D64(d)
                                  : "l"(a), "l"(b), "r"((int)adds)));
    else
        HOPPER_UNITS(asm volatile(HOPPER_WGMMA("128", HOPPER_NAMES64, "%64", "%65", "%66", ", 0, 0")
                                  : HOPPER_D128(d)
                                  : "l"(a), "l"(b), "r"((int)adds)));
#else
    emulation::multiply(&d[0][0], N, a, b, adds, HOPPER_SITE);
#endif
}

/* d += a b: a [64, 16] in registers, b [16, N] by rows in shared memory. N: 64 or 128. */
template <int N>
__device__ inline void hopper_multiply_rows(float (&d)[N / 8][4], const uint32_t (&a)[4],
                                            uint64_t b HOPPER_HERE_C)
{
    static_assert(N == 64 || N == 128, "those that are needed");
#ifndef SHOAL_EMULATION
    if constexpr (N == 64)
        HOPPER_UNITS(asm volatile(
            HOPPER_WGMMA("64", HOPPER_NAMES32, "{%32, %33, %34, %35}", "%36", "%37", ", 1")
            : HOPPER_D64(d)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)));
    else
        HOPPER_UNITS(asm volatile(
            HOPPER_WGMMA("128", HOPPER_NAMES64, "{%64, %65, %66, %67}", "%68", "%69", ", 1")
            : HOPPER_D128(d)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)));
#else
    emulation::multiply_rows(&d[0][0], N, a, b, HOPPER_SITE);
#endif
}

#endif
#endif
