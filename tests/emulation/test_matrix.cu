/* Matrix instructions as the kernels use them against NVIDIA's own description of who holds what
 * (tests/data/parity/fragments.txt). Our header, our kernels and the emulation come from one
 * reading of the PTX ISA, so a misreading would agree with itself everywhere else. */
#include <fstream> /* before cmocka, which has a macro fail() */
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cuda/attention_tile.h"
#include "tests/emulation/kernel_test.h"

enum {
    LANES = 32,
    ROW = 24, /* elements from one row to the next: those of ldmatrix need not lie together */
};

struct cell {
    int row, column;
};
struct fragment {
    cell of[LANES][8];
    int values; /* of a lane */
};
static std::map<std::string, fragment> fragments;

static int read_fragments(void **)
{
    std::ifstream file("tests/data/parity/fragments.txt");
    std::string line, operand;
    int lane;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        if (line[0] == '#' || !(words >> operand >> lane))
            continue;
        fragment &f = fragments[operand];
        cell c;
        char comma;
        for (f.values = 0; words >> c.row >> comma >> c.column; f.values++)
            f.of[lane][f.values] = c;
    }
    return fragments.size() == 5 ? 0 : -1;
}

/* ---- memory ---- */

/* Of the device, with what the host has. */
template <typename T> struct device_array {
    T *at;
    size_t count;

    explicit device_array(const std::vector<T> &host) : count(host.size())
    {
        at = memory_new<T>((int64_t)count);
        move(at, host.data());
    }
    ~device_array()
    {
        cudaFree(at);
    }
    std::vector<T> host() const
    {
        std::vector<T> all(count);
        move(all.data(), at);
        return all;
    }

  private:
    void move(T *to, const T *from) const
    {
        cudaStream_t stream = stream_new();
        copy<T>(stream, to, from, (int64_t)count);
        assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
        cudaStreamDestroy(stream);
    }
};

/* One warp. */
template <typename... P, typename... A>
static void run(void (*kernel)(P...), size_t shared_bytes, const A &...arguments)
{
    cudaStream_t stream = stream_new();
    assert_int_equal(LAUNCH(stream, kernel, 1, LANES, shared_bytes, arguments...), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    cudaStreamDestroy(stream);
}

static bf16 rounded(float x)
{
    bf16 y;
    number_store(&y, x);
    return y;
}

/* ---- instructions ---- */

struct left {
    bf16 of[LANES][8];
};
struct right {
    bf16 of[LANES][4];
};
struct sums {
    float of[LANES][4];
};

static __global__ void multiply_kernel(sums *d, const left *a, const right *b, int count)
{
    int lane = matrix_lane();
    for (int i = 0; i < count; i++) {
        uint32_t first[4], second[2];
        memcpy(first, a[i].of[lane], sizeof first);
        memcpy(second, b->of[lane], sizeof second);
        matrix_multiply(d[i].of[lane], first, second[0], second[1]);
    }
}

/* A has a single 1, in each place in turn: then D has a row of B, which has another number in each
 * place. */
static void test_products(void **)
{
    const fragment &A = fragments["A"], &B = fragments["B"], &D = fragments["D"];
    assert_true(A.values == 8 && B.values == 4 && D.values == 4);
    const float before = 0.5;
    auto number = [](int row, int column) { return (float)(1 + 16 * column + row); };
    std::vector<right> b(1);
    for (int i = 0; i < LANES * 4; i++) {
        cell at = B.of[i / 4][i % 4];
        b[0].of[i / 4][i % 4] = rounded(number(at.row, at.column));
    }
    std::vector<left> a(LANES * 8);
    for (int i = 0; i < LANES * 8; i++)
        a[(size_t)i].of[i / 8][i % 8] = rounded(1);
    std::vector<sums> d(a.size());
    for (sums &each : d)
        for (int i = 0; i < LANES * 4; i++)
            each.of[i / 4][i % 4] = before;
    device_array<left> on_a(a);
    device_array<right> on_b(b);
    device_array<sums> on_d(d);
    run(multiply_kernel, 0, on_d.at, on_a.at, on_b.at, (int)a.size());
    d = on_d.host();
    for (int i = 0; i < LANES * 8; i++)
        for (int j = 0; j < LANES * 4; j++) {
            cell hot = A.of[i / 8][i % 8], at = D.of[j / 4][j % 4];
            float expected = before + (at.row == hot.row ? number(hot.column, at.column) : 0);
            float got = d[(size_t)i].of[j / 4][j % 4];
            if (got != expected)
                fail_msg("a[%d] of lane %d is row %d, column %d of A: d[%d] of lane %d is %g, not "
                         "%g",
                         i % 8, i / 8, hot.row, hot.column, j % 4, j / 4, got, expected);
        }
}

static __global__ void load_kernel(bf16 *plain, bf16 *transposed)
{
    CUDA_SHARED(bf16, memory);
    int lane = matrix_lane();
    bf16 *row = memory + lane * 5 % LANES * ROW; /* nor be in order */
    for (int i = 0; i < 8; i++)
        row[i] = (bf16)(8 * lane + i);
    __syncwarp();
    uint32_t m[4];
    matrix_load(m, row);
    memcpy(plain + 8 * lane, m, sizeof m);
    matrix_load_transposed(m, row);
    memcpy(transposed + 8 * lane, m, sizeof m);
}

static void test_loads(void **)
{
    device_array<bf16> plain(std::vector<bf16>(LANES * 8)), transposed(plain.host());
    run(load_kernel, LANES * ROW * sizeof(bf16), plain.at, transposed.at);
    const struct {
        const char *name;
        std::vector<bf16> got;
    } rows[] = {{"ldmatrix", plain.host()}, {"ldmatrix.trans", transposed.host()}};
    for (const auto &load : rows) {
        assert_int_equal(fragments[load.name].values, 8);
        for (int i = 0; i < LANES * 8; i++) {
            cell at = fragments[load.name].of[i / 8][i % 8];
            int got = load.got[(size_t)i];
            if (got != 8 * at.row + at.column)
                fail_msg("%s: value %d of lane %d is element %d of lane %d's row, not %d of %d's",
                         load.name, i % 8, i / 8, got % 8, got / 8, at.column, at.row);
        }
    }
}

/* ---- tiles of attention ---- */

/* What a lane has of a tile. */
template <int ROWS, int COLS> struct held {
    float of[LANES][ROWS][COLS / 8][4];

    /* f(value, row, column) for each. */
    template <typename F> void each(F f)
    {
        const fragment &D = fragments["D"];
        for (int lane = 0; lane < LANES; lane++)
            for (int r = 0; r < ROWS; r++)
                for (int n = 0; n < COLS / 8; n++)
                    for (int i = 0; i < 4; i++) {
                        cell at = D.of[lane][i];
                        f(of[lane][r][n][i], 16 * r + at.row, 8 * n + at.column);
                    }
    }
};

static __global__ void place_kernel(held<2, 32> *rows, held<2, 32> *columns)
{
    int lane = (int)threadIdx.x;
    for (int r = 0; r < 2; r++)
        for (int n = 0; n < 4; n++)
            for (int i = 0; i < 4; i++) {
                rows->of[lane][r][n][i] = (float)tile_row(lane, r, i);
                columns->of[lane][r][n][i] = (float)tile_col(lane, n, i);
            }
}

static void test_places(void **)
{
    device_array<held<2, 32>> rows(std::vector<held<2, 32>>(1)), columns(rows.host());
    run(place_kernel, 0, rows.at, columns.at);
    rows.host()[0].each([](float got, int row, int) { assert_true(got == (float)row); });
    columns.host()[0].each([](float got, int, int column) { assert_true(got == (float)column); });
}

/* x = a b^T, and y = p b: a has 16 ROWS rows, b COLS. */
template <int HD, int ROWS, int COLS>
static __global__ void tile_kernel(held<ROWS, COLS> *x, held<ROWS, HD> *y, const bf16 *a,
                                   const bf16 *b, const held<ROWS, COLS> *p)
{
    CUDA_SHARED(bf16, tile_a);
    bf16 *tile_b = tile_a + 16 * ROWS * HD;
    int lane = (int)threadIdx.x;
    for (int i = lane; i < 16 * ROWS * HD; i += LANES)
        tile_chunk<HD>(tile_a, i / HD, i % HD / 8)[i % 8] = a[i];
    for (int i = lane; i < COLS * HD; i += LANES)
        tile_chunk<HD>(tile_b, i / HD, i % HD / 8)[i % 8] = b[i];
    __syncwarp();
    tile_zero(x->of[lane]);
    tile_mma_qk<HD, ROWS, COLS>(x->of[lane], tile_a, tile_b);
    tile_zero(y->of[lane]);
    tile_mma_pv<HD, ROWS, COLS>(y->of[lane], p->of[lane], tile_b);
}

/* Small whole numbers: products and their sums are exact. */
static float small_number(int row, int column)
{
    return (float)((row * 31 + column * 17 + row * column % 13) % 7 - 3);
}

template <int HD, int ROWS, int COLS> static void check_tiles()
{
    std::vector<bf16> a(16 * ROWS * HD), b(COLS * HD);
    for (size_t i = 0; i < a.size(); i++)
        a[i] = rounded(small_number((int)i / HD, (int)i % HD));
    for (size_t i = 0; i < b.size(); i++)
        b[i] = rounded(small_number(1000 + (int)i / HD, (int)i % HD));
    std::vector<held<ROWS, COLS>> p(1);
    p[0].each([](float &value, int row, int key) { value = small_number(row, 2000 + key); });
    device_array<bf16> on_a(a), on_b(b);
    device_array<held<ROWS, COLS>> on_p(p), x(p);
    device_array<held<ROWS, HD>> y(std::vector<held<ROWS, HD>>(1));
    run(tile_kernel<HD, ROWS, COLS>, (size_t)(16 * ROWS + COLS) * HD * sizeof(bf16), x.at, y.at,
        on_a.at, on_b.at, on_p.at);
    x.host()[0].each([](float got, int row, int key) {
        float sum = 0;
        for (int i = 0; i < HD; i++)
            sum += small_number(row, i) * small_number(1000 + key, i);
        assert_true(got == sum);
    });
    y.host()[0].each([](float got, int row, int column) {
        float sum = 0;
        for (int key = 0; key < COLS; key++)
            sum += small_number(row, 2000 + key) * small_number(1000 + key, column);
        assert_true(got == sum);
    });
}

static void test_tiles(void **)
{
    check_tiles<64, 2, 32>();
    check_tiles<64, 1, 64>();
    check_tiles<128, 1, 64>();
}

/* ldmatrix reads a chunk of eight rows at once. Shared memory has 32 banks of 4 bytes, each chunk
 * takes four. */
template <int HD> static void check_banks()
{
    std::vector<bf16> tile(64 * HD);
    for (int first = 0; first < 64; first += 8)
        for (int chunk = 0; chunk < HD / 8; chunk++) {
            unsigned met = 0;
            for (int row = first; row < first + 8; row++)
                met |= 1u << (tile_chunk<HD>(tile.data(), row, chunk) - tile.data()) / 8 % 8;
            assert_int_equal(met, 0xff);
        }
}

static void test_banks(void **)
{
    check_banks<64>();
    check_banks<128>();
}

int main(void)
{
    cudaSetDevice(0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_loads),
        cmocka_unit_test(test_places),   cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_banks),
    };
    return cmocka_run_group_tests(tests, read_fragments, NULL);
}
