/* Products of bf16 blocks with x86's AMX, for attention: its blocks are too small for one oneDNN
 * call each. A tile is 16 rows of 64 bytes. TDPBF16PS multiplies pairs of neighbours, so the second
 * factor is stored as pairs of rows: an element is two bf16, the lower half from the upper row
 * (VNNI layout; Intel, "Architecture Instruction Set Extensions", chapter AMX). Only inside
 * functions marked AMX, after attention_amx_available(). */
#ifndef SHOAL_KERNELS_CPU_AMX_H
#define SHOAL_KERNELS_CPU_AMX_H

#include "kernels/dtype.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>

#define AMX __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-bf16")))

enum { AMX_STEP = 32 }; /* sizes of blocks are multiples */

/* Of a thread, from before its first product to after its last. */
AMX static inline void amx_open(void)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } layout;
    memset(&layout, 0, sizeof layout);
    layout.palette = 1;
    for (int tile = 0; tile < 8; tile++) {
        layout.row_bytes[tile] = 64;
        layout.rows[tile] = 16;
    }
    _tile_loadconfig(&layout);
}

AMX static inline void amx_close(void)
{
    _tile_release();
}

/* c: [m, n] = a b, or c + a b if add; a: [m, k]; b: [k / 2, n] pairs. Rows are `stride` elements
 * (pairs) apart. Summed in fp32. */
AMX static inline void amx_multiply(float *c, int64_t c_stride, const bf16 *a, int64_t a_stride,
                                    const uint32_t *b, int64_t b_stride, int64_t m, int64_t n,
                                    int64_t k, bool add)
{
    enum { HALF = AMX_STEP / 2 };
    int64_t c_bytes = c_stride * 4, a_bytes = a_stride * 2, b_bytes = b_stride * 4;
    for (int64_t i = 0; i < m; i += AMX_STEP)
        for (int64_t j = 0; j < n; j += AMX_STEP) {
            float *upper = c + i * c_stride + j, *lower = upper + HALF * c_stride;
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_zero(3);
            if (add) {
                _tile_loadd(0, upper, c_bytes);
                _tile_loadd(1, upper + HALF, c_bytes);
                _tile_loadd(2, lower, c_bytes);
                _tile_loadd(3, lower + HALF, c_bytes);
            }
            for (int64_t d = 0; d < k; d += AMX_STEP) {
                _tile_loadd(4, a + i * a_stride + d, a_bytes);
                _tile_loadd(5, a + (i + HALF) * a_stride + d, a_bytes);
                _tile_loadd(6, b + d / 2 * b_stride + j, b_bytes);
                _tile_loadd(7, b + d / 2 * b_stride + j + HALF, b_bytes);
                _tile_dpbf16ps(0, 4, 6);
                _tile_dpbf16ps(1, 4, 7);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
            _tile_stored(0, upper, c_bytes);
            _tile_stored(1, upper + HALF, c_bytes);
            _tile_stored(2, lower, c_bytes);
            _tile_stored(3, lower + HALF, c_bytes);
        }
}

#endif
#endif
