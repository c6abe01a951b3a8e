/* The race check alone, on kernels of a few lines whose races are known: what it must find, in
 * which words, and what it must let pass. They tell of their accesses themselves, so that this runs
 * in each variant; tests/emulation/test_races.sh shows that the compiler tells of them, too. */
#include "tests/emulation/kernel_test.h"
#include "tests/emulation/races.h"

using emulation::races_touch;
using emulation::touch;

enum {
    THREADS = 64,
    BLOCKS = 2,
    WORDS = BLOCKS * THREADS + 1,
    ROUNDS = 4 /* each in another order */
};

/* ---- accesses ---- */

template <typename T> static __attribute__((noinline)) void put(T *at, T value)
{
    races_touch(at, sizeof *at, touch::writes, __builtin_return_address(0));
    *at = value;
}

template <typename T> static __attribute__((noinline)) T get(const T *at)
{
    races_touch(at, sizeof *at, touch::reads, __builtin_return_address(0));
    return *at;
}

static void add(int *at, int value)
{
    emulation::atomic_begin({__FILE__, __LINE__});
    put(at, get(at) + value);
    emulation::atomic_end();
}

/* ---- kernels: shared memory x, device memory y ---- */

#define KERNEL(name, ...)                                                                          \
    static __global__ void name(int *y)                                                            \
    {                                                                                              \
        CUDA_SHARED(int, x);                                                                       \
        const int i = (int)threadIdx.x, block = (int)blockIdx.x;                                   \
        (void)x, (void)y, (void)i, (void)block;                                                    \
        __VA_ARGS__                                                                                \
    }

/* of threads */
KERNEL(no_barrier, put(&x[i], i); get(&x[i ^ 1]);)
KERNEL(barrier, put(&x[i], i); __syncthreads(); get(&x[i ^ 1]); get(&x[i ^ 32]);)
KERNEL(warp_barrier, put(&x[i], i); __syncwarp(); get(&x[i ^ 1]);)
KERNEL(other_warp, put(&x[i], i); __syncwarp(); get(&x[i ^ 32]);)
KERNEL(shuffle, put(&x[i], i); __shfl_sync(CUDA_WARP, i, 0); get(&x[i ^ 1]);)
KERNEL(one_barrier, put(&x[i], i); __syncthreads(); get(&x[i ^ 32]); put(&x[i], 0);)
KERNEL(two_barriers, put(&x[i], i); __syncthreads(); get(&x[i ^ 32]); __syncthreads();
       put(&x[i], 0);)
KERNEL(one_word, put(&x[0], i);)
KERNEL(own_word, put(&x[i], i); put(&x[i], get(&x[i]) + 1);)
KERNEL(all_read, get(&x[0]);)
/* the shuffle lets all of the warp read before its first thread, which reads last, writes */
KERNEL(reader_writes, get(&x[i / 32]); __shfl_sync(CUDA_WARP, i, 0);
       if (i % 32 == 0) put(&x[i / 32], get(&x[i / 32]));)
/* the same of a warp after another, and of a block after another */
KERNEL(warp_writes, get(&x[0]); __syncwarp(); if (i == 0) put(&x[0], i);)
KERNEL(block_writes, get(&y[3]); __syncthreads(); if (i == 0 && block == 0) put(&y[3], i);)
KERNEL(a_byte, if (i == 0) put((char *)x + 6, 'a'); if (i == 1) get(&x[1]);)
KERNEL(next_bytes, put((char *)x + i, 'a');)
KERNEL(named, CUDA_BLOCK(int, fixed, [2]); if (i == 0) put(&fixed[1], 0);
       if (i == 40) get(&fixed[1]);)

/* of blocks */
KERNEL(blocks, if (i == 0) put(&y[3], block);)
KERNEL(blocks_read, if (i == 0 && block == 0) put(&y[3], 0); if (i == 0 && block == 1) get(&y[3]);)
KERNEL(blocks_apart, put(&y[THREADS * block + i], get(&y[THREADS * block + i]));)
KERNEL(blocks_barrier, if (block == 0) put(&y[i], i); __syncthreads(); if (block == 1) get(&y[i]);)

/* of atomics */
KERNEL(atomics, add(&y[0], 1);)
KERNEL(atomic_read, add(&x[0], 1); get(&x[0]);)
KERNEL(atomic_barrier, add(&x[0], 1); __syncthreads(); get(&x[0]);)
KERNEL(atomic_blocks, add(&y[0], 1); __syncthreads(); if (i == 0) get(&y[0]);)

/* ---- what is told ---- */

#define IN_X       "shared memory (dynamic) at byte "
#define IN_Y       "device memory of 516 bytes at byte "
#define IN_A_BLOCK "without a barrier between them"
#define OF_BLOCKS  "nothing orders blocks but atomics"

static const struct {
    const char *name;
    void (*kernel)(int *);
    const char *told[3]; /* in one line, whoever comes first; none: there is no race */
} rows[] = {
#define ROW(kernel, ...)                                                                           \
    {                                                                                              \
#kernel, kernel,                                                                           \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
    ROW(no_barrier, IN_X, IN_A_BLOCK),
    ROW(barrier),
    ROW(warp_barrier),
    ROW(other_warp, IN_X, IN_A_BLOCK),
    ROW(shuffle, " reads " IN_X, " wrote it (", IN_A_BLOCK),
    ROW(one_barrier, IN_X, IN_A_BLOCK),
    ROW(two_barriers),
    ROW(one_word, " writes " IN_X "0 (", "tests/emulation/test_races.cu:", " wrote it ("),
    ROW(own_word),
    ROW(all_read),
    ROW(reader_writes, " writes " IN_X, " read it (", IN_A_BLOCK),
    ROW(warp_writes, IN_X "0 (", IN_A_BLOCK),
    ROW(block_writes, IN_Y "12 (", OF_BLOCKS),
    ROW(a_byte, IN_X "6 (", IN_A_BLOCK),
    ROW(next_bytes),
    ROW(named, "shared memory fixed at byte 4 (", "thread 0 of block ", "thread 40 of block "),
    ROW(blocks, "thread 0 of block 0", IN_Y "12 (", OF_BLOCKS),
    ROW(blocks_read, "thread 0 of block 1", IN_Y "12 (", OF_BLOCKS),
    ROW(blocks_apart),
    ROW(blocks_barrier, IN_Y, OF_BLOCKS),
    ROW(atomics),
    ROW(atomic_read, IN_X "0 (", IN_A_BLOCK),
    ROW(atomic_barrier),
    ROW(atomic_blocks, IN_Y "0 (", OF_BLOCKS),
#undef ROW
};

static void test_races(void **)
{
    for (const auto &row : rows)
        for (int round = 0; round < ROUNDS; round++) {
            const bool races = row.told[0] != NULL;
            cudaStream_t stream = stream_new();
            int *y = memory_new<int>(WORDS);
            std::string text = told([&] {
                /* twice, other threads at the same words: streams order launches */
                LAUNCH(stream, row.kernel, BLOCKS, THREADS, THREADS * sizeof(int), y);
                LAUNCH(stream, row.kernel, BLOCKS, THREADS, THREADS * sizeof(int), y + 1);
                assert_int_equal(cudaStreamSynchronize(stream),
                                 races ? cudaErrorLaunchFailure : cudaSuccess);
            });
            if (races == text.empty() || text.find("race: ") != text.rfind("race: "))
                fail_msg("%s: %s", row.name, text.empty() ? "no race was found" : text.c_str());
            for (const char *part : row.told)
                if (part && text.find(part) == text.npos)
                    fail_msg("%s: not told: %s\nbut: %s", row.name, part, text.c_str());
            if (races)
                assert_int_equal(cudaDeviceReset(), cudaSuccess);
            else
                cudaFree(y);
            cudaStreamDestroy(stream);
        }
}

int main(void)
{
    cudaSetDevice(0);
    emulation::races_watch();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_races)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
