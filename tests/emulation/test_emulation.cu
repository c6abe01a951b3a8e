/* The emulated GPU itself: what it computes, and what it finds. A kernel with a mistake must fail,
 * with the place in the message. */
#include <stdlib.h>
#include <string>

#include "kernels/cuda/numbers.h"
#include "tests/emulation/asan.h"
#include "tests/emulation/kernel_test.h"

enum { BLOCKS = 64, THREADS = 128 };

/* ---- what kernels compute ---- */

static __global__ void sum_kernel(float *sums, const float *x)
{
    float mine = x[grid_thread()];
    sums[grid_thread()] = block_sum(2 * mine) - block_sum(mine); /* they share memory */
}

static void test_block_sums(void **)
{
    static float host[BLOCKS * THREADS], sums[BLOCKS * THREADS];
    for (int i = 0; i < BLOCKS * THREADS; i++)
        host[i] = (float)(i * 7919 % 1009);
    cudaStream_t stream = stream_new();
    float *x = memory_new<float>(BLOCKS * THREADS), *y = memory_new<float>(BLOCKS * THREADS);
    copy<float>(stream, x, host, BLOCKS * THREADS);
    assert_int_equal(LAUNCH(stream, sum_kernel, BLOCKS, THREADS, 0, y, x), cudaSuccess);
    copy<float>(stream, sums, y, BLOCKS * THREADS);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    for (int b = 0; b < BLOCKS; b++) {
        float sum = 0;
        for (int i = b * THREADS; i < (b + 1) * THREADS; i++)
            sum += host[i];
        for (int i = b * THREADS; i < (b + 1) * THREADS; i++)
            assert_true(sums[i] == sum);
    }
    cudaFree(x);
    cudaFree(y);
    cudaStreamDestroy(stream);
}

struct lane_values {
    int from_3, swapped, below, above, in_eights;
    unsigned votes;
    int any, all, counted;
};

static __global__ void lane_kernel(lane_values *y)
{
    int i = (int)threadIdx.x;
    lane_values v;
    v.from_3 = __shfl_sync(CUDA_WARP, i, 3);
    v.swapped = __shfl_xor_sync(CUDA_WARP, i, 1);
    v.below = __shfl_up_sync(CUDA_WARP, i, 2);
    v.above = __shfl_down_sync(CUDA_WARP, i, 2);
    v.in_eights = __shfl_down_sync(CUDA_WARP, i, 4, 8);
    v.votes = __ballot_sync(CUDA_WARP, i % 3 == 0);
    v.any = __any_sync(CUDA_WARP, i == 40);
    v.all = __all_sync(CUDA_WARP, i < 32);
    v.counted = __syncthreads_count(i % 2);
    y[i] = v;
}

static void test_lanes(void **)
{
    lane_values host[64];
    cudaStream_t stream = stream_new();
    lane_values *y = memory_new<lane_values>(64);
    assert_int_equal(LAUNCH(stream, lane_kernel, 1, 64, 0, y), cudaSuccess);
    copy<lane_values>(stream, host, y, 64);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    for (int i = 0; i < 64; i++) {
        const lane_values *v = &host[i];
        int base = i / 32 * 32, lane = i % 32;
        unsigned votes = 0;
        for (unsigned l = 0; l < 32; l++)
            votes |= (unsigned)((base + (int)l) % 3 == 0) << l;
        assert_int_equal(v->from_3, base + 3);
        assert_int_equal(v->swapped, i ^ 1);
        assert_int_equal(v->below, lane < 2 ? i : i - 2);
        assert_int_equal(v->above, lane > 29 ? i : i + 2);
        assert_int_equal(v->in_eights, lane % 8 < 4 ? i + 4 : i);
        assert_int_equal(v->votes, votes);
        assert_true(v->any == (base == 32) && v->all == (base == 0) && v->counted == 32);
    }
    cudaFree(y);
    cudaStreamDestroy(stream);
}

/* Shared memory, of both kinds: NaN when the block starts, then each thread's. */
static __global__ void reverse_kernel(float *y, int *fresh)
{
    CUDA_SHARED(float, all);
    CUDA_BLOCK(float, fixed, [THREADS]);
    int i = (int)threadIdx.x;
    fresh[i] = all[i] != all[i] && fixed[i] != fixed[i];
    __syncthreads();
    all[i] = fixed[i] = (float)i;
    __syncthreads();
    y[i] = all[THREADS - 1 - i] + fixed[i] - (float)i;
}

static void test_shared_memory(void **)
{
    float host[THREADS];
    int host_fresh[THREADS];
    cudaStream_t stream = stream_new();
    float *y = memory_new<float>(THREADS);
    int *fresh = memory_new<int>(THREADS);
    for (int run = 0; run < 2; run++)
        LAUNCH(stream, reverse_kernel, 2, THREADS, THREADS * sizeof(float), y, fresh);
    copy<float>(stream, host, y, THREADS);
    copy<int>(stream, host_fresh, fresh, THREADS);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    for (int i = 0; i < THREADS; i++)
        assert_true(host[i] == (float)(THREADS - 1 - i) && host_fresh[i]);
    cudaFree(y);
    cudaFree(fresh);
    cudaStreamDestroy(stream);
}

/* ---- mistakes ---- */

static __global__ void leaves_early(float *)
{
    if (threadIdx.x == 70)
        return;
    __syncthreads();
}
static __global__ void other_barrier(float *)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}
static __global__ void half_a_warp(float *)
{
    if (threadIdx.x % 32 < 16)
        __syncwarp();
}
static __global__ void other_shuffle(float *)
{
    if (threadIdx.x % 2)
        __syncwarp();
    else
        __shfl_sync(CUDA_WARP, 1, 0);
}
static __global__ void half_mask(float *)
{
    __shfl_sync(0xffffu, 1, 0);
}
static __global__ void whole_warp(float *)
{
    __syncwarp();
}

struct mistake {
    void (*kernel)(float *);
    int threads;
    const char *told;
};
static const mistake mistakes[] = {
    {leaves_early, THREADS, "for threads of its block that never come (1 of 128 have ended)"},
    {other_barrier, THREADS, "others of its block wait at tests/emulation/test_emulation.cu:"},
    {half_a_warp, THREADS, "for threads of its warp that never come"},
    {other_shuffle, THREADS, "others of its warp wait at tests/emulation/test_emulation.cu:"},
    {half_mask, THREADS, "the mask must be all 32 lanes (0xffff) of a full warp (32 lanes)"},
    {whole_warp, 40, "the mask must be all 32 lanes (0xffffffff) of a full warp (8 lanes)"},
};

static void test_mistakes(void **)
{
    for (const mistake &m : mistakes) {
        cudaStream_t stream = stream_new();
        std::string text = told([&] {
            assert_int_equal(LAUNCH(stream, m.kernel, 2, m.threads, 0, nullptr), cudaSuccess);
            assert_int_equal(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
        });
        bool named = text.find("m.kernel, launched at tests/emulation/test_emu") != text.npos;
        if (!named || text.find(m.told) == text.npos)
            fail_msg("not told: %s\nbut: %s", m.told, text.c_str());
        /* it stays failed, as a GPU does */
        assert_int_equal(LAUNCH(stream, m.kernel, 2, m.threads, 0, nullptr),
                         cudaErrorLaunchFailure);
        assert_int_equal(cudaDeviceReset(), cudaSuccess);
        cudaStreamDestroy(stream);
    }
    test_block_sums(nullptr); /* and works on */
}

/* Of shared memory a block may ask for what its compute capability has. */
static void test_shared_limits(void **)
{
    static const struct {
        const char *setting;
        int kib;
    } rows[] = {{"capability=80", 163}, {"capability=86", 99},   {"capability=89", 99},
                {"capability=90", 227}, {"capability=100", 227}, {"capability=120", 99}};
    const auto limit = cudaFuncAttributeMaxDynamicSharedMemorySize;
    const void *kernel = (const void *)whole_warp;
    const char *before = getenv("SHOAL_EMULATION");
    const std::string kept(before ? before : "");
    for (const auto &row : rows) {
        int bytes = 0;
        setenv("SHOAL_EMULATION", row.setting, 1);
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
        assert_int_equal(bytes, row.kib * 1024);
        assert_int_equal(cudaFuncSetAttribute(kernel, limit, bytes), cudaSuccess);
        assert_int_equal(cudaFuncSetAttribute(kernel, limit, bytes + 1), cudaErrorInvalidValue);
    }
    cudaGetLastError();
    setenv("SHOAL_EMULATION", kept.c_str(), 1);
}

static void test_limits(void **)
{
    cudaStream_t stream = stream_new();
    void *memory;
    assert_int_equal(LAUNCH(stream, whole_warp, 1, 1056, 0, nullptr),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(LAUNCH(stream, whole_warp, 0, 32, 0, nullptr), cudaErrorInvalidConfiguration);
    const void *kernel = (const void *)whole_warp; /* much shared memory is asked for */
    assert_int_equal(LAUNCH(stream, whole_warp, 1, 32, 48 * 1024, nullptr), cudaSuccess);
    assert_int_equal(LAUNCH(stream, whole_warp, 1, 32, 49 * 1024, nullptr), cudaErrorInvalidValue);
    const auto limit = cudaFuncAttributeMaxDynamicSharedMemorySize;
    assert_int_equal(cudaFuncSetAttribute(kernel, limit, 227 * 1024), cudaSuccess);
    assert_int_equal(LAUNCH(stream, whole_warp, 1, 32, 227 * 1024, nullptr), cudaSuccess);
    assert_int_equal(LAUNCH(stream, whole_warp, 1, 32, 228 * 1024, nullptr), cudaErrorInvalidValue);
    assert_int_equal(cudaFuncSetAttribute(kernel, limit, 228 * 1024), cudaErrorInvalidValue);
    assert_int_equal(cudaMalloc(&memory, (size_t)1 << 40), cudaErrorMemoryAllocation);
    cudaGetLastError();
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    cudaStreamDestroy(stream);
}

/* ---- streams ---- */

static __global__ void write_kernel(int *y, int value)
{
    *y = value;
}

/* Nothing orders the two streams: each is sometimes the first, and nothing runs before it must (or
 * long after it was queued, which on a busy machine may be soon). */
static void test_streams_take_turns(void **)
{
    enum { ROUNDS = 64 };
    cudaStream_t a = stream_new(), b = stream_new();
    int *y = memory_new<int>(1), host, last_was_a = 0, waited = 0;
    for (int i = 0; i < ROUNDS; i++) {
        LAUNCH(a, write_kernel, 1, 1, 0, y, 1);
        LAUNCH(b, write_kernel, 1, 1, 0, y, 2);
        waited += cudaStreamQuery(a) == cudaErrorNotReady;
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
        copy<int>(a, &host, y, 1);
        assert_int_equal(cudaStreamSynchronize(a), cudaSuccess);
        last_was_a += host == 1;
    }
    assert_true(last_was_a > 0 && last_was_a < ROUNDS && waited > ROUNDS / 2);
    cudaFree(y);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
}

/* Two streams write in turns, ordered by events: the last word is always b's. */
static void test_events_order(void **)
{
    cudaStream_t a = stream_new(), b = stream_new();
    cudaEvent_t done;
    assert_int_equal(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), cudaSuccess);
    int *y = memory_new<int>(1), host;
    for (int i = 0; i < 64; i++) {
        LAUNCH(a, write_kernel, 1, 1, 0, y, 2 * i);
        cudaEventRecord(done, a);
        cudaStreamWaitEvent(b, done, 0);
        LAUNCH(b, write_kernel, 1, 1, 0, y, 2 * i + 1);
        copy<int>(b, &host, y, 1);
        cudaEventRecord(done, b);
        cudaStreamWaitEvent(a, done, 0);
        assert_int_equal(cudaStreamSynchronize(b), cudaSuccess);
        assert_int_equal(host, 2 * i + 1);
    }
    cudaEventDestroy(done);
    cudaFree(y);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
}

/* ---- what ends the program ---- */

static __global__ void overrun_kernel(unsigned char *y, int64_t at)
{
    y[at] = 0;
}

static int write_behind(void)
{
    cudaStream_t stream = stream_new();
    auto *y = memory_new<unsigned char>(100);
    LAUNCH(stream, overrun_kernel, 1, 1, 0, y, 100);
    cudaStreamSynchronize(stream);
    cudaFree(y);
    return 0;
}
static int write_freed(void)
{
    cudaStream_t stream = stream_new();
    auto *y = memory_new<unsigned char>(100);
    LAUNCH(stream, overrun_kernel, 1, 1, 0, y, 0);
    cudaFree(y);
    cudaStreamSynchronize(stream);
    return 0;
}
static int write_from_host(void)
{
    *memory_new<unsigned char>(100) = 0;
    return 0;
}

struct end {
    const char *name;
    int (*run)(void);
    bool needs_asan;
};
static const end ends[] = {
    {"write-behind", write_behind, false},
    {"write-freed", write_freed, true},
    {"write-from-host", write_from_host, true},
};

static std::string program;

static void test_ends(void **)
{
    for (const end &e : ends) {
        if (e.needs_asan && !HAS_ASAN)
            continue;
        if (system((program + " " + e.name + " 2>/dev/null").c_str()) == 0)
            fail_msg("%s was not found", e.name);
    }
}

int main(int argc, char **argv)
{
    program = argv[0];
    cudaSetDevice(0);
    for (const end &e : ends)
        if (argc > 1 && argv[1] == std::string(e.name))
            return e.run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_sums),    cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_shared_memory), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_shared_limits),
        cmocka_unit_test(test_ends),          cmocka_unit_test(test_streams_take_turns),
        cmocka_unit_test(test_events_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
