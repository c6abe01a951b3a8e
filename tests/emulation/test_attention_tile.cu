/* What attention's kernels share, by itself: a warp may write rows by way of room that its lanes
 * have read just before, with nothing between that they wait for each other at. */
#include "kernels/cuda/attention_tile.h"
#include "tests/emulation/emulation.h"
#include "tests/support.h"

enum { HD = 64, ROWS = 16 };

/* y: [ROWS, HD] = x's rows from the last to the first, in the warp's own room. */
static __global__ void transpose_rows(bf16 *y, const bf16 *x)
{
    CUDA_SHARED(bf16, tile);
    int lane = (int)threadIdx.x;
    for (int i = lane; i < ROWS * HD; i += 32)
        tile_chunk<HD>(tile, i / HD, i % HD / 8)[i % 8] = x[i];
    __syncwarp();
    float values[1][HD / 8][4];
    for (int n = 0; n < HD / 8; n++)
        for (int i = 0; i < 4; i++)
            values[0][n][i] = number_load(tile_chunk<HD>(tile, ROWS - 1 - tile_row(lane, 0, i), n) +
                                          tile_col(lane, n, i) % 8);
    struct tile_rows to = tile_rows_of<HD>(y, HD, 0, ROWS, 0, ROWS);
    tile_store<HD, 1>(to, 0, tile, values, 2);
}

static void test_rows_are_stored_by_way_of_what_was_read(void **)
{
    static bf16 host[ROWS * HD], got[ROWS * HD];
    void *x, *y;
    cudaStream_t stream;
    for (int i = 0; i < ROWS * HD; i++)
        number_store(host + i, (float)(i % 101));
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaMalloc(&x, sizeof host), cudaSuccess);
    assert_int_equal(cudaMalloc(&y, sizeof got), cudaSuccess);
    cudaMemcpyAsync(x, host, sizeof host, cudaMemcpyDefault, stream);
    assert_int_equal(emulation::launch_kernel(stream, "transpose_rows", {__FILE__, __LINE__},
                                              dim3(1), dim3(32), sizeof host, transpose_rows,
                                              (bf16 *)y, (const bf16 *)x),
                     cudaSuccess);
    cudaMemcpyAsync(got, y, sizeof got, cudaMemcpyDefault, stream);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < HD; i++)
            assert_float_equal(number_load(got + row * HD + i),
                               2 * number_load(host + (ROWS - 1 - row) * HD + i), 0);
    cudaFree(x);
    cudaFree(y);
    cudaStreamDestroy(stream);
}

/* A word of Philox's is kept by its number in [0, 1), as on the CPU: at the border too. */
static void test_kept_are_those_from_the_least_on(void **)
{
    const float dropouts[] = {0, 0x1p-24f, 0.1f, 0.25f, 0.5f, 0.9f, 1 - 0x1p-24f};
    for (float dropout : dropouts) {
        struct attention_shape z = {};
        z.dropout = dropout;
        uint32_t least = attention_dropout_of(&z).least;
        assert_true(random_unit(least) >= dropout && random_unit(~0u) >= dropout);
        assert_true(least == 0 || random_unit(least - 1) < dropout);
    }
}

int main(void)
{
    cudaSetDevice(0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_stored_by_way_of_what_was_read),
        cmocka_unit_test(test_kept_are_those_from_the_least_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
