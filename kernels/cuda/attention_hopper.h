/* What attention's kernels for compute capability 9.0 share. A block's first warpgroup copies: one
 * of its threads asks TMA for tiles. The others multiply, 64 rows each.
 *
 * A tile is [ROWS, HD]: heads 128 wide are two tiles of hopper.h's, one behind the other. */
#ifndef SHOAL_KERNELS_CUDA_ATTENTION_HOPPER_H
#define SHOAL_KERNELS_CUDA_ATTENTION_HOPPER_H

#include "kernels/cuda/attention_tile.h"
#include "kernels/cuda/hopper.h"

#ifdef __cplusplus

enum {
    WARPGROUPS = 2, /* that multiply */
    WARPGROUP_WARPS = HOPPER_GROUP / 32,
    WARPGROUP_ROWS = HOPPER_ROWS * WARPGROUPS, /* of a block */
    WARPGROUP_THREADS = HOPPER_GROUP * (1 + WARPGROUPS),
    /* Of a thread; all together are what a multiprocessor has. */
    REGISTERS_TO_COPY = 24,
    REGISTERS_TO_MULTIPLY = 240,
};

/* The block's shared memory as a `room`, from a multiple of 1024 on, and the bytes to ask for. */
template <typename room> __device__ inline room &warpgroup_room(unsigned char *shared)
{
    uint32_t over = hopper_address(shared) % HOPPER_TILE_ALIGN;
    return *(room *)(void *)(shared + (HOPPER_TILE_ALIGN - over) % HOPPER_TILE_ALIGN);
}
template <typename room> constexpr int warpgroup_room_bytes()
{
    static_assert(sizeof(room) + HOPPER_TILE_ALIGN <= 227 * 1024, "all that a block can have");
    return (int)sizeof(room) + HOPPER_TILE_ALIGN;
}

/* A tensor [B, T, heads, HD], `rows` of which a copy brings, and where its map is to be. */
struct warpgroup_map {
    struct tensor_map *to;
    const void *x;
    int64_t T, heads, stride;
    int rows;
};

/* false: that failed, which the stream knows. */
template <int COUNT>
static inline bool warpgroup_make_maps(struct stream *s, int64_t B, int hd,
                                       const struct warpgroup_map (&maps)[COUNT])
{
    for (const struct warpgroup_map &m : maps) {
        cudaError_t status = tensor_map_of_heads(m.to, m.x, B, m.T, m.heads, hd, m.stride, m.rows);
        cuda_check(s, status, "a tensor map of attention's");
        if (status != cudaSuccess)
            return false;
    }
    return true;
}

/* The warp among those that multiply. */
__device__ inline int warpgroup_warp()
{
    return matrix_thread() / 32 - WARPGROUP_WARPS;
}

/* Where the warp's group has its rows of a tile, found anew at each call (matrix_thread()). */
__device__ inline const bf16 *warpgroup_rows(const bf16 *tile)
{
    return tile + warpgroup_warp() / WARPGROUP_WARPS * HOPPER_ROWS * HOPPER_COLUMNS;
}

/* One thread: brings rows from `row` on to a tile. */
template <int HD, int ROWS>
__device__ inline void warpgroup_copy(bf16 *tile, const struct tensor_map *map, int head, int row,
                                      int b, uint64_t *full)
{
#pragma unroll
    for (int column = 0; column < HD; column += HOPPER_COLUMNS)
        hopper_copy(tile + ROWS * column, map, column, head, row, b, full);
}

/* The same, and says how much that is. */
template <int HD, int ROWS>
__device__ inline void warpgroup_bring(bf16 *tile, const struct tensor_map *map, int head, int row,
                                       int b, uint64_t *full)
{
    hopper_expect(full, ROWS * HD * (int)sizeof *tile);
    warpgroup_copy<HD, ROWS>(tile, map, head, row, b, full);
}

/* A warp does not need the stage any more: its products are done. */
__device__ inline void warpgroup_give_back(uint64_t *free_again)
{
    if (matrix_lane() == 0)
        hopper_arrive(free_again);
}

/* Asks for x = a b^T, as S = Q K^T: the group's 64 rows of a tile of A_ROWS, and a tile of b. */
template <int HD, int A_ROWS, int B_ROWS>
__device__ inline void warpgroup_ask_scores(float (&x)[B_ROWS / 8][4], const bf16 *a, const bf16 *b)
{
    constexpr int STEP = HOPPER_DEPTH * (int)sizeof *a, ROW = HOPPER_COLUMNS * (int)sizeof *a;
    uint64_t left = hopper_matrix(a, 0), right = hopper_matrix(b, 0);
    hopper_fence();
#pragma unroll
    for (int at = 0; at < HD * (int)sizeof *a; at += STEP) {
        int tile = at / ROW, column = at % ROW; /* in bytes */
        hopper_multiply<B_ROWS>(x, hopper_matrix_on(left, tile * A_ROWS * ROW + column),
                                hopper_matrix_on(right, tile * B_ROWS * ROW + column), at > 0);
    }
    hopper_commit();
}

/* Asks for y += p b, as O += P V: the group's 64 rows of p, rounded, and a tile of b by its
 * rows. */
template <int HD, int ROWS>
__device__ inline void warpgroup_ask_sums(float (&y)[HD / 8][4],
                                          const uint32_t (&p)[ROWS / HOPPER_DEPTH][4],
                                          const bf16 *b)
{
    constexpr int ROW = HOPPER_COLUMNS * (int)sizeof *b;
    uint64_t right = hopper_matrix(b, ROWS * ROW);
    hopper_fence();
#pragma unroll
    for (int k = 0; k < ROWS / HOPPER_DEPTH; k++)
        hopper_multiply_rows<HD>(y, p[k], hopper_matrix_on(right, k * HOPPER_DEPTH * ROW));
    hopper_commit();
}

/* Rounds results of a product to the factors of the next: two columns' sums are one of those. */
template <int N>
__device__ inline void warpgroup_round(uint32_t (&p)[N / 2][4], const float (&x)[N][4])
{
#pragma unroll
    for (int k = 0; k < N / 2; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            p[k][i] = matrix_pair(x[2 * k + i / 2][i % 2 * 2], x[2 * k + i / 2][i % 2 * 2 + 1]);
}

#endif
#endif
