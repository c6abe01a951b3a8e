/* Cases of attention, for tests of whose kernels do it: against the plain formula, whole rows of
 * scores at once. */
#ifndef SHOAL_TESTS_KERNELS_ATTENTION_ROWS_H
#define SHOAL_TESTS_KERNELS_ATTENTION_ROWS_H

#include "tests/kernels/op_check.h"

enum { ATTENTION_MAX_BATCH = 2 };

struct attention_row {
    const char *name;
    struct attention_shape shape; /* without bias and key_counts */
    float size;
    bool bias;
    int32_t key_counts[ATTENTION_MAX_BATCH]; /* 0: all */
};

/* Of a shape whose q, k and v are columns of one packed tensor. */
#define PACKED(b, t, h, kv, width)                                                                 \
    .B = b, .T_q = t, .T_k = t, .heads = h, .kv_heads = kv, .hd = width,                           \
    .q_stride = (h + 2 * kv) * width, .k_stride = (h + 2 * kv) * width,                            \
    .v_stride = (h + 2 * kv) * width, .scale = 0.125f

extern const struct attention_row attention_rows[];
extern const size_t attention_row_count;

/* Forward and backward of a row, in both dtypes. */
void check_attention(struct world *world, const struct attention_row *row);
#endif
