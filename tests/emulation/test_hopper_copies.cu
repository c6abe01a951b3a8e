/* The twins of kernels/cuda/hopper.h's plain copies, of reads of what copies have brought, and of
 * products 64 columns wide: what they give, and that each misuse is told. */
#include "kernels/cuda/hopper.h"
#include "kernels/cuda/numbers.h"
#include "tests/emulation/async_block.h"
#include "tests/emulation/kernel_test.h"

enum { ROWS = HOPPER_ROWS, DEPTH = HOPPER_COLUMNS, THREADS = HOPPER_GROUP, COUNT = THREADS };

enum wrong {
    NOTHING,
    FROM_8,
    TO_8,
    OF_8,
    OF_NO_MEMORY,
    FOR_A_TILE,
    READ_BEFORE,
    READ_WHAT_NOBODY_BROUGHT,
};

struct arguments {
    float *brought, (*sums)[ROWS / 8][4];
    const float *values;
    const bf16 *a;
};
struct maps {
    struct tensor_map a, b;
};
struct room {
    bf16 a[ROWS * DEPTH], b[ROWS * DEPTH];
    float values[COUNT + 4], others[4];
    uint64_t tiles_full, values_full;
};

static __device__ void bring(room &r, const struct arguments &args, const struct maps &maps,
                             enum wrong wrong)
{
    const int bytes = COUNT * (int)sizeof(float) - (wrong == OF_8 ? 8 : 0);
    hopper_barrier_init(&r.tiles_full, 1);
    hopper_barrier_init(&r.values_full, 1);
    hopper_barriers_made();
    hopper_expect(&r.tiles_full, (int)sizeof r.a + (int)sizeof r.b);
    if (wrong == FOR_A_TILE)
        hopper_copy_plain(r.a, args.a, (int)sizeof r.a, &r.tiles_full);
    else
        hopper_copy(r.a, &maps.a, 0, 0, 0, 0, &r.tiles_full);
    hopper_copy(r.b, &maps.b, 0, 0, 0, 0, &r.tiles_full);
    hopper_expect(&r.values_full, bytes);
    hopper_copy_plain(r.values + (wrong == TO_8 ? 2 : 0),
                      wrong == OF_NO_MEMORY ? (const float *)(const void *)&maps
                                            : args.values + (wrong == FROM_8 ? 2 : 0),
                      bytes, &r.values_full);
}

/* Each thread reads a value that a plain copy brings; sums = a b^T, ROWS columns. */
static __global__ void kernel(struct arguments args, HOPPER_PARAMETER struct maps maps,
                              enum wrong wrong)
{
    CUDA_SHARED(unsigned char, shared);
    uint32_t over = hopper_address(shared) % HOPPER_TILE_ALIGN;
    auto &r = *(room *)(void *)(shared + (HOPPER_TILE_ALIGN - over) % HOPPER_TILE_ALIGN);
    int thread = (int)threadIdx.x;
    float sums[ROWS / 8][4];
    if (thread == 0)
        bring(r, args, maps, wrong);
    __syncthreads();
    if (wrong != READ_BEFORE)
        hopper_wait(&r.values_full, 0);
    const float *mine = wrong == READ_WHAT_NOBODY_BROUGHT ? r.others : r.values + thread;
    args.brought[thread] = *hopper_brought(mine, sizeof *mine);
    hopper_wait(&r.tiles_full, 0);
    hopper_fence();
    uint64_t a = hopper_matrix(r.a, 0), b = hopper_matrix(r.b, 0);
    for (int k = 0; k < DEPTH / HOPPER_DEPTH; k++)
        hopper_multiply<ROWS>(sums, hopper_matrix_on(a, 32 * k), hopper_matrix_on(b, 32 * k),
                              k > 0);
    hopper_commit();
    hopper_wait_products<0>();
    memcpy(args.sums[thread], sums, sizeof sums);
}

/* Small whole numbers: products and their sums are exact. */
static float small_number(int row, int column)
{
    return (float)((row * 31 + column * 17 + row * column % 13) % 5 - 2);
}

struct world {
    cudaStream_t stream;
    bf16 *a, *b;
    float *values, *brought, (*sums)[ROWS / 8][4];
};

static bf16 *tile_new(cudaStream_t stream, int first)
{
    bf16 host[ROWS * DEPTH], *memory = memory_new<bf16>(ROWS * DEPTH);
    for (int i = 0; i < ROWS * DEPTH; i++)
        number_store(&host[i], small_number(first + i / DEPTH, i % DEPTH));
    copy<bf16>(stream, memory, host, ROWS * DEPTH);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    return memory;
}

static cudaError_t run(struct world *w, enum wrong wrong)
{
    struct maps maps;
    float host[COUNT + 4];
    w->stream = stream_new();
    w->a = tile_new(w->stream, 0);
    w->b = tile_new(w->stream, 1000);
    w->values = memory_new<float>(COUNT + 4);
    w->brought = memory_new<float>(COUNT);
    w->sums = memory_new<float[ROWS / 8][4]>(THREADS);
    for (int i = 0; i < COUNT + 4; i++)
        host[i] = (float)i;
    copy<float>(w->stream, w->values, host, COUNT + 4);
    assert_int_equal(tensor_map_of_heads(&maps.a, w->a, 1, ROWS, 1, DEPTH, DEPTH, ROWS), 0);
    assert_int_equal(tensor_map_of_heads(&maps.b, w->b, 1, ROWS, 1, DEPTH, DEPTH, ROWS), 0);
    struct arguments args = {w->brought, w->sums, w->values, w->a};
    assert_int_equal(
        LAUNCH(w->stream, kernel, 1, THREADS, sizeof(room) + HOPPER_TILE_ALIGN, args, maps, wrong),
        cudaSuccess);
    return cudaStreamSynchronize(w->stream);
}

static void close_world(struct world *w)
{
    void *all[] = {w->a, w->b, w->values, w->brought, w->sums};
    for (void *memory : all)
        cudaFree(memory);
    cudaStreamDestroy(w->stream);
}

/* Who holds what of the sums: CUTLASS's CLayout_64xN, as in test_hopper.cu. */
static void test_what_is_brought_and_made(void **)
{
    struct world w;
    static float sums[THREADS][ROWS / 8][4], brought[COUNT];
    assert_int_equal(run(&w, NOTHING), cudaSuccess);
    copy<float>(w.stream, brought, w.brought, COUNT);
    copy<float>(w.stream, &sums[0][0][0], &w.sums[0][0][0], sizeof sums / sizeof(float));
    assert_int_equal(cudaStreamSynchronize(w.stream), cudaSuccess);
    for (int t = 0; t < THREADS; t++) {
        assert_true(brought[t] == (float)t);
        for (int v = 0; v < ROWS / 2; v++) {
            int place =
                t % 4 * 128 + t / 4 % 8 + t / 32 * 16 + v % 2 * 64 + v / 2 % 2 * 8 + v / 4 * 512;
            float want = 0;
            for (int k = 0; k < DEPTH; k++)
                want += small_number(place % ROWS, k) * small_number(1000 + place / ROWS, k);
            assert_true(sums[t][v / 4][v % 4] == want);
        }
    }
    close_world(&w);
}

static const struct {
    enum wrong wrong;
    const char *told;
} rows[] = {
    {FROM_8, "no multiples of 16"},
    {TO_8, "no multiples of 16"},
    {OF_8, "a copy of 504 bytes"},
    {OF_NO_MEMORY, "a copy from where no device memory is"},
    {FOR_A_TILE, "has no swizzle, as the copy was a plain one"},
    {READ_BEFORE, "a copy to there is under way"},
    {READ_WHAT_NOBODY_BROUGHT, "no copy has brought anything to there"},
};

static void test_misuse(void **)
{
    for (const auto &row : rows) {
        struct world w;
        cudaError_t status = cudaSuccess;
        std::string text = told([&] { status = run(&w, row.wrong); });
        if (status == cudaSuccess || text.find(row.told) == std::string::npos)
            fail_msg("misuse %d: \"%s\" is to be told, not \"%s\"", row.wrong, row.told,
                     text.c_str());
        cudaGetLastError();
        close_world(&w);
        cudaDeviceReset();
    }
}

/* That another thread has waited is not enough. */
static void test_each_waits(void **)
{
    enum { AT = 1024, BYTES = 64, FULL = AT + BYTES };
    alignas(16) static unsigned char shared[BYTES + 8];
    alignas(16) static const unsigned char x[BYTES] = {};
    emulation::async_block block(shared, sizeof shared, AT, THREADS);
    block.init(0, FULL, 1);
    block.made(0);
    block.block_barrier();
    block.arrive(0, FULL, BYTES);
    block.copy_plain(0, AT, x, BYTES, FULL);
    block.land(0);
    assert_true(block.is_over(6, FULL, 0));
    block.read(6, AT + 8, 8);
    std::string text;
    try {
        block.read(7, AT + 8, 8);
    } catch (const emulation::async_fault &fault) {
        text = fault.what();
    }
    assert_true(text.find("thread 7 has not waited for the copy to there") != std::string::npos);
}

int main(void)
{
    cudaSetDevice(0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_brought_and_made),
        cmocka_unit_test(test_each_waits),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
