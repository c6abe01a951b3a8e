/* The twins of kernels/cuda/hopper.h: what products give, by NVIDIA's own description of who holds
 * what, and that each misuse which hardware would not forgive is told. */
#include "kernels/cuda/hopper.h"
#include "kernels/cuda/matrix.h"
#include "kernels/cuda/numbers.h"
#include "tests/emulation/async_block.h"
#include "tests/emulation/kernel_test.h"

enum { ROWS = HOPPER_ROWS, DEPTH = 64, KEYS = 128, THREADS = HOPPER_GROUP };

/* What is done otherwise than it should be. */
enum wrong {
    NOTHING,
    BARRIER_AT_4,
    BARRIER_OF_NONE,
    BARRIER_TWICE,
    BARRIER_OF_OTHERS,
    BARRIER_OF_NOBODY,
    BARRIER_NOT_FENCED,
    ARRIVES_TWICE,
    EXPECTS_LESS,
    EXPECTS_MORE,
    EXPECTS_MILLIONS,
    OTHER_PHASE,
    NOT_ALL_WAIT,
    TILE_AT_64,
    TILE_OVER_BARRIER,
    TILE_TWICE,
    TILE_OUTSIDE,
    NO_MAP,
    MAP_AT_32,
    COPY_OVER_READ,
    COPY_AT_THE_END,
    OTHER_SWIZZLE,
    BASE_OFFSET,
    BEGINS_AT_512,
    UNUSED_BITS,
    WITHIN_A_ROW,
    BEHIND_THE_TILE,
    LESS_WARPS,
    OTHER_PRODUCTS,
    NOT_FENCED,
    SUMS_READ,
    SUMS_WRITTEN,
    FACTOR_WRITTEN,
    SUMS_OF_TWO_SIZES,
    NOT_COMMITTED,
    NOT_WAITED_FOR,
};

struct maps {
    struct tensor_map a, b;
};
struct held {
    float of[THREADS][KEYS / 8][4];
};

/* In shared memory: a [64, 64], b [128, 64], of which 64 x 64 are a tile by rows, too. */
struct room {
    bf16 a[ROWS * DEPTH], b[KEYS * DEPTH];
    uint64_t full, more[2];
};

static __device__ void bring(room &r, const struct maps &maps, enum wrong wrong)
{
    int bytes = (ROWS + KEYS) * DEPTH * (int)sizeof(bf16);
    uint64_t *barrier = wrong == BARRIER_AT_4 ? (uint64_t *)((uintptr_t)&r.full + 4) : &r.full;
    hopper_barrier_init(barrier, wrong == BARRIER_OF_NONE ? 0 : 1);
    if (wrong == BARRIER_TWICE)
        hopper_barrier_init(barrier, 1);
    if (wrong != BARRIER_NOT_FENCED)
        hopper_barriers_made();
    hopper_expect(&r.full, wrong == EXPECTS_LESS       ? bytes - 128
                           : wrong == EXPECTS_MORE     ? bytes + 128
                           : wrong == EXPECTS_MILLIONS ? 1 << 20
                                                       : bytes);
    if (wrong == ARRIVES_TWICE)
        hopper_arrive(&r.full);
    if (wrong == BARRIER_OF_NOBODY)
        hopper_arrive(&r.more[0]);
    uintptr_t map = (uintptr_t)&maps.a + (wrong == NO_MAP ? 64 : wrong == MAP_AT_32 ? 32 : 0);
    hopper_copy(r.a, (const struct tensor_map *)map, 0, 0, 0, 0, &r.full);
    bf16 *b = wrong == TILE_AT_64          ? r.b + 32
              : wrong == TILE_OVER_BARRIER ? r.b + KEYS * DEPTH / 2
              : wrong == TILE_TWICE        ? r.a
              : wrong == TILE_OUTSIDE      ? r.b + 2 * KEYS * DEPTH
                                           : r.b;
    hopper_copy(b, &maps.b, 0, 0, 0, 0, &r.full);
}

static __device__ uint64_t broken(uint64_t matrix, enum wrong wrong)
{
    return wrong == OTHER_SWIZZLE     ? matrix ^ 3ull << 62
           : wrong == BASE_OFFSET     ? matrix | 1ull << 49
           : wrong == BEGINS_AT_512   ? hopper_matrix_on(matrix, 512)
           : wrong == UNUSED_BITS     ? matrix | 1ull << 46
           : wrong == WITHIN_A_ROW    ? hopper_matrix_on(matrix, 16)
           : wrong == BEHIND_THE_TILE ? hopper_matrix_on(matrix, KEYS * DEPTH * 2)
                                      : matrix;
}

/* x = a b^T, and y += p b's first 64 rows: p is x, rounded. */
static __global__ void kernel(held *x, held *y, HOPPER_PARAMETER struct maps maps, enum wrong wrong)
{
    CUDA_SHARED(unsigned char, shared);
    uint32_t over = hopper_address(shared) % HOPPER_TILE_ALIGN;
    auto &r = *(room *)(void *)(shared + (HOPPER_TILE_ALIGN - over) % HOPPER_TILE_ALIGN);
    int thread = (int)threadIdx.x;
    float scores[KEYS / 8][4] = {}, sums[DEPTH / 8][4] = {};
    uint32_t p[DEPTH / HOPPER_DEPTH][4];
    if (thread == 0)
        bring(r, maps, wrong);
    if (wrong == BARRIER_OF_OTHERS)
        __syncwarp();
    else
        __syncthreads();
    if (wrong == COPY_AT_THE_END || (wrong == BARRIER_OF_OTHERS && thread >= 32))
        return;
    if (wrong != NOT_ALL_WAIT || thread != 5)
        hopper_wait(&r.full, wrong == OTHER_PHASE);
    if (wrong != NOT_FENCED)
        hopper_fence();
    uint64_t a = hopper_matrix(r.a, 0), b = broken(hopper_matrix(r.b, 0), wrong);
    for (int k = 0; k < DEPTH / HOPPER_DEPTH; k++) {
        int on = wrong == OTHER_PRODUCTS && thread >= 64 ? 0 : 32 * k;
        hopper_multiply<KEYS>(scores, hopper_matrix_on(a, on), hopper_matrix_on(b, on), k > 0);
    }
    if (wrong == SUMS_OF_TWO_SIZES)
        hopper_multiply_rows<DEPTH>(*(float(*)[DEPTH / 8][4])(void *)scores,
                                    *(uint32_t(*)[4])(void *)p, b);
    if (wrong != NOT_COMMITTED)
        hopper_commit();
    if (wrong == COPY_OVER_READ && thread == 0)
        hopper_copy(r.a, &maps.a, 0, 0, 0, 0, &r.full);
    if (wrong == SUMS_WRITTEN)
        scores[1][1] = 0;
    if (wrong == SUMS_READ)
        x->of[thread][0][0] = scores[0][0];
    if (wrong == NOT_WAITED_FOR)
        return;
    hopper_wait_products<0>();
    if (wrong != SUMS_READ)
        memcpy(x->of[thread], scores, sizeof scores);
    for (int k = 0; k < DEPTH / HOPPER_DEPTH; k++)
        for (int i = 0; i < 4; i++)
            p[k][i] =
                matrix_pair(scores[2 * k + i / 2][i % 2 * 2], scores[2 * k + i / 2][i % 2 * 2 + 1]);
    hopper_fence();
    for (int k = 0; k < DEPTH / HOPPER_DEPTH; k++)
        hopper_multiply_rows<DEPTH>(sums, p[k], hopper_matrix_on(b, k * HOPPER_DEPTH * 128));
    hopper_commit();
    if (wrong == FACTOR_WRITTEN)
        p[0][0] ^= 1;
    hopper_wait_products<0>();
    memcpy(y->of[thread], sums, sizeof sums);
}

/* Small whole numbers: products and their sums are exact, and fit bf16. */
static float small_number(int row, int column)
{
    return (float)((row * 31 + column * 17 + row * column % 13) % 3 - 1);
}

struct world {
    cudaStream_t stream;
    bf16 *a, *b;
    held *x, *y, host_x, host_y;
    struct maps maps;
};

static bf16 *numbers_new(cudaStream_t stream, int first, int rows)
{
    std::vector<bf16> host((size_t)(rows * DEPTH));
    for (int i = 0; i < rows * DEPTH; i++)
        number_store(&host[(size_t)i], small_number(first + i / DEPTH, i % DEPTH));
    bf16 *memory = memory_new<bf16>(rows * DEPTH);
    copy<bf16>(stream, memory, host.data(), rows * DEPTH);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    return memory;
}

/* b has two rows less than a tile of it. */
enum { B_ROWS = KEYS - 2 };
static cudaError_t run(struct world *w, enum wrong wrong)
{
    w->stream = stream_new();
    w->a = numbers_new(w->stream, 0, ROWS);
    w->b = numbers_new(w->stream, 1000, B_ROWS);
    w->x = memory_new<held>(1);
    w->y = memory_new<held>(1);
    assert_int_equal(tensor_map_of_heads(&w->maps.a, w->a, 1, ROWS, 1, DEPTH, DEPTH, ROWS), 0);
    assert_int_equal(tensor_map_of_heads(&w->maps.b, w->b, 1, B_ROWS, 1, DEPTH, DEPTH, KEYS), 0);
    assert_int_equal(LAUNCH(w->stream, kernel, 1, wrong == LESS_WARPS ? 64 : THREADS,
                            sizeof(room) + HOPPER_TILE_ALIGN, w->x, w->y, w->maps, wrong),
                     cudaSuccess);
    return cudaStreamSynchronize(w->stream);
}

static void close_world(struct world *w)
{
    cudaFree(w->a);
    cudaFree(w->b);
    cudaFree(w->x);
    cudaFree(w->y);
    cudaStreamDestroy(w->stream);
}

/* f(thread, value, row, column) of [64, n]: CUTLASS's CLayout_64xN (mma_traits_sm90_gmma.hpp),
 * shapes ((4, 8, 4), (2, 2, n / 8)) with strides ((128, 1, 16), (64, 8, 512)) of rows first. */
template <typename F> static void each_place(int n, F f)
{
    for (int t = 0; t < THREADS; t++)
        for (int v = 0; v < n / 2; v++) {
            int place =
                t % 4 * 128 + t / 4 % 8 + t / 32 * 16 + v % 2 * 64 + v / 2 % 2 * 8 + v / 4 * 512;
            f(t, v, place % ROWS, place / ROWS);
        }
}

static void test_products(void **)
{
    static struct world w;
    static float scores[ROWS][KEYS];
    auto b_number = [](int row, int k) { return row < B_ROWS ? small_number(1000 + row, k) : 0; };
    assert_int_equal(run(&w, NOTHING), cudaSuccess);
    copy<held>(w.stream, &w.host_x, w.x, 1);
    copy<held>(w.stream, &w.host_y, w.y, 1);
    assert_int_equal(cudaStreamSynchronize(w.stream), cudaSuccess);
    each_place(KEYS, [&](int t, int v, int row, int key) {
        for (int k = 0; k < DEPTH; k++)
            scores[row][key] += small_number(row, k) * b_number(key, k);
        assert_true(w.host_x.of[t][v / 4][v % 4] == scores[row][key]);
    });
    each_place(DEPTH, [&](int t, int v, int row, int column) {
        float sum = 0;
        for (int key = 0; key < DEPTH; key++)
            sum += scores[row][key] * b_number(key, column);
        assert_true(w.host_y.of[t][v / 4][v % 4] == sum);
    });
    close_world(&w);
}

static const struct {
    enum wrong wrong;
    const char *told;
} rows[] = {
    {BARRIER_AT_4, "no multiple of 8"},
    {BARRIER_OF_NONE, "a barrier for 0 arrivals"},
    {BARRIER_TWICE, "is made twice"},
    {BARRIER_OF_OTHERS, "with no barrier of the block since"},
    {BARRIER_OF_NOBODY, "there is no barrier at"},
    {BARRIER_NOT_FENCED, "no fence since it was made"},
    {ARRIVES_TWICE, "more than 1 arrive"},
    {EXPECTS_LESS, "bytes more than the barrier"},
    {EXPECTS_MORE, "0 of 1 arrivals and 128 bytes are missing"},
    {EXPECTS_MILLIONS, "more bytes are expected than a barrier counts"},
    {OTHER_PHASE, "a copy to there is under way"},
    {NOT_ALL_WAIT, "thread 5 has not waited for the copy to there"},
    {TILE_AT_64, "which is no multiple of 128"},
    {TILE_OVER_BARRIER, "where a barrier is"},
    {TILE_TWICE, "another is under way"},
    {TILE_OUTSIDE, "is not in the block's shared memory"},
    {NO_MAP, "no tensor map"},
    {MAP_AT_32, "a tensor map that is no multiple of 64"},
    {COPY_OVER_READ, "which a product under way reads"},
    {COPY_AT_THE_END, "the block ends while a copy is under way"},
    {OTHER_SWIZZLE, "another swizzle than that of 128 bytes"},
    {BASE_OFFSET, "does not begin at a multiple of 1024"},
    {BEGINS_AT_512, "does not begin at a multiple of 1024"},
    {UNUSED_BITS, "bits that are to be 0 are not"},
    {WITHIN_A_ROW, "it begins within a row at 16"},
    {BEHIND_THE_TILE, "no copy has brought anything to there"},
    {LESS_WARPS, "a product by less than four warps"},
    {OTHER_PRODUCTS, "warps of a group ask for other products"},
    {NOT_FENCED, "a product without a fence since the last wait"},
    {SUMS_WRITTEN, "sums of a product under way were written"},
    {FACTOR_WRITTEN, "a factor of a product under way was written"},
    {SUMS_OF_TWO_SIZES, "sums under way are taken for others"},
    {NOT_WAITED_FOR, "the block ends while a product is under way"},
};

static void test_misuse(void **)
{
    for (const auto &row : rows) {
        static struct world w;
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

/* A copy over what another warp, or a product of it, has read: that it is done must have been
 * handed on. Of fibers another order would be told first. */
static void test_order_of_copies(void **)
{
    enum {
        AT = 1024,
        BYTES = ROWS * DEPTH * (int)sizeof(bf16),
        FULL = AT + BYTES,
        FREE = FULL + 8
    };
    const int place[4] = {0, 0, 0, 0};
    alignas(128) static unsigned char shared[BYTES + 16];
    static const unsigned char x[BYTES] = {};
    alignas(64) const emulation::map_fields map = {
        emulation::MAP_MAGIC, x, {DEPTH, 1, ROWS, 1}, {128, 128, BYTES}, {DEPTH, 1, ROWS, 1}};
    emulation::async_product product = {true, {}, 0, 0, true, DEPTH, false};
    product.b = AT / 16 | 1024ull / 16 << 32 | 1ull << 62;
    for (int i = 0; i < 4; i++) {
        const bool is_told = i % 2, is_product = i / 2;
        emulation::async_block block(shared, sizeof shared, AT, THREADS);
        block.init(0, FULL, 1);
        block.init(0, FREE, 1);
        block.made(0);
        block.block_barrier();
        block.arrive(0, FULL, BYTES);
        block.copy(0, AT, &map, place, FULL);
        block.land(0);
        for (unsigned thread = 0; thread < THREADS; thread++)
            assert_true(block.is_over(thread, FULL, 0));
        if (is_product) {
            block.fence(1);
            block.multiply(1, product, 1, std::vector<float>(16 * DEPTH));
            block.commit(1);
            assert_int_equal(block.wait(1, 0).size(), 1);
        } else {
            block.read(32, AT, 16);
        }
        if (is_told) {
            block.arrive(32, FREE, 0);
            assert_true(block.is_over(0, FREE, 0));
        }
        std::string text;
        try {
            block.copy(0, AT, &map, place, FULL);
        } catch (const emulation::async_fault &fault) {
            text = fault.what();
        }
        assert_int_equal(text.find("nothing says that warp 1's product or read there is done") ==
                             std::string::npos,
                         is_told);
        assert_int_equal(text.empty(), is_told);
    }
}

/* Sums that are read before they are waited for, or of no group, are no numbers. */
static void test_early_reads(void **)
{
    for (enum wrong wrong : {SUMS_READ, NOT_COMMITTED}) {
        static struct world w;
        assert_int_equal(run(&w, wrong), cudaSuccess);
        copy<held>(w.stream, &w.host_x, w.x, 1);
        assert_int_equal(cudaStreamSynchronize(w.stream), cudaSuccess);
        for (int t = 0; t < THREADS; t++)
            assert_true(isnan(w.host_x.of[t][0][0]));
        close_world(&w);
    }
}

/* What no hardware can do, or what is not there, gets no map. */
static void test_maps(void **)
{
    struct tensor_map map;
    bf16 *x = memory_new<bf16>(4096);
    assert_int_equal(tensor_map_of_heads(&map, x, 2, 16, 2, 64, 128, 128), cudaSuccess);
    assert_int_equal(tensor_map_of_heads(&map, x, 2, 16, 2, 64, 128, 257), cudaErrorInvalidValue);
    assert_int_equal(tensor_map_of_heads(&map, x, 2, 17, 2, 64, 128, 128), cudaErrorInvalidValue);
    assert_int_equal(tensor_map_of_heads(&map, x, 2, 8, 2, 64, 136, 128), cudaErrorInvalidValue);
    assert_int_equal(tensor_map_of_heads(&map, x + 4, 1, 8, 2, 64, 128, 8), cudaErrorInvalidValue);
    cudaGetLastError();
    cudaFree(x);
}

int main(void)
{
    cudaSetDevice(0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_early_reads),
        cmocka_unit_test(test_maps),     cmocka_unit_test(test_order_of_copies),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
